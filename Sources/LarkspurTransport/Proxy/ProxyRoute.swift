import LarkspurHTTP

/// A proxy, and how to connect through it.
public struct ProxyRoute: Sendable {
  public var proxy: Proxy
  /// How to use TLS with an `https` proxy.
  public var security: Security?
  /// The value of `Proxy-Authorization` in the first CONNECT. By default the proxy's credentials, if there are any, as
  /// Basic authorization; they are sent without a challenge, as curl does.
  public var authorization: String?
  /// Creates the authorizer of one tunnel, or `nil` for no authorizer.
  public var makeAuthorizer: (@Sendable () -> any TunnelAuthorizer)? { didSet { identity = Identity() } }
  /// Whether connections without TLS, too, go through a tunnel. By default an HTTP proxy makes their requests itself,
  /// which it cannot do for another protocol than HTTP.
  public var alwaysTunnels = false
  /// Whether the host is reached without the proxy if the proxy cannot be reached, does not answer in half of the time, or
  /// breaks the connection before there is a tunnel. Without effect if the proxy makes the requests itself.
  public var allowsFailover = false
  /// The value of `User-Agent` in CONNECT.
  public var userAgent: String?
  /// Represents the closure above in comparisons, because closures cannot be compared. Copies share it.
  private var identity: Identity?

  private final class Identity: Sendable {}

  public init(_ proxy: Proxy, security: Security? = nil) {
    self.proxy = proxy
    self.security = security
    authorization = proxy.credentials?.basicAuthorization
  }

  /// Whether the proxy makes the requests itself, in place of a tunnel.
  ///
  /// - Parameter isSecure: Whether the host is reached by TLS.
  public func forwards(toSecure isSecure: Bool) -> Bool { !alwaysTunnels && proxy.forwards(toSecure: isSecure) }
}

extension ProxyRoute: Hashable {
  /// Whether the two routes can share connections. The credentials with which connections were made count.
  public static func == (one: ProxyRoute, other: ProxyRoute) -> Bool {
    one.proxy == other.proxy && one.security == other.security && one.authorization == other.authorization
      && one.userAgent == other.userAgent && one.alwaysTunnels == other.alwaysTunnels
      && one.allowsFailover == other.allowsFailover
      && one.identity === other.identity
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(proxy)
    hasher.combine(security)
    hasher.combine(authorization)
    hasher.combine(userAgent)
    hasher.combine(identity.map(ObjectIdentifier.init))
  }
}

/// Provides the `Proxy-Authorization` of one tunnel's CONNECT requests. Its functions are called one after another.
public protocol TunnelAuthorizer: Sendable {
  /// Returns the value for the first CONNECT, or `nil` for none. Called on the loop, if the route has no
  /// `authorization`.
  func first(for request: ProxyChallenge.Request) -> String?
  /// Returns the value to try after a 407, or `nil` if there is nothing to try. Called in a task on another thread than
  /// the loop's. The tunnel waits for the result until its deadline; the task is cancelled when the wait is over.
  func next(after challenge: ProxyChallenge) async -> String?
  /// Called when the proxy has accepted the value, with the values of `Proxy-Authentication-Info`. `info` is empty if
  /// the proxy sent no such field. Called like `next(after:)`, and only if the authorizer provided the value.
  func accepted(info: [String]) async
}

/// A proxy's demand for authorization before it opens a tunnel.
public struct ProxyChallenge: Hashable, Sendable {
  /// The content of the request line, which Digest needs (RFC 7616 3.4.3).
  public struct Request: Hashable, Sendable {
    public var proxy: Proxy
    public var method: String
    public var target: String
  }

  public var request: Request
  /// The values of `Proxy-Authenticate` (RFC 9110 11.7.1), in their order.
  public var values: [String]
}

/// An error of a proxy.
public struct ProxyError: Error, Hashable, Sendable {
  public enum Failure: Hashable, Sendable {
    /// The proxy could not be reached, the connection to it broke, or its response is not valid HTTP.
    case transport(TransportError)
    case socks(SOCKSError)
    case tunnel(TunnelError)
  }

  /// The proxy, for example `http://proxy.example:3128`, without user and password.
  public var proxy: String
  public var failure: Failure

  public init(_ proxy: Proxy, _ failure: Failure) {
    self.proxy = proxy.description
    self.failure = failure
  }
}

extension ProxyError: CustomStringConvertible {
  public var description: String {
    let reason: any CustomStringConvertible =
      switch failure {
      case .transport(let error): error
      case .socks(let error): error
      case .tunnel(let error): error
      }
    return "proxy \(proxy): \(reason)"
  }
}
