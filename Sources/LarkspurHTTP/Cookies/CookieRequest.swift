/// What cookies have to know of a request.
public struct CookieRequest: Hashable, Sendable {
  public var host: CookieHost
  /// As it is sent: percent-encoded, without the query.
  public var path: String
  /// By TLS. A loopback address does not make up for it: cookies cross ports, and another user's server may listen
  /// there. CFNetwork draws the line in the same place.
  public var isSecure: Bool
  /// Nil: not known, and no cookie is kept back on account of it.
  public var port: Int?
  /// What stands for the user, a window's document or nothing, is of the same site (RFC 6265bis 5.2).
  public var isSameSite = true
  /// The method is one that changes nothing (RFC 9110 9.2.1).
  public var isSafeMethod = true
  /// The answer is what the user is to see, and not a part of it.
  public var isTopLevel = true

  public init(host: CookieHost, path: String, isSecure: Bool) {
    self.host = host
    self.path = path.utf8.first == UInt8(ascii: "/") ? path : "/"
    self.isSecure = isSecure
  }

  /// RFC 2965 3.3.4: some cookies are for some ports. Nobody else's are.
  func isFor(ports: [Int]) -> Bool { ports.isEmpty || port.map(ports.contains) ?? true }

  /// RFC 6265bis 5.8.3: what another site makes us send has to be harmless, and seen.
  func takes(_ sameSite: Cookie.SameSite) -> Bool {
    switch sameSite {
    case .none, .unspecified: true
    case .strict: isSameSite
    case .lax: isSameSite || isSafeMethod && isTopLevel
    }
  }
}
