import LarkspurHTTP

/// The way through a proxy: which one, and how it is spoken to.
package struct ProxyRoute: Sendable {
  package var proxy: Proxy
  /// How TLS is spoken with an `https` proxy.
  package var security: Security?
  /// The `Proxy-Authorization` of the first CONNECT. Proxies that are given credentials get them unasked, as curl does it.
  package var authorization: String?
  /// Asked after each 407 for what to try next; on a thread that is not the loop's. The tunnel waits for the answer, until
  /// its deadline; the task is cancelled when nobody waits any more. Nil: there is nothing to try.
  package var authorize: (@Sendable (ProxyChallenge) async -> String?)? { didSet { identity = Identity() } }
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

/// What a proxy wants to know before it makes a tunnel.
package struct ProxyChallenge: Hashable, Sendable {
  package var proxy: Proxy
  /// The values of `Proxy-Authenticate` (RFC 9110 11.7.1), in their order.
  package var values: [String]
  /// What the request line said: Digest needs it (RFC 7616 3.4.3).
  package var method: String
  package var target: String

  package init(proxy: Proxy, values: [String], method: String, target: String) {
    self.proxy = proxy
    self.values = values
    self.method = method
    self.target = target
  }
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
