import LarkspurHTTP

/// The way through a proxy: which one, and how it is spoken to.
public struct ProxyRoute: Sendable {
  public var proxy: Proxy
  /// How TLS is spoken with an `https` proxy.
  public var security: Security?
  /// The `Proxy-Authorization` of the first CONNECT. Proxies that are given credentials get them unasked, as curl does it.
  public var authorization: String?
  /// Makes whom a tunnel asks for its authorization: one for each tunnel. Nil: there is nobody.
  public var makeAuthorizer: (@Sendable () -> any TunnelAuthorizer)? { didSet { identity = Identity() } }
  /// The `User-Agent` of CONNECT.
  public var userAgent: String?
  /// Stands for the closure above, which cannot be compared: copies share it.
  private var identity: Identity?

  private final class Identity: Sendable {}

  public init(_ proxy: Proxy, security: Security? = nil) {
    self.proxy = proxy
    self.security = security
    authorization = proxy.credentials?.basicAuthorization
  }
}

extension ProxyRoute: Hashable {
  /// Whether connections by the one are as good as connections by the other: whose credentials they were made with counts.
  public static func == (one: ProxyRoute, other: ProxyRoute) -> Bool {
    one.proxy == other.proxy && one.security == other.security && one.authorization == other.authorization
      && one.userAgent == other.userAgent && one.identity === other.identity
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(proxy)
    hasher.combine(security)
    hasher.combine(authorization)
    hasher.combine(userAgent)
    hasher.combine(identity.map(ObjectIdentifier.init))
  }
}

/// Knows what one tunnel's CONNECTs say in `Proxy-Authorization`. It is asked one thing after another.
public protocol TunnelAuthorizer: Sendable {
  /// Of the first CONNECT, if the route has none. On the loop.
  func first(for request: ProxyChallenge.Request) -> String?
  /// After each 407: what to try next. On a thread that is not the loop's; the tunnel waits for the answer, until its deadline,
  /// and the task is cancelled when nobody waits any more. Nil: there is nothing to try.
  func next(after challenge: ProxyChallenge) async -> String?
  /// The proxy has taken what it was given, with these values of `Proxy-Authentication-Info`. As above.
  func accepted(info: [String]) async
}

/// What a proxy wants to know before it makes a tunnel.
public struct ProxyChallenge: Hashable, Sendable {
  /// What the request line says: Digest needs it (RFC 7616 3.4.3).
  public struct Request: Hashable, Sendable {
    public var proxy: Proxy
    public var method: String
    public var target: String
  }

  public var request: Request
  /// The values of `Proxy-Authenticate` (RFC 9110 11.7.1), in their order.
  public var values: [String]
}

/// Why there is no way through a proxy.
public struct ProxyError: Error, Hashable, Sendable {
  public enum Failure: Hashable, Sendable {
    /// The proxy could not be reached, the connection to it broke, or what it said is not HTTP.
    case transport(TransportError)
    case socks(SOCKSError)
    case tunnel(TunnelError)
  }

  /// `http://proxy.example:3128`: without user and password.
  public var proxy: String
  public var failure: Failure

  public init(_ proxy: Proxy, _ failure: Failure) {
    self.proxy = proxy.description
    self.failure = failure
  }
}

extension ProxyError: CustomStringConvertible {
  public var description: String {
    let words: any CustomStringConvertible =
      switch failure {
      case .transport(let error): error
      case .socks(let error): error
      case .tunnel(let error): error
      }
    return "proxy \(proxy): \(words)"
  }
}
