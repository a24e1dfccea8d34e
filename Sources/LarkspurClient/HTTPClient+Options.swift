import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

extension HTTPClient {
  /// The options of a client. A value: a client keeps the options that it was created with.
  public struct Options: Sendable {
    /// How a client finds the proxy of a server.
    public enum ProxyChoice: Sendable {
      /// The environment names the proxies, in curl's variables: `http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`.
      case environment
      /// Servers are reached directly.
      case none
      /// The program names the proxies.
      case settings(ProxySettings)
    }

    /// Fields for requests that do not set them. Fields that carry credentials or are otherwise meant for one origin
    /// (`Authorization`, `Cookie`, `Host`) are not sent to another origin after a redirection.
    public var fields: FieldList = []
    /// Maximum number of connections to one server, including those being opened. 8 by default.
    public var connectionsPerHostMax = 8
    /// The limits of a request. By default 60 seconds without progress in sending, for the response's first byte and
    /// between two bytes, and no limit in all. `total` counts from the call to the end of the body, over all redirections. A
    /// limit that cannot be used fails each request with ``HTTPClientError/Code/invalidOption``.
    public var timeouts: Timeouts
    /// The longest time for opening a connection: looking up the name, connecting, TLS. 60 seconds by default.
    public var connectTimeout = Duration.seconds(60)
    /// How the proxy of a server is found. By the environment by default.
    public var proxy = ProxyChoice.environment
    /// Other places for hosts than those of their names: addresses, another host, or a Unix socket. Empty by default.
    public var hostOverrides = HostOverrides()
    /// The local address or the interface that connections begin at, and whether they may have several paths (MPTCP). `nil`
    /// by default: the kernel chooses. An end that the machine lacks fails each request with
    /// ``HTTPClientError/Code/unconnected``.
    public var localEndpoint: LocalEndpoint?
    /// Upper limits on the rates of the client's connections. Unlimited by default. A limit that cannot be used fails
    /// each request with ``HTTPClientError/Code/invalidOption``.
    public var rateLimits = RateLimits()
    /// Trust, pins, the client's identity and versions of TLS. The system's roots and TLS 1.2 or later by default.
    public var tls = TLSConfiguration() {
      didSet { isTLSStandard = false }
    }
    /// Called when a file of `tls`, of the identity or of roots, has changed and cannot be used, with its path and the reason.
    /// The earlier content stays. On any thread. `nil` by default.
    public var fileFailed: (@Sendable (_ path: String, _ reason: String) -> Void)?
    /// Returns the identity for a server that asks for one, by its host and port, if `tls` has none; or `nil` to go without
    /// one. Called for each connection, on another thread than the loop's. `nil` by default.
    public var provideIdentity: (@Sendable (_ host: String, _ port: Int) async -> ClientIdentity?)?
    /// Whether `tls` has its default value, so that clients can share its context.
    private(set) var isTLSStandard = true
    /// Whether redirections are followed (RFC 9110 15.4), by the rules of browsers. If not, the redirecting response is
    /// the result.
    public var followsRedirects = true
    /// Maximum number of redirections of a request. The next one fails with
    /// ``HTTPClientError/Code/tooManyRedirections``. 20 by default.
    public var redirectsMax = RedirectPolicy.countMax
    /// Whether cookies are kept in memory, and sent by later requests of this client (RFC 6265). `false` by default.
    public var keepsCookies = false
    /// Returns the user and the password that a server or a proxy demands, or `nil` for none: the response with the demand
    /// (401, 407) is then the result, or ``HTTPClientError/Code/proxyFailed`` for a tunnel. Asked once for each
    /// request that is refused without them, on another thread than the loop's; accepted credentials are sent without a
    /// question from then on. For a request that sets `Authorization` itself, the question is asked only after the
    /// server has refused that field. `nil` by default: no question, and no answer.
    public var credential: (@Sendable (Challenge) async -> PasswordCredential?)?
    /// Whether the content codings gzip and deflate are asked for and undone. A request with an `Accept-Encoding` of its
    /// own gets the content as it comes. `true` by default.
    public var decodesContent = true
    /// The parts of the program that see each attempt of the client's requests, in the order in which they are called. Empty by
    /// default, and then without any cost. A WebSocket's opening handshake asks for changes only.
    public var interceptors: [any Interceptor] = []
    /// The observer of all requests and connections of the client, on its loop's thread. `nil` by default.
    public var eventObserver: (any HTTPEventObserver)?

    /// Creates the default options.
    public init() {
      var timeouts = Timeouts()
      timeouts.send = .seconds(60)
      timeouts.firstByte = .seconds(60)
      timeouts.idle = .seconds(60)
      self.timeouts = timeouts
    }
  }
}
