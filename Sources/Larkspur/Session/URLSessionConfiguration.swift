import Foundation

/// How a session works. A session copies it when it is made: later changes do not reach the session.
///
/// Use one on one thread at a time.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
  /// A configuration with the shared cookies, cache and credentials, all of which are kept on the disk. A new one each time.
  open class var `default`: URLSessionConfiguration { URLSessionConfiguration(storage: Storage()) }

  /// A configuration whose cookies, cache and credentials are its own, and only in memory. A new one each time.
  open class var ephemeral: URLSessionConfiguration {
    var storage = Storage()
    storage.cookieStorage = HTTPCookieStorage.ephemeral()
    storage.cache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: nil)
    storage.credentialStorage = URLCredentialStorage.ephemeral()
    return URLSessionConfiguration(storage: storage)
  }

  /// A configuration whose transfers bear a name. In this version they end with the process: a transfer that has to survive
  /// it is resumed from its resume data. As on Darwin, nothing is cached, redirections are followed without a question, and
  /// tasks wait for a network.
  open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    var storage = Storage()
    storage.identifier = identifier
    storage.sessionSendsLaunchEvents = true
    storage.cache = nil
    return URLSessionConfiguration(storage: storage)
  }

  struct Storage {
    var identifier: String?
    var requestCachePolicy = URLRequest.CachePolicy.useProtocolCachePolicy
    var timeoutIntervalForRequest = Self.timeoutForRequestDefault
    var timeoutIntervalForResource = Self.timeoutForResourceDefault
    var networkServiceType = URLRequest.NetworkServiceType.default
    var allowsCellularAccess = true
    var allowsExpensiveNetworkAccess = true
    var allowsConstrainedNetworkAccess = true
    var waitsForConnectivity = false
    var isDiscretionary = false
    var sharedContainerIdentifier: String?
    var sessionSendsLaunchEvents = false
    var connectionProxyDictionary: [AnyHashable: Any]?
    var tlsMinimum = tls_protocol_version_t.TLSv12
    var tlsMaximum = tls_protocol_version_t.TLSv13
    var shouldUsePipelining = false
    var shouldSetCookies = true
    /// Nil: that of the cookie storage.
    var cookieAcceptPolicy: HTTPCookie.AcceptPolicy?
    var additionalHeaders: [AnyHashable: Any]?
    var maximumConnectionsPerHost = 6
    var cookieStorage: HTTPCookieStorage? = .shared
    var credentialStorage: URLCredentialStorage? = .shared
    var cache: URLCache? = .shared
    var shouldUseExtendedBackgroundIdleMode = false
    var protocolClasses: [AnyClass]? = []
    var trust = TLSTrustSettings()
    var requiresDNSSECValidation = false
    var multipathServiceType = MultipathServiceType.none
    var usesClassicLoadingMode = true
    var enablesEarlyData = false

    static let timeoutForRequestDefault: TimeInterval = 60
    static let timeoutForResourceDefault: TimeInterval = 7 * 24 * 60 * 60

    /// What counts, in seconds.
    var timeoutForRequest: TimeInterval { timeoutIntervalForRequest.asTimeout ?? Self.timeoutForRequestDefault }
    var timeoutForResource: TimeInterval { timeoutIntervalForResource.asTimeout ?? Self.timeoutForResourceDefault }
  }

  var storage: Storage

  init(storage: Storage) { self.storage = storage }

  @available(*, deprecated, renamed: "URLSessionConfiguration.default", message: "Use .default instead.")
  public override init() { storage = Storage() }

  open override func copy() -> Any { copy(with: nil) }

  open func copy(with zone: NSZone?) -> Any { copied() }

  func copied() -> URLSessionConfiguration { URLSessionConfiguration(storage: storage) }

  /// Set for a background configuration.
  open var identifier: String? {
    get { storage.identifier }
    set { storage.identifier = newValue }
  }

  /// For requests that leave it open.
  open var requestCachePolicy: URLRequest.CachePolicy {
    get { storage.requestCachePolicy }
    set { storage.requestCachePolicy = newValue }
  }

  /// How long a task may wait for the next byte, in seconds: fractions and `.infinity` will do; 0 is 60. The time of a task
  /// that is suspended does not count, nor does that of a delegate that thinks. For requests that leave it open.
  open var timeoutIntervalForRequest: TimeInterval {
    get { storage.timeoutIntervalForRequest }
    set { storage.timeoutIntervalForRequest = newValue }
  }

  /// How long a task may take in all, in seconds: fractions and `.infinity` will do; 0 is a week. Suspended time does not
  /// count.
  open var timeoutIntervalForResource: TimeInterval {
    get { storage.timeoutIntervalForResource }
    set { storage.timeoutIntervalForResource = newValue }
  }

  /// What the traffic is for, unless a request says otherwise. See ``URLRequest/networkServiceType``.
  open var networkServiceType: URLRequest.NetworkServiceType {
    get { storage.networkServiceType }
    set { storage.networkServiceType = newValue }
  }

  /// No effect: see ``URLRequest/allowsCellularAccess``.
  open var allowsCellularAccess: Bool {
    get { storage.allowsCellularAccess }
    set { storage.allowsCellularAccess = newValue }
  }

  /// No effect: see ``URLRequest/allowsExpensiveNetworkAccess``.
  open var allowsExpensiveNetworkAccess: Bool {
    get { storage.allowsExpensiveNetworkAccess }
    set { storage.allowsExpensiveNetworkAccess = newValue }
  }

  /// No effect: see ``URLRequest/allowsConstrainedNetworkAccess``.
  open var allowsConstrainedNetworkAccess: Bool {
    get { storage.allowsConstrainedNetworkAccess }
    set { storage.allowsConstrainedNetworkAccess = newValue }
  }

  /// Whether a task waits when there is no way to the server, in place of failing at once. The time of the resource goes on.
  /// Those of background sessions always do.
  open var waitsForConnectivity: Bool {
    get { storage.waitsForConnectivity }
    set { storage.waitsForConnectivity = newValue }
  }

  /// Whether the system may choose the time of a background transfer. Kept, without effect.
  open var isDiscretionary: Bool {
    get { storage.isDiscretionary }
    set { storage.isDiscretionary = newValue }
  }

  /// Kept, without effect: there are no containers.
  open var sharedContainerIdentifier: String? {
    get { storage.sharedContainerIdentifier }
    set { storage.sharedContainerIdentifier = newValue }
  }

  /// Kept, without effect: nothing launches a program for the sake of its transfers.
  open var sessionSendsLaunchEvents: Bool {
    get { storage.sessionSendsLaunchEvents }
    set { storage.sessionSendsLaunchEvents = newValue }
  }

  /// The proxies, by CFNetwork's keys (`HTTPEnable`, `HTTPProxy`, `HTTPPort`, `HTTPSEnable`, `SOCKSEnable`, ...). If it is
  /// `nil`, the environment's proxies count (`http_proxy`, `https_proxy`, `all_proxy`, `no_proxy`). If it is empty, there is no
  /// proxy.
  ///
  /// `HTTPProxy` and `HTTPSProxy` are HTTP proxies, `SOCKSProxy` is a SOCKS5 proxy that looks names up. Only Larkspur takes
  /// another kind before the host, as the environment's variables have it: `https://proxy.example`, `socks4://`, `socks4a://`,
  /// `socks5://`, `socks5h://`, `http://`. An IPv6 address may have a zone, `fe80::1%eth0`. Without a port it is 1080, or 443
  /// for `https://`. All tasks of the session fail with `URLError.cannotConnectToHost` if a proxy that is enabled has an unknown
  /// kind, a host that cannot be one, or a port that is not a number from 1 to 65535.
  open var connectionProxyDictionary: [AnyHashable: Any]? {
    get { storage.connectionProxyDictionary }
    set { storage.connectionProxyDictionary = newValue }
  }

  /// At least TLS 1.2, whatever is set: earlier versions are broken.
  open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
    get { storage.tlsMinimum }
    set { storage.tlsMinimum = newValue }
  }

  /// TLS 1.3 is the latest there is.
  open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
    get { storage.tlsMaximum }
    set { storage.tlsMaximum = newValue }
  }

  /// Whom the session's connections trust, which keys hosts are pinned to, and the client's own certificate. Only Larkspur
  /// has it: elsewhere the same takes a delegate.
  open var tlsTrustSettings: TLSTrustSettings {
    get { storage.trust }
    set { storage.trust = newValue }
  }

  /// Whether requests may follow each other on a connection before they are answered: GET and HEAD without a body, and
  /// without a delegate that hears of interim responses (``URLSessionSelectiveDelegate``).
  open var httpShouldUsePipelining: Bool {
    get { storage.shouldUsePipelining }
    set { storage.shouldUsePipelining = newValue }
  }

  /// Whether cookies are sent. Which are kept is ``httpCookieAcceptPolicy``'s affair.
  open var httpShouldSetCookies: Bool {
    get { storage.shouldSetCookies }
    set { storage.shouldSetCookies = newValue }
  }

  /// Which cookies are kept. Until it is set it is `onlyFromMainDocumentDomain`, and the cookie storage's own policy counts.
  open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
    get { storage.cookieAcceptPolicy ?? .onlyFromMainDocumentDomain }
    set { storage.cookieAcceptPolicy = newValue }
  }

  /// Header fields for every request that does not set them itself.
  open var httpAdditionalHeaders: [AnyHashable: Any]? {
    get { storage.additionalHeaders }
    set { storage.additionalHeaders = newValue }
  }

  /// The number of connections to one host at a time. At least one. For plain HTTP through a proxy the proxy is the host: its
  /// connections serve all origins. Connections that a task's own delegate decides about are counted for that delegate: see
  /// <doc:Authentication>.
  open var httpMaximumConnectionsPerHost: Int {
    get { storage.maximumConnectionsPerHost }
    set { storage.maximumConnectionsPerHost = newValue }
  }

  /// Where cookies come from, and are kept. Nil: none are sent, and none are kept.
  open var httpCookieStorage: HTTPCookieStorage? {
    get { storage.cookieStorage }
    set { storage.cookieStorage = newValue }
  }

  /// Where credentials are looked for before the delegate is asked, and kept as their persistence says. Nil: nowhere.
  open var urlCredentialStorage: URLCredentialStorage? {
    get { storage.credentialStorage }
    set { storage.credentialStorage = newValue }
  }

  /// Nil: nothing is cached.
  open var urlCache: URLCache? {
    get { storage.cache }
    set { storage.cache = newValue }
  }

  /// Kept, without effect.
  open var shouldUseExtendedBackgroundIdleMode: Bool {
    get { storage.shouldUseExtendedBackgroundIdleMode }
    set { storage.shouldUseExtendedBackgroundIdleMode = newValue }
  }

  /// Subclasses of ``URLProtocol`` that are asked before Larkspur loads a request itself, the first one first, and before
  /// those that are registered for all sessions. Empty to begin with.
  open var protocolClasses: [AnyClass]? {
    get { storage.protocolClasses }
    set { storage.protocolClasses = newValue }
  }
}
