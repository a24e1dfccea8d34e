/// The way to a server: whatever may make two connections unequal. Requests share connections if their routes are equal.
package struct Route: Hashable, Sendable {
  /// A name or an IP address, without brackets.
  package var host: String
  package var port: UInt16
  /// Nil: plain HTTP.
  package var security: Security?

  package init(host: String, port: UInt16, security: Security? = nil) {
    // RFC 9110 4.2.3: names are equal without regard to case.
    self.host = host.lowercased()
    self.port = port
    self.security = security
  }
}
