import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The settings of a session. A session copies its configuration when it is made: later changes do not reach the
/// session.
///
/// Use a configuration on one thread at a time.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
  /// A new configuration with the shared cookies, cache and credentials, which are kept on the disk.
  open class var `default`: URLSessionConfiguration { URLSessionConfiguration(storage: Storage()) }

  /// A new configuration with separate cookies, cache and credentials, which are kept in memory only.
  open class var ephemeral: URLSessionConfiguration {
    var storage = Storage()
    storage.cookieStorage = HTTPCookieStorage.ephemeral()
    storage.cache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
    storage.credentialStorage = URLCredentialStorage.ephemeral()
    return URLSessionConfiguration(storage: storage)
  }

  /// A configuration for background transfers, with an identifier: downloads, and uploads of files, that outlive the
  /// process. A session that is made again with the identifier has the tasks of the earlier process, and gives the
  /// delegate what was not delivered (<doc:BackgroundTransfers>). As on Darwin, nothing is cached, redirections are followed
  /// without asking the delegate, tasks wait for a network, and completion handlers are refused.
  open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    var storage = Storage()
    storage.identifier = identifier
    storage.settings.sessionSendsLaunchEvents = true
    storage.cache = nil
    return URLSessionConfiguration(storage: storage)
  }

  struct Storage {
    var identifier: String?
    var settings = Settings()
    var launchCommand: [String] = []
    var connectionProxyDictionary: [AnyHashable: Any]?
    var proxyConfigurations: [ProxyConfiguration] = []
    /// The environment variables that name proxies, or `nil` for those of the process.
    var proxyEnvironment: [String: String]?
    var additionalHeaders: [AnyHashable: Any]?
    var interceptors: [any URLSessionInterceptor] = []
    var cookieStorage: HTTPCookieStorage? = .shared
    var credentialStorage: URLCredentialStorage? = .shared
    var cache: URLCache? = .shared
    var protocolClasses: [AnyClass]? = []
    var trust = TLSTrustSettings()
    /// The directory for state in place of the user's, or `nil`.
    var transferStateHome: String?
    /// Returns the state of the machine for discretionary transfers, or `nil` for the real one.
    var transferConditions: (@Sendable () -> TransferConditions)?
    /// The only kind of addresses to connect to, or `nil` for all.
    var addressFamily: SocketAddress.Family?
    var eventObserver: (any HTTPEventObserver)?
    /// The times and the number of tries of resumable uploads, or `nil` for the session's own.
    var uploadRetry: UploadRetry?
    /// The loop of the session, or `nil` for one of the shared loops. For tests, whose loop has a scripted kernel.
    var loop: ClientLoop?
  }

  var storage: Storage

  init(storage: Storage) { self.storage = storage }

  @available(*, deprecated, renamed: "URLSessionConfiguration.default", message: "Use .default instead.")
  public override init() { storage = Storage() }

  open override func copy() -> Any { copy(with: nil) }

  open func copy(with zone: NSZone?) -> Any { copied() }

  func copied() -> URLSessionConfiguration { URLSessionConfiguration(storage: storage) }

  /// The identifier of background sessions. A session whose configuration has an identifier is a background session.
  open var identifier: String? {
    get { storage.identifier }
    set { storage.identifier = newValue }
  }

  /// The cache policy for requests that do not set one.
  open var requestCachePolicy: URLRequest.CachePolicy {
    get { storage.settings.requestCachePolicy }
    set { storage.settings.requestCachePolicy = newValue }
  }

  /// How long a task may wait for the next byte, in seconds, for requests that do not set a timeout. Fractions and
  /// `.infinity` are valid; 0 stands for 60. The time during which a task is suspended or waits for its delegate does
  /// not count.
  open var timeoutIntervalForRequest: TimeInterval {
    get { storage.settings.timeoutIntervalForRequest }
    set { storage.settings.timeoutIntervalForRequest = newValue }
  }

  /// How long a task may take in all, in seconds. Fractions and `.infinity` are valid; 0 stands for one week. The time
  /// during which a task is suspended does not count, but in a background session, whose tasks outlive the process.
  open var timeoutIntervalForResource: TimeInterval {
    get { storage.settings.timeoutIntervalForResource }
    set { storage.settings.timeoutIntervalForResource = newValue }
  }

  /// The kind of traffic, for requests that do not set one. See ``URLRequest/networkServiceType``.
  open var networkServiceType: URLRequest.NetworkServiceType {
    get { storage.settings.networkServiceType }
    set { storage.settings.networkServiceType = newValue }
  }

  /// No effect: see ``URLRequest/allowsCellularAccess``.
  open var allowsCellularAccess: Bool {
    get { storage.settings.allowsCellularAccess }
    set { storage.settings.allowsCellularAccess = newValue }
  }

  /// No effect: see ``URLRequest/allowsExpensiveNetworkAccess``.
  open var allowsExpensiveNetworkAccess: Bool {
    get { storage.settings.allowsExpensiveNetworkAccess }
    set { storage.settings.allowsExpensiveNetworkAccess = newValue }
  }

  /// No effect: see ``URLRequest/allowsConstrainedNetworkAccess``.
  open var allowsConstrainedNetworkAccess: Bool {
    get { storage.settings.allowsConstrainedNetworkAccess }
    set { storage.settings.allowsConstrainedNetworkAccess = newValue }
  }

  /// No effect: see ``URLRequest/allowsUltraConstrainedNetworkAccess``.
  open var allowsUltraConstrainedNetworkAccess: Bool {
    get { storage.settings.allowsUltraConstrainedNetworkAccess }
    set { storage.settings.allowsUltraConstrainedNetworkAccess = newValue }
  }

  /// Whether a task waits while there is no route to the server, instead of failing at once. The timeout for the
  /// resource keeps running. Tasks of background sessions always wait.
  open var waitsForConnectivity: Bool {
    get { storage.settings.waitsForConnectivity }
    set { storage.settings.waitsForConnectivity = newValue }
  }

  /// Whether the tasks of a background session wait for a quiet machine: see <doc:TimesAndNetwork>. No effect in other
  /// sessions.
  open var isDiscretionary: Bool {
    get { storage.settings.isDiscretionary }
    set { storage.settings.isDiscretionary = newValue }
  }

  /// The identifier of a container that several programs share. A background session with such an identifier keeps its
  /// tasks there, so that another program of the user can find them. No effect in other sessions.
  open var sharedContainerIdentifier: String? {
    get { storage.settings.sharedContainerIdentifier }
    set { storage.settings.sharedContainerIdentifier = newValue }
  }

  /// Whether the transfer service starts ``launchCommand`` for events of a background session. No effect in other
  /// sessions.
  open var sessionSendsLaunchEvents: Bool {
    get { storage.settings.sessionSendsLaunchEvents }
    set { storage.settings.sessionSendsLaunchEvents = newValue }
  }

  /// The proxies, by CFNetwork's keys (`HTTPEnable`, `HTTPProxy`, `HTTPPort`, `HTTPSEnable`, `SOCKSEnable`, ...). If
  /// the dictionary is `nil`, the proxies of the environment apply (`http_proxy`, `https_proxy`, `all_proxy`,
  /// `no_proxy`). If the dictionary is empty, there is no proxy.
  ///
  /// `HTTPProxy` and `HTTPSProxy` are HTTP proxies; `SOCKSProxy` is a SOCKS5 proxy that resolves names. Larkspur alone
  /// accepts another kind before the host, in the form of the environment's variables: `https://proxy.example`,
  /// `socks4://`, `socks4a://`, `socks5://`, `socks5h://`, `http://`. An IPv6 address may have a zone, `fe80::1%eth0`.
  /// The default port is 1080, or 443 for `https://`. All tasks of the session fail with `URLError.cannotConnectToHost`
  /// if an enabled proxy has an unknown kind, an invalid host, or a port that is not a number from 1 to 65535.
  open var connectionProxyDictionary: [AnyHashable: Any]? {
    get { storage.connectionProxyDictionary }
    set { storage.connectionProxyDictionary = newValue }
  }

  /// The lowest version of TLS. Values below TLS 1.2 count as TLS 1.2, because earlier versions are broken.
  open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
    get { storage.settings.tlsMinimum }
    set { storage.settings.tlsMinimum = newValue }
  }

  /// The highest version of TLS. The latest version is TLS 1.3. Values below TLS 1.2 count as TLS 1.2.
  open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
    get { storage.settings.tlsMaximum }
    set { storage.settings.tlsMaximum = newValue }
  }

  /// The roots that the session's connections trust, the keys that hosts are pinned to, and the client's own
  /// certificate. An addition of Larkspur's: on other platforms a delegate does this.
  open var tlsTrustSettings: TLSTrustSettings {
    get { storage.trust }
    set { storage.trust = newValue }
  }

  /// Whether a connection may carry further requests before the first one is answered. Applies to GET and HEAD without
  /// a body. A request is not pipelined if it goes to an HTTP proxy that forwards it, if its task has a delegate that
  /// gets interim responses (``URLSessionSelectiveDelegate`` can do without them), or if the program uses the task's
  /// ``URLSessionTask/progress``.
  open var httpShouldUsePipelining: Bool {
    get { storage.settings.shouldUsePipelining }
    set { storage.settings.shouldUsePipelining = newValue }
  }

  /// Whether requests send cookies. ``httpCookieAcceptPolicy`` decides which cookies are stored.
  open var httpShouldSetCookies: Bool {
    get { storage.settings.shouldSetCookies }
    set { storage.settings.shouldSetCookies = newValue }
  }

  /// The cookies that are stored. Until the program sets a policy, the property returns `onlyFromMainDocumentDomain`,
  /// and the policy of the cookie storage applies.
  open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
    get { storage.settings.cookieAcceptPolicy?.wrappedValue ?? .onlyFromMainDocumentDomain }
    set { storage.settings.cookieAcceptPolicy = RawSetting(wrappedValue: newValue) }
  }

  /// The header fields that every request gets unless it sets them itself.
  open var httpAdditionalHeaders: [AnyHashable: Any]? {
    get { storage.additionalHeaders }
    set { storage.additionalHeaders = newValue }
  }

  /// The maximum number of simultaneous connections to one host; at least 1. The default is 6, as in browsers. Further
  /// tasks wait in a queue, in the order of their priorities and of `resume`; that time counts towards
  /// ``timeoutIntervalForResource`` only, and not towards ``timeoutIntervalForRequest``. For plain HTTP through a proxy
  /// the proxy is the host: its connections serve all origins. Connections that a task's own delegate decides about count
  /// separately for that delegate: see <doc:Authentication>.
  open var httpMaximumConnectionsPerHost: Int {
    get { storage.settings.maximumConnectionsPerHost }
    set { storage.settings.maximumConnectionsPerHost = newValue }
  }

  /// The storage that cookies are read from and stored in. If it is `nil`, no cookies are sent or stored.
  open var httpCookieStorage: HTTPCookieStorage? {
    get { storage.cookieStorage }
    set { storage.cookieStorage = newValue }
  }

  /// The storage that is searched for credentials before the delegate is called, and that keeps credentials according
  /// to their persistence. If it is `nil`, there is no such storage.
  open var urlCredentialStorage: URLCredentialStorage? {
    get { storage.credentialStorage }
    set { storage.credentialStorage = newValue }
  }

  /// The cache of responses. If it is `nil`, nothing is cached.
  open var urlCache: URLCache? {
    get { storage.cache }
    set { storage.cache = newValue }
  }

  /// Whether connections stay open when a program moves to the background. The value is kept and has no effect.
  open var shouldUseExtendedBackgroundIdleMode: Bool {
    get { storage.settings.shouldUseExtendedBackgroundIdleMode }
    set { storage.settings.shouldUseExtendedBackgroundIdleMode = newValue }
  }

  /// The subclasses of ``URLProtocol`` that are asked, in their order, before Larkspur loads a request itself, and
  /// before the classes that are registered for all sessions. Empty by default.
  open var protocolClasses: [AnyClass]? {
    get { storage.protocolClasses }
    set { storage.protocolClasses = newValue }
  }
}
