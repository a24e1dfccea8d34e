/// The parts of a request that decide on its cookies.
public struct CookieRequest: Hashable, Sendable {
  public var host: CookieHost
  /// The path as it is sent: percent-encoded, without the query.
  public var path: String
  /// Whether the request is sent over TLS. A loopback address does not count as secure: cookies are shared by all
  /// ports, and another user's server may listen on one of them. CFNetwork has this rule, too.
  public var isSecure: Bool
  /// The port, or `nil` if unknown. An unknown port excludes no cookie.
  public var port: Int?
  /// Whether the document that the request is made for is of the host's site (RFC 6265bis 5.2). Also `true` if there is
  /// no such document.
  public var isSameSite = true
  /// Whether the method is safe: a request that changes nothing (RFC 9110 9.2.1).
  public var isSafeMethod = true
  /// Whether the response is the main document, and not a part of one.
  public var isTopLevel = true

  public init(host: CookieHost, path: String, isSecure: Bool) {
    self.host = host
    self.path = path.utf8.first == UInt8(ascii: "/") ? path : "/"
    self.isSecure = isSecure
  }

  /// Whether the request's port is among the ports of an RFC 2965 cookie (3.3.4). Other cookies have no ports, and suit
  /// every port.
  func isFor(ports: [Int]) -> Bool { ports.isEmpty || port.map(ports.contains) ?? true }

  /// Whether the request may carry a cookie with this attribute (RFC 6265bis 5.8.3). With `lax`, a request that another
  /// site causes carries the cookie only if the method is safe and the response is the main document.
  func takes(_ sameSite: Cookie.SameSite) -> Bool {
    switch sameSite {
    case .none, .unspecified: true
    case .strict: isSameSite
    case .lax: isSameSite || isSafeMethod && isTopLevel
    }
  }
}
