import Foundation

/// A mutable request as an object. Use it on one thread at a time. New code uses ``URLRequest``.
open class NSMutableURLRequest: NSURLRequest {
  /// Creates a GET request.
  public convenience init(url: URL) {
    self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: RequestStorage.timeoutIntervalDefault)
  }

  public override init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
    super.init(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
  }

  public required init?(coder aDecoder: NSCoder) { super.init(coder: aDecoder) }

  open override var url: URL? {
    get { value.url }
    set { value.url = newValue }
  }

  open override var mainDocumentURL: URL? {
    get { value.mainDocumentURL }
    set { value.mainDocumentURL = newValue }
  }

  open override var cachePolicy: NSURLRequest.CachePolicy {
    get { value.cachePolicy }
    set { value.cachePolicy = newValue }
  }

  open override var timeoutInterval: TimeInterval {
    get { value.timeoutInterval }
    set { value.timeoutInterval = newValue }
  }

  open override var networkServiceType: NSURLRequest.NetworkServiceType {
    get { value.networkServiceType }
    set { value.networkServiceType = newValue }
  }

  open override var allowsCellularAccess: Bool {
    get { value.allowsCellularAccess }
    set { value.allowsCellularAccess = newValue }
  }

  open override var allowsExpensiveNetworkAccess: Bool {
    get { value.allowsExpensiveNetworkAccess }
    set { value.allowsExpensiveNetworkAccess = newValue }
  }

  open override var allowsConstrainedNetworkAccess: Bool {
    get { value.allowsConstrainedNetworkAccess }
    set { value.allowsConstrainedNetworkAccess = newValue }
  }

  open override var allowsUltraConstrainedNetworkAccess: Bool {
    get { value.allowsUltraConstrainedNetworkAccess }
    set { value.allowsUltraConstrainedNetworkAccess = newValue }
  }

  open override var assumesHTTP3Capable: Bool {
    get { value.assumesHTTP3Capable }
    set { value.assumesHTTP3Capable = newValue }
  }

  open override var attribution: NSURLRequest.Attribution {
    get { value.attribution }
    set { value.attribution = newValue }
  }

  open override var requiresDNSSECValidation: Bool {
    get { value.requiresDNSSECValidation }
    set { value.requiresDNSSECValidation = newValue }
  }

  open override var allowsPersistentDNS: Bool {
    get { value.allowsPersistentDNS }
    set { value.allowsPersistentDNS = newValue }
  }

  open override var cookiePartitionIdentifier: String? {
    get { value.cookiePartitionIdentifier }
    set { value.cookiePartitionIdentifier = newValue }
  }

  open override var httpMethod: String? {
    get { value.httpMethod }
    set { value.httpMethod = newValue }
  }

  open override var allHTTPHeaderFields: [String: String]? {
    get { value.allHTTPHeaderFields }
    set { value.allHTTPHeaderFields = newValue }
  }

  open override var httpBody: Data? {
    get { value.httpBody }
    set { value.httpBody = newValue }
  }

  open override var httpBodyStream: InputStream? {
    get { value.httpBodyStream }
    set { value.httpBodyStream = newValue }
  }

  open override var httpShouldHandleCookies: Bool {
    get { value.httpShouldHandleCookies }
    set { value.httpShouldHandleCookies = newValue }
  }

  open override var httpShouldUsePipelining: Bool {
    get { value.httpShouldUsePipelining }
    set { value.httpShouldUsePipelining = newValue }
  }

  /// See ``URLRequest/setValue(_:forHTTPHeaderField:)``.
  open func setValue(_ value: String?, forHTTPHeaderField field: String) {
    self.value.setValue(value, forHTTPHeaderField: field)
  }

  /// See ``URLRequest/addValue(_:forHTTPHeaderField:)``.
  open func addValue(_ value: String, forHTTPHeaderField field: String) {
    self.value.addValue(value, forHTTPHeaderField: field)
  }

  /// Returns another mutable request with the same content.
  open override func copy(with zone: NSZone? = nil) -> Any { NSMutableURLRequest(value) }
}
