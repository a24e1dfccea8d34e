/// The name of an issuer whose certificates a server takes.
package struct DistinguishedName: Hashable, Sendable {
  /// As RFC 2253 writes it.
  package let text: String
  package let der: [UInt8]
}

extension DistinguishedName: CustomStringConvertible {
  package var description: String { text }
}
