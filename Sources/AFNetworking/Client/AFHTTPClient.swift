import Dispatch
import Foundation
import Larkspur

/// How an ``AFHTTPClient`` writes parameters into a body.
public enum AFHTTPClientParameterEncoding: UInt32, Hashable, Sendable {
  /// As a form: `a=1&b=2`.
  case form = 0
  /// As JSON.
  case json = 1
  /// As a property list in XML.
  case propertyList = 2
}

/// AFNetworking's Objective-C name of ``AFHTTPClientParameterEncoding/form``.
public let AFFormURLParameterEncoding = AFHTTPClientParameterEncoding.form
/// AFNetworking's Objective-C name of ``AFHTTPClientParameterEncoding/json``.
public let AFJSONParameterEncoding = AFHTTPClientParameterEncoding.json
/// AFNetworking's Objective-C name of ``AFHTTPClientParameterEncoding/propertyList``.
public let AFPropertyListParameterEncoding = AFHTTPClientParameterEncoding.propertyList

/// AFNetworking 1's client for one service: default header fields, paths relative to a base URL, and a registry of
/// operation classes that choose themselves for a request.
///
/// New code uses `AFHTTPSessionManager`, or `URLSession` itself. For any thread. Results come on the main queue: see
/// ``AFHTTPRequestOperation/successCallbackQueue``, and ``completionQueue`` here.
open class AFHTTPClient: NSObject, NSCoding, NSCopying, @unchecked Sendable {
  struct Details {
    var stringEncoding = String.Encoding.utf8.rawValue
    var parameterEncoding = AFHTTPClientParameterEncoding.form
    /// The latest comes first.
    var operationClasses: [AFHTTPRequestOperation.Type] = []
    var fields: [String: String] = [:]
    var credential: URLCredential?
    var pinningMode = AFSSLPinningMode.none
    var allowsInvalidCertificates = false
    /// Of the two above; one object for all operations.
    var policy: AFSecurityPolicy?
    var completionQueue: DispatchQueue?
  }

  let details: Guarded<Details>

  /// What paths are relative to. It ends in a slash if it has a path.
  public let baseURL: URL

  /// Where operations run.
  public let operationQueue = OperationQueue()

  private let reachability: AFNetworkReachabilityManager
  private let isMonitoring = Guarded(false)

  /// - Parameter url: A slash is added to its path, so that paths go on from its end and not from its last segment.
  public required init(baseURL url: URL) {
    baseURL = url.asFolder
    details = Guarded(Details(fields: DefaultFields.current))
    reachability = url.host.map { AFNetworkReachabilityManager(forDomain: $0) } ?? AFNetworkReachabilityManager()
    super.init()
  }

  /// A new client. The same as `AFHTTPClient(baseURL:)`.
  public class func client(withBaseURL url: URL) -> Self { Self(baseURL: url) }

  // MARK: - Settings

  /// How strings become bytes in queries and forms, as a raw value of `String.Encoding`. UTF-8 at first.
  ///
  /// The `Content-Type` of a form names it. Parameters that it does not have the characters for cannot be written. JSON and property
  /// lists are UTF-8 whatever it is.
  open var stringEncoding: UInt {
    get { details.read { $0.stringEncoding } }
    set { details.read { $0.stringEncoding = newValue } }
  }

  /// How parameters are written into a body. A form at first.
  open var parameterEncoding: AFHTTPClientParameterEncoding {
    get { details.read { $0.parameterEncoding } }
    set { details.read { $0.parameterEncoding = newValue } }
  }

  /// What decides for operations about the server's certificate: pins of the main bundle's certificates. None at first.
  open var defaultSSLPinningMode: AFSSLPinningMode {
    get { details.read { $0.pinningMode } }
    set {
      details.read { details in
        details.pinningMode = newValue
        details.policy = nil
      }
    }
  }

  /// Whether operations take certificates that are not valid. False at first. Dangerous: whoever sits on the way can be
  /// the server.
  open var allowsInvalidSSLCertificate: Bool {
    get { details.read { $0.allowsInvalidCertificates } }
    set {
      details.read { details in
        details.allowsInvalidCertificates = newValue
        details.policy = nil
      }
    }
  }

  /// Where operations deliver their results. Nil, as at first: the main queue. AFNetworking 1 has it for each operation
  /// only.
  open var completionQueue: DispatchQueue? {
    get { details.read { $0.completionQueue } }
    set { details.read { $0.completionQueue = newValue } }
  }

  // MARK: - Reachability

  /// Whether the base URL's host can be reached: unknown until the kernel has been asked.
  open var networkReachabilityStatus: AFNetworkReachabilityStatus {
    monitor()
    return reachability.networkReachabilityStatus
  }

  /// Sets a block that is called on the main queue: soon with what is known then, and when that changes.
  open func setReachabilityStatusChange(_ block: ((AFNetworkReachabilityStatus) -> Void)?) {
    reachability.setReachabilityStatusChange(block)
    isMonitoring.read { $0 = true }
    // Begun anew it tells once more.
    reachability.startMonitoring()
  }

  /// Begins with the first question: a host's name costs a look-up.
  private func monitor() {
    let isFirst = isMonitoring.read { isMonitoring in
      defer { isMonitoring = true }
      return !isMonitoring
    }
    if isFirst { reachability.startMonitoring() }
  }

  /// The Objective-C spelling of ``setReachabilityStatusChange(_:)``.
  public func setReachabilityStatusChangeBlock(_ block: ((AFNetworkReachabilityStatus) -> Void)?) {
    setReachabilityStatusChange(block)
  }

  // MARK: - Header fields

  /// What requests are given as this field. The name is compared without regard to case. Nil: nothing.
  open func defaultValue(forHeader header: String) -> String! {
    details.read { details in details.fields.first { Self.isSame($0.key, header) }?.value }
  }

  /// Sets what requests are given as this field; nil takes it away.
  open func setDefaultHeader(_ header: String, value: String?) {
    details.read { details in
      for name in details.fields.keys where Self.isSame(name, header) { details.fields[name] = nil }
      details.fields[header] = value
    }
  }

  private static func isSame(_ name: String, _ other: String) -> Bool {
    name.caseInsensitiveCompare(other) == .orderedSame
  }

  /// Sets `Authorization` to a user and a password, in UTF-8 (RFC 7617).
  open func setAuthorizationHeaderWithUsername(_ username: String, password: String) {
    let value = Data("\(username):\(password)".utf8).base64EncodedString()
    setDefaultHeader("Authorization", value: "Basic " + value)
  }

  /// Sets `Authorization` to `Token token="..."`.
  open func setAuthorizationHeaderWithToken(_ token: String) {
    setDefaultHeader("Authorization", value: "Token token=\"\(token)\"")
  }

  /// Takes `Authorization` away.
  open func clearAuthorizationHeader() { setDefaultHeader("Authorization", value: nil) }

  /// What operations answer challenges with.
  open func setDefaultCredential(_ credential: URLCredential?) { details.read { $0.credential = credential } }

  // MARK: - Requests

  /// A request for a path, with the default header fields and the parameters: in the query for GET, HEAD and DELETE, in
  /// the body otherwise.
  ///
  /// - Parameters:
  ///   - method: As it is sent.
  ///   - path: Relative to the base URL. Nil: the base URL itself.
  ///   - parameters: Nil: there are none.
  /// - Returns: If the path is no URL, or the parameters cannot be written, a request without a URL, which fails when
  ///   it is loaded.
  open func request(
    withMethod method: String, path: String?, parameters: [AnyHashable: Any]? = nil
  ) -> NSMutableURLRequest {
    ClientRequest(self).request(method, path ?? "", parameters) ?? MutableRequest.nowhere(method)
  }

  /// A request whose body is a form in parts; `block` appends to it. It is sent as it is read: see
  /// `AFMultipartFormData`.
  ///
  /// - Parameters:
  ///   - method: Neither GET nor HEAD: for these there is a request without a URL, which fails when it is
  ///     loaded.
  ///   - path: Relative to the base URL, or a whole URL.
  ///   - parameters: What the request serializer takes: as a rule a dictionary.
  ///   - block: Called before this function returns.
  open func multipartFormRequest(
    withMethod method: String, path: String?, parameters: [AnyHashable: Any]? = nil,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?
  ) -> NSMutableURLRequest {
    ClientRequest(self).form(method, path ?? "", parameters, block) ?? MutableRequest.nowhere(method)
  }

  // MARK: - Operations

  /// Has a class choose itself for requests, before those that are registered already.
  ///
  /// - Returns: False: it is no subclass of ``AFHTTPRequestOperation``.
  @discardableResult
  open func registerHTTPOperationClass(_ operationClass: AnyClass) -> Bool {
    guard let operationClass = operationClass as? AFHTTPRequestOperation.Type else { return false }
    details.read { details in
      details.operationClasses.removeAll { $0 == operationClass }
      details.operationClasses.insert(operationClass, at: 0)
    }
    return true
  }

  /// Takes a class away.
  open func unregisterHTTPOperationClass(_ operationClass: AnyClass) {
    details.read { $0.operationClasses.removeAll { $0 == operationClass } }
  }

  /// An operation of the latest registered class that can process the request, or an ``AFHTTPRequestOperation``, with
  /// this client's credential and trust. It is not put into the queue. All other methods make theirs by it.
  open func httpRequestOperation(
    with urlRequest: URLRequest, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation {
    let own = details.read { $0 }
    let type = own.operationClasses.first { $0.canProcess(urlRequest) } ?? AFHTTPRequestOperation.self
    let operation = type.init(request: urlRequest)
    operation.setCompletionBlockWithSuccess(success, failure: failure)
    operation.credential = own.credential
    operation.completionQueue = own.completionQueue
    operation.securityPolicy = policy()
    return operation
  }

  private func policy() -> AFSecurityPolicy {
    details.read { details in
      if let policy = details.policy { return policy }
      let policy =
        details.pinningMode == .none
        ? AFSecurityPolicy.default() : AFSecurityPolicy(pinningMode: details.pinningMode)
      policy.allowInvalidCertificates = details.allowsInvalidCertificates
      policy.validatesDomainName = !details.allowsInvalidCertificates
      details.policy = policy
      return policy
    }
  }

  /// Puts an operation into the queue.
  open func enqueue(_ operation: AFHTTPRequestOperation) { operationQueue.addOperation(operation) }

  /// The Objective-C spelling of ``enqueue(_:)``.
  public func enqueueHTTPRequestOperation(_ operation: AFHTTPRequestOperation) { enqueue(operation) }

  /// Cancels the HTTP operations in the queue with this method and path.
  ///
  /// - Parameters:
  ///   - method: Nil: any.
  ///   - path: Relative to the base URL. What has a query matches by its path.
  open func cancelAllHTTPOperations(withMethod method: String?, path: String?) {
    let wanted = request(withMethod: method ?? "GET", path: path, parameters: nil).url?.path
    for case let operation as AFHTTPRequestOperation in operationQueue.operations {
      let request = operation.request
      let isWanted = wanted != nil && request.url?.path == wanted
      if isWanted, method == nil || method == request.httpMethod { operation.cancel() }
    }
  }

  /// Makes operations for requests and puts them into the queue, as a batch.
  ///
  /// - Parameters:
  ///   - urlRequests: Each a `URLRequest` or an `NSURLRequest`; what is neither is left out.
  ///   - progressBlock: Called on the main queue for each operation that has finished: how many have, and how many
  ///     there are.
  ///   - completionBlock: Called on the main queue with the operations when all have finished.
  open func enqueueBatchOfHTTPRequestOperations(
    withRequests urlRequests: [Any], progressBlock: ((UInt, UInt) -> Void)? = nil,
    completionBlock: (([Any]) -> Void)? = nil
  ) {
    let requests = urlRequests.compactMap { ($0 as? NSURLRequest).map { $0 as URLRequest } ?? $0 as? URLRequest }
    enqueueBatch(
      ofHTTPRequestOperations: requests.map { httpRequestOperation(with: $0, success: nil, failure: nil) },
      progressBlock: progressBlock, completionBlock: completionBlock)
  }

  /// Puts operations into the queue, as a batch.
  open func enqueueBatch(
    ofHTTPRequestOperations operations: [Any], progressBlock: ((UInt, UInt) -> Void)? = nil,
    completionBlock: (([Any]) -> Void)? = nil
  ) {
    let batch = AFURLConnectionOperation.batch(
      ofRequestOperations: operations, progressBlock: progressBlock, completionBlock: completionBlock)
    operationQueue.addOperations(batch.compactMap { $0 as? Operation }, waitUntilFinished: false)
  }

  /// The Objective-C spelling of ``enqueueBatch(ofHTTPRequestOperations:progressBlock:completionBlock:)``.
  public func enqueueBatchOfHTTPRequestOperations(
    _ operations: [Any], progressBlock: ((UInt, UInt) -> Void)? = nil, completionBlock: (([Any]) -> Void)? = nil
  ) {
    enqueueBatch(
      ofHTTPRequestOperations: operations, progressBlock: progressBlock, completionBlock: completionBlock)
  }

  // MARK: - Verbs

  /// Runs a `GET` request.
  open func getPath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) { run("GET", path, parameters, success, failure) }

  /// Runs a `POST` request.
  open func postPath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) { run("POST", path, parameters, success, failure) }

  /// Runs a `PUT` request.
  open func putPath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) { run("PUT", path, parameters, success, failure) }

  /// Runs a `DELETE` request.
  open func deletePath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) { run("DELETE", path, parameters, success, failure) }

  /// Runs a `PATCH` request.
  open func patchPath(
    _ path: String?, parameters: [AnyHashable: Any]? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) { run("PATCH", path, parameters, success, failure) }

  private func run(
    _ method: String, _ path: String?, _ parameters: [AnyHashable: Any]?,
    _ success: ((AFHTTPRequestOperation, Any?) -> Void)?, _ failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) {
    let request = request(withMethod: method, path: path, parameters: parameters) as URLRequest
    enqueue(httpRequestOperation(with: request, success: success, failure: failure))
  }

  // MARK: - Archives and copies

  private enum Key {
    static let baseURL = "baseURL"
    static let stringEncoding = "stringEncoding"
    static let parameterEncoding = "parameterEncoding"
    static let fieldNames = "defaultHeaderNames"
    static let fieldValues = "defaultHeaderValues"
  }

  /// Nil: the archive has no base URL.
  public required convenience init?(coder decoder: NSCoder) {
    guard let url = decoder.object(NSURL.self, forKey: Key.baseURL) else { return nil }
    self.init(baseURL: url as URL)
    let names = decoder.texts(forKey: Key.fieldNames)
    let values = decoder.texts(forKey: Key.fieldValues)
    let encoding = decoder.number(forKey: Key.stringEncoding)
    let parameters = decoder.number(forKey: Key.parameterEncoding).flatMap { UInt32(exactly: $0) }
    details.read { details in
      if let encoding, encoding > 0 { details.stringEncoding = encoding }
      details.parameterEncoding = parameters.flatMap { AFHTTPClientParameterEncoding(rawValue: $0) } ?? .form
      if let names, let values, names.count == values.count {
        details.fields = Dictionary(zip(names, values)) { $1 }
      }
    }
  }

  /// Writes the base URL, the encodings and the header fields. Registered classes and blocks are not archived.
  open func encode(with coder: NSCoder) {
    let own = details.read { $0 }
    coder.encode(baseURL as NSURL, forKey: Key.baseURL)
    coder.encode(number: own.stringEncoding, forKey: Key.stringEncoding)
    coder.encode(number: UInt(own.parameterEncoding.rawValue), forKey: Key.parameterEncoding)
    let fields = own.fields.sorted { $0.key < $1.key }
    coder.encode(texts: fields.map(\.key), forKey: Key.fieldNames)
    coder.encode(texts: fields.map(\.value), forKey: Key.fieldValues)
  }

  open override func copy() -> Any { copy(with: nil) }

  /// A client with the same settings and registered classes, and an empty queue of its own.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = type(of: self).init(baseURL: baseURL)
    let own = details.read { $0 }
    copy.details.read { $0 = own }
    return copy
  }

  open override var description: String {
    let own = details.read { $0 }
    let words = [
      "baseURL: \(baseURL.absoluteString)", "defaultHeaders: \(own.fields)",
      "registeredOperationClasses: \(own.operationClasses)", "operationQueue: \(operationQueue)",
    ]
    return "<\(type(of: self)), \(words.joined(separator: ", "))>"
  }
}
