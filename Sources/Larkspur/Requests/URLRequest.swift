import Foundation
import LarkspurHTTP

/// A request: a URL, and how to load it.
///
/// A value: copies do not share changes, and a copy costs one reference count. A request may be used on any thread,
/// except for its body stream, which the load reads.
public struct URLRequest: ReferenceConvertible, CustomReflectable, @unchecked Sendable {
  public typealias ReferenceType = NSURLRequest
  /// The way in which the cache takes part in loading the request.
  public typealias CachePolicy = NSURLRequest.CachePolicy
  /// The kind of traffic that the request stands for.
  public typealias NetworkServiceType = NSURLRequest.NetworkServiceType

  private var storage: RequestStorage

  /// The storage, for reading without a copy.
  var own: RequestStorage { storage }

  /// Changes the storage, after copying it if other requests share it.
  mutating func change<T>(_ body: (RequestStorage) -> T) -> T {
    if !isKnownUniquelyReferenced(&storage) { storage = RequestStorage(copying: storage) }
    return body(storage)
  }

  /// Creates a GET request.
  ///
  /// - Parameters:
  ///   - url: The resource. A relative URL is resolved against its base.
  ///   - cachePolicy: How the load uses the cache.
  ///   - timeoutInterval: In seconds. With the default of 60, the timeout of the session's configuration counts.
  public init(
    url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60.0
  ) {
    storage = RequestStorage(url: url.baseURL == nil ? url : url.absoluteURL)
    storage.cachePolicy = cachePolicy
    if timeoutInterval != RequestStorage.timeoutIntervalDefault { storage.timeoutInterval = timeoutInterval }
  }

  init(_ storage: RequestStorage) { self.storage = storage }

  /// The URL of the resource. A request without one cannot be loaded.
  public var url: URL? {
    get { storage.url }
    set {
      change {
        $0.url = newValue
        $0.exactForm = $0.exactForm?.withoutTarget
      }
    }
  }

  /// How the load uses the cache. `.useProtocolCachePolicy` leaves that to the session's configuration.
  public var cachePolicy: CachePolicy {
    get { storage.cachePolicy }
    set { change { $0.cachePolicy = newValue } }
  }

  /// How long the task may wait for the next byte, in seconds, with any fraction; `.infinity` means without limit. Once
  /// set, the value replaces the configuration's `timeoutIntervalForRequest`, unless it is 0 or less.
  public var timeoutInterval: TimeInterval {
    get { storage.timeoutInterval ?? RequestStorage.timeoutIntervalDefault }
    set { change { $0.timeoutInterval = newValue } }
  }

  /// The main document that this request is a part of. A cookie policy may refuse cookies of other sites on its
  /// account.
  public var mainDocumentURL: URL? {
    get { storage.mainDocumentURL }
    set { change { $0.mainDocumentURL = newValue } }
  }

  /// The purpose of the traffic. Packets are marked with it (RFC 4594), on separate connections; networks and the
  /// kernel may treat them accordingly. With `default`, the configuration's value counts. The order of a session's
  /// tasks depends on ``URLSessionTask/priority``.
  public var networkServiceType: NetworkServiceType {
    get { storage.networkServiceType }
    set { change { $0.networkServiceType = newValue } }
  }

  /// Stored without effect. Present for source compatibility.
  public var allowsCellularAccess: Bool {
    get { storage.flags.contains(.cellular) }
    set { change { $0.flags.set(.cellular, newValue) } }
  }

  /// Whether interfaces that charge for each byte may be used. Stored without effect: Linux interfaces do not report
  /// this.
  public var allowsExpensiveNetworkAccess: Bool {
    get { storage.flags.contains(.expensive) }
    set { change { $0.flags.set(.expensive, newValue) } }
  }

  /// Whether interfaces in a low-data mode may be used. Stored without effect: Linux interfaces do not report this.
  public var allowsConstrainedNetworkAccess: Bool {
    get { storage.flags.contains(.constrained) }
    set { change { $0.flags.set(.constrained, newValue) } }
  }

  /// Whether interfaces that are ultra constrained, such as satellites', may be used. `false` by default. Stored without
  /// effect: Linux interfaces do not report this.
  public var allowsUltraConstrainedNetworkAccess: Bool {
    get { storage.flags.contains(.ultraConstrained) }
    set { change { $0.flags.set(.ultraConstrained, newValue) } }
  }

  /// Stored without effect: HTTP/3 is not supported.
  public var assumesHTTP3Capable: Bool {
    get { storage.flags.contains(.http3) }
    set { change { $0.flags.set(.http3, newValue) } }
  }

  /// The origin of the URL: the program or the user. Stored for programs that read it; sessions do not use it.
  public var attribution: Attribution {
    get { storage.flags.contains(.byTheUser) ? .user : .developer }
    set { change { $0.flags.set(.byTheUser, newValue == .user) } }
  }

  /// Stored without effect: DNSSEC validation is up to the system's resolver and its settings.
  public var requiresDNSSECValidation: Bool {
    get { storage.flags.contains(.dnssec) }
    set { change { $0.flags.set(.dnssec, newValue) } }
  }

  /// Stored without effect: addresses are not kept on disk.
  public var allowsPersistentDNS: Bool {
    get { storage.flags.contains(.persistentDNS) }
    set { change { $0.flags.set(.persistentDNS, newValue) } }
  }

  /// Stored without effect: a cookie storage has one partition.
  public var cookiePartitionIdentifier: String? {
    get { storage.cookiePartition }
    set { change { $0.cookiePartition = newValue } }
  }

  /// The method. `nil` sets GET. GET, HEAD, POST, PUT, DELETE and CONNECT are converted to upper case, as in
  /// Foundation; other methods stay as they are, because servers distinguish them by case.
  public var httpMethod: String? {
    get { storage.method }
    set { change { $0.method = RequestStorage.method(newValue) } }
  }

  /// All header fields. Everything else here compares names without regard to case, but a dictionary that has one name
  /// in two spellings keeps both.
  public var allHTTPHeaderFields: [String: String]? {
    get { storage.fields?.dictionary }
    set { change { $0.fields = newValue.map { FieldList($0) } } }
  }

  /// Returns the value of a field. Its name is compared without regard to case.
  public func value(forHTTPHeaderField field: String) -> String? { storage.fields?.firstValue(named: field) }

  /// Sets a field in place of any of that name, or removes it if `value` is `nil`.
  ///
  /// The name's words are capitalised, as in Foundation: `x-api-key` becomes `X-Api-Key`. The call has no effect if the
  /// value has a NUL, or a line end that is not followed by a blank, as it is in the folds of old fields (RFC 9112
  /// 5.2).
  public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
    change {
      var fields = $0.fields.take() ?? FieldList()
      fields.set(field, to: value)
      $0.fields = fields
    }
  }

  /// Adds a value to a field, after a comma if the request has a field of that name (RFC 9110 5.3). Values that
  /// ``setValue(_:forHTTPHeaderField:)`` ignores have no effect here either.
  public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {
    change {
      var fields = $0.fields.take() ?? FieldList()
      fields.add(field, value)
      $0.fields = fields
    }
  }

  /// The body. Setting it removes the stream.
  public var httpBody: Data? {
    get { if case .data(let data) = storage.body { data } else { nil } }
    set { change { $0.body = newValue.map { .data($0) } ?? .none } }
  }

  /// The body as a stream, which can be read once. Setting it removes the data. A `URLProtocol` can also read a data
  /// body from this property.
  ///
  /// Reads of the stream may block, because it has a dedicated thread. If the task ends during a read, the stream is
  /// closed after the read. If the stream is of a program's subclass and the read takes longer than one second, the
  /// stream is closed from another thread, and its `close()` has to end the read. A
  /// ``URLSessionNonblockingInputStream`` is never closed during a read, and needs no dedicated thread if its reads do
  /// not wait.
  public var httpBodyStream: InputStream? {
    get { if case .stream(let stream) = storage.body { stream } else { storage.dataStream } }
    set { change { $0.body = newValue.map { .stream($0) } ?? .none } }
  }

  /// Makes a data body readable from `httpBodyStream` as well, until another body is set.
  mutating func offerDataAsStream() {
    if case .data(let data) = storage.body { change { $0.dataStream = InputStream(data: data) } }
  }

  /// Whether the load sends cookies, and stores those of the response.
  public var httpShouldHandleCookies: Bool {
    get { storage.flags.contains(.cookies) }
    set { change { $0.flags.set(.cookies, newValue) } }
  }

  /// Whether this request may be sent on a connection whose previous request has not been answered, as if the session's
  /// configuration allowed it. See ``URLSessionConfiguration/httpShouldUsePipelining``.
  public var httpShouldUsePipelining: Bool {
    get { storage.flags.contains(.pipelining) }
    set { change { $0.flags.set(.pipelining, newValue) } }
  }

  // MARK: - Properties of protocols

  func property(_ key: String) -> Any? { storage.properties[key] }

  mutating func setProperty(_ value: Any?, _ key: String) { change { $0.properties[key] = value } }
}

extension URLRequest {
  /// Compares two requests. Timeouts, pipelining, service types and the properties that protocols set do not count.
  /// Streams are equal if they are one object.
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

/// Bridges by `request as NSURLRequest` and back.
extension URLRequest: _ObjectiveCBridgeable {
  public static func _getObjectiveCType() -> Any.Type { NSURLRequest.self }

  /// Returns a new `NSMutableURLRequest`, as on Darwin, because programs cast the result to that class.
  public func _bridgeToObjectiveC() -> NSURLRequest { NSMutableURLRequest(self) }

  public static func _forceBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) {
    result = source.value
  }

  public static func _conditionallyBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) -> Bool {
    result = source.value
    return true
  }

  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
    // `nil` comes here only from a failed cast; a request without a URL fails when it is loaded.
    source?.value ?? URLRequest(RequestStorage(url: nil))
  }
}

/// Makes an `NSURLRequest` in Foundation's collections appear as a `URLRequest`, and equal to one.
extension NSURLRequest: _StructTypeBridgeable {
  /// The bridged type.
  public typealias _StructType = URLRequest

  /// Returns the request as a value.
  public func _bridgeToSwift() -> URLRequest { value }
}
