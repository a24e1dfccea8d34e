import Foundation

/// A request: a URL, and how it is to be loaded.
///
/// A value: copies do not share changes, and a copy costs a reference count. It may be used on any thread, but for its body
/// stream, which whoever loads the request reads.
public struct URLRequest: ReferenceConvertible, CustomReflectable, @unchecked Sendable {
  public typealias ReferenceType = NSURLRequest
  public typealias CachePolicy = NSURLRequest.CachePolicy
  public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
  public typealias Attribution = NSURLRequest.Attribution

  private var storage: RequestStorage

  /// Reads without a copy.
  var own: RequestStorage { storage }

  /// Writes: what other copies see stays as it is.
  private mutating func change<T>(_ body: (RequestStorage) -> T) -> T {
    if !isKnownUniquelyReferenced(&storage) { storage = RequestStorage(copying: storage) }
    return body(storage)
  }

  /// A GET request.
  ///
  /// - Parameters:
  ///   - url: What is asked for. One that is relative to another is resolved.
  ///   - cachePolicy: What the cache may be used for.
  ///   - timeoutInterval: In seconds. If it is 60, what the session's configuration says counts.
  public init(
    url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60.0
  ) {
    storage = RequestStorage(url: url.baseURL == nil ? url : url.absoluteURL)
    storage.cachePolicy = cachePolicy
    if timeoutInterval != RequestStorage.timeoutIntervalDefault { storage.timeoutInterval = timeoutInterval }
  }

  init(_ storage: RequestStorage) { self.storage = storage }

  /// What is asked for. Nil: the request cannot be loaded.
  public var url: URL? {
    get { storage.url }
    set { change { $0.url = newValue } }
  }

  /// What the cache may be used for. `.useProtocolCachePolicy` leaves it to the session's configuration.
  public var cachePolicy: CachePolicy {
    get { storage.cachePolicy }
    set { change { $0.cachePolicy = newValue } }
  }

  /// How long the task may wait for the next byte, in seconds; any fraction, and `.infinity`, will do. Once set it counts in
  /// place of the configuration's `timeoutIntervalForRequest`, unless it is 0.
  public var timeoutInterval: TimeInterval {
    get { storage.timeoutInterval ?? RequestStorage.timeoutIntervalDefault }
    set { change { $0.timeoutInterval = newValue } }
  }

  /// The document that this request is a part of: cookies of other sites may be refused on its account.
  public var mainDocumentURL: URL? {
    get { storage.mainDocumentURL }
    set { change { $0.mainDocumentURL = newValue } }
  }

  /// What the traffic is for: its packets are marked so (RFC 4594), on connections of their own, and networks and the kernel
  /// may treat them by it. `default`: as the configuration says. Who of a session's tasks goes first is said by
  /// ``URLSessionTask/priority``.
  public var networkServiceType: NetworkServiceType {
    get { storage.networkServiceType }
    set { change { $0.networkServiceType = newValue } }
  }

  /// No effect on hosts without a cellular modem, and so kept only for the sake of the same source.
  public var allowsCellularAccess: Bool {
    get { storage.flags.contains(.cellular) }
    set { change { $0.flags.set(.cellular, newValue) } }
  }

  /// Whether interfaces that cost by the byte may be used. No Linux interface says so of itself: kept as it is set.
  public var allowsExpensiveNetworkAccess: Bool {
    get { storage.flags.contains(.expensive) }
    set { change { $0.flags.set(.expensive, newValue) } }
  }

  /// Whether interfaces in a low-data mode may be used. No Linux interface says so of itself: kept as it is set.
  public var allowsConstrainedNetworkAccess: Bool {
    get { storage.flags.contains(.constrained) }
    set { change { $0.flags.set(.constrained, newValue) } }
  }

  /// HTTP/3 is not spoken: kept as it is set.
  public var assumesHTTP3Capable: Bool {
    get { storage.flags.contains(.http3) }
    set { change { $0.flags.set(.http3, newValue) } }
  }

  /// Who has chosen the URL. Kept as it is set, for whoever reads it.
  public var attribution: Attribution {
    get { storage.flags.contains(.byTheUser) ? .user : .developer }
    set { change { $0.flags.set(.byTheUser, newValue == .user) } }
  }

  /// Kept as it is set, without effect: whether the answers of the domain name system are validated is a matter of the
  /// system's resolver and its settings.
  public var requiresDNSSECValidation: Bool {
    get { storage.flags.contains(.dnssec) }
    set { change { $0.flags.set(.dnssec, newValue) } }
  }

  /// Kept as it is set, without effect: addresses are not kept on the disk.
  public var allowsPersistentDNS: Bool {
    get { storage.flags.contains(.persistentDNS) }
    set { change { $0.flags.set(.persistentDNS, newValue) } }
  }

  /// Kept as it is set, without effect: a cookie storage has one part.
  public var cookiePartitionIdentifier: String? {
    get { storage.cookiePartition }
    set { change { $0.cookiePartition = newValue } }
  }

  /// The method. GET, HEAD, POST, PUT, DELETE and CONNECT are put into upper case, as Foundation does it; others stay as
  /// they are written, for a server tells them apart by case. Nil is GET.
  public var httpMethod: String? {
    get { storage.method }
    set { change { $0.method = RequestStorage.method(newValue) } }
  }

  /// All header fields. Names are compared without regard to case by everything else here; a dictionary that has one name
  /// twice keeps both.
  public var allHTTPHeaderFields: [String: String]? {
    get { storage.fields?.dictionary }
    set { change { $0.fields = newValue.map(RequestFields.init) } }
  }

  /// The value of a field, whose name is compared without regard to case.
  public func value(forHTTPHeaderField field: String) -> String? { storage.fields?.value(of: field) }

  /// Sets a field in place of any of that name, or removes it if `value` is nil. The name's words are capitalised, as
  /// Foundation does it: `x-api-key` becomes `X-Api-Key`. A value with a NUL, or with a line end that is not followed by a blank, as
  /// the folds of old fields are (RFC 9112 5.2), is passed over.
  public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
    change {
      var fields = $0.fields.take() ?? RequestFields()
      fields.set(field, to: value)
      $0.fields = fields
    }
  }

  /// Adds to a field, after a comma if there is one of that name already (RFC 9110 5.3). Values are passed over as by
  /// ``setValue(_:forHTTPHeaderField:)``.
  public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {
    change {
      var fields = $0.fields.take() ?? RequestFields()
      fields.add(field, value)
      $0.fields = fields
    }
  }

  /// The body. Setting it removes the stream.
  public var httpBody: Data? {
    get { if case .data(let data) = storage.body { data } else { nil } }
    set { change { $0.body = newValue.map { .data($0) } ?? .none } }
  }

  /// The body as a stream, which can be read once. Setting it removes the data. A `URLProtocol` can read data from it, too.
  ///
  /// Its reads may block: they have a thread to themselves. If the task ends meanwhile, the stream is closed behind the read; but one of
  /// a class of the program's own that goes on reading for a second is closed from another thread, which is to end the read.
  /// (A ``URLSessionReadyStream`` is not, and needs no thread if its reads do not wait.)
  public var httpBodyStream: InputStream? {
    get { if case .stream(let stream) = storage.body { stream } else { storage.dataStream } }
    set { change { $0.body = newValue.map { .stream($0) } ?? .none } }
  }

  /// Data of the body can be read from the stream as well, until another body is set.
  mutating func offerDataAsStream() {
    if case .data(let data) = storage.body { change { $0.dataStream = InputStream(data: data) } }
  }

  /// Whether cookies are sent, and those of the response kept.
  public var httpShouldHandleCookies: Bool {
    get { storage.flags.contains(.cookies) }
    set { change { $0.flags.set(.cookies, newValue) } }
  }

  /// Whether this request may follow another one on its connection before that has been answered, as if the session's
  /// configuration said so. See ``URLSessionConfiguration/httpShouldUsePipelining``.
  public var httpShouldUsePipelining: Bool {
    get { storage.flags.contains(.pipelining) }
    set { change { $0.flags.set(.pipelining, newValue) } }
  }

  // MARK: - Of protocols

  func property(_ key: String) -> Any? { storage.properties[key] }

  mutating func setProperty(_ value: Any?, _ key: String) { change { $0.properties[key] = value } }
}

extension URLRequest {
  /// Timeouts, pipelining, the service type and what protocols remember do not count. Streams are equal if they are the same one.
  public static func == (lhs: URLRequest, rhs: URLRequest) -> Bool { lhs.storage == rhs.storage }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(storage.url)
    hasher.combine(storage.mainDocumentURL)
    hasher.combine(storage.method)
    hasher.combine(storage.cachePolicy)
    hasher.combine(storage.flags.subtracting(.pipelining).rawValue)
    hasher.combine(storage.caselessFields)
    switch storage.body {
    case .none: break
    case .data(let data): hasher.combine(data)
    case .stream(let stream): hasher.combine(ObjectIdentifier(stream))
    }
  }

  public var description: String { url?.description ?? "url: nil" }

  public var debugDescription: String { description }

  public var customMirror: Mirror {
    let children: [(label: String?, value: Any)] = [
      ("url", url as Any), ("cachePolicy", cachePolicy.rawValue), ("timeoutInterval", timeoutInterval),
      ("mainDocumentURL", mainDocumentURL as Any), ("networkServiceType", networkServiceType),
      ("allowsCellularAccess", allowsCellularAccess), ("httpMethod", httpMethod as Any),
      ("allHTTPHeaderFields", allHTTPHeaderFields as Any), ("httpBody", httpBody as Any),
      ("httpBodyStream", httpBodyStream as Any), ("httpShouldHandleCookies", httpShouldHandleCookies),
      ("httpShouldUsePipelining", storage.flags.contains(.pipelining)),
    ]
    return Mirror(self, children: children, displayStyle: .struct)
  }
}

/// `request as NSURLRequest`, and back.
extension URLRequest: _ObjectiveCBridgeable {
  public static func _getObjectiveCType() -> Any.Type { NSURLRequest.self }

  /// A mutable one of its own, as on Darwin: programs cast it to that.
  public func _bridgeToObjectiveC() -> NSURLRequest { NSMutableURLRequest(self) }

  public static func _forceBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) {
    result = source.value
  }

  public static func _conditionallyBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) -> Bool {
    result = source.value
    return true
  }

  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
    // Nil never comes here but from a broken cast; a request without a URL fails when it is loaded.
    source?.value ?? URLRequest(RequestStorage(url: nil))
  }
}

/// As an element of Foundation's collections it is a `URLRequest`, and equal to one.
extension NSURLRequest: _StructTypeBridgeable {
  /// What stands for one there.
  public typealias _StructType = URLRequest

  /// The same request.
  public func _bridgeToSwift() -> URLRequest { value }
}
