import LarkspurHTTP

/// The way through a proxy: which one, and how it is spoken to.
package struct ProxyRoute: Sendable {
  package var proxy: Proxy
  /// How TLS is spoken with an `https` proxy.
  package var security: Security?
  /// The `Proxy-Authorization` of the first CONNECT. Proxies that are given credentials get them unasked, as curl does it.
  package var authorization: String?
  /// Makes whom a tunnel asks for its authorization: one for each tunnel. Nil: there is nobody.
  package var makeAuthorizer: (@Sendable () -> any TunnelAuthorizer)? { didSet { identity = Identity() } }
  /// The `User-Agent` of CONNECT.
  package var userAgent: String?
  /// Stands for the closure above, which cannot be compared: copies share it.
  private var identity: Identity?

  private final class Identity: Sendable {}

  package init(_ proxy: Proxy, security: Security? = nil) {
    self.proxy = proxy
    self.security = security
    authorization = proxy.credentials?.basicAuthorization
  }
}

extension ProxyRoute: Hashable {
  /// Whether connections by the one are as good as connections by the other: whose credentials they were made with counts.
  package static func == (one: ProxyRoute, other: ProxyRoute) -> Bool {
    one.proxy == other.proxy && one.security == other.security && one.authorization == other.authorization
      && one.userAgent == other.userAgent && one.identity === other.identity
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(proxy)
    hasher.combine(security)
    hasher.combine(authorization)
    hasher.combine(userAgent)
    hasher.combine(identity.map(ObjectIdentifier.init))
  }
}

/// Knows what one tunnel's CONNECTs say in `Proxy-Authorization`. It is asked one thing after another.
package protocol TunnelAuthorizer: Sendable {
  /// Of the first CONNECT, if the route has none. On the loop.
  func first(for request: ProxyChallenge.Request) -> String?
  /// After each 407: what to try next. On a thread that is not the loop's; the tunnel waits for the answer, until its deadline,
  /// and the task is cancelled when nobody waits any more. Nil: there is nothing to try.
  func next(after challenge: ProxyChallenge) async -> String?
  /// The proxy has taken what it was given, with these values of `Proxy-Authentication-Info`. As above.
  func accepted(info: [String]) async
}

/// What a proxy wants to know before it makes a tunnel.
package struct ProxyChallenge: Hashable, Sendable {
  /// What the request line says: Digest needs it (RFC 7616 3.4.3).
  package struct Request: Hashable, Sendable {
    package var proxy: Proxy
    package var method: String
    package var target: String
  }

  package var request: Request
  /// The values of `Proxy-Authenticate` (RFC 9110 11.7.1), in their order.
  package var values: [String]
}

/// Why there is no way through a proxy.
package struct ProxyError: Error, Hashable, Sendable {
  package enum Failure: Hashable, Sendable {
    /// The proxy could not be reached, the connection to it broke, or what it said is not HTTP.
    case transport(TransportError)
    case socks(SOCKSError)
    case tunnel(TunnelError)
  }

  /// `http://proxy.example:3128`: without user and password.
  package var proxy: String
  package var failure: Failure

  package init(_ proxy: Proxy, _ failure: Failure) {
    self.proxy = proxy.description
    self.failure = failure
  }
}

extension ProxyError: CustomStringConvertible {
  package var description: String {
    let words: any CustomStringConvertible =
      switch failure {
      case .transport(let error): error
      case .socks(let error): error
      case .tunnel(let error): error
      }
    return "proxy \(proxy): \(words)"
  }
}
