import Dispatch
import Foundation
import Larkspur
import Synchronization

/// The encoding of parameters in the body of an ``AFHTTPClient``'s requests.
public enum AFHTTPClientParameterEncoding: UInt32, Hashable, Sendable {
  /// A form: `a=1&b=2`.
  case form = 0
  /// JSON.
  case json = 1
  /// A property list in XML.
  case propertyList = 2
}

/// AFNetworking's Objective-C name of ``AFHTTPClientParameterEncoding/form``.
public let AFFormURLParameterEncoding = AFHTTPClientParameterEncoding.form
/// AFNetworking's Objective-C name of ``AFHTTPClientParameterEncoding/json``.
public let AFJSONParameterEncoding = AFHTTPClientParameterEncoding.json
/// AFNetworking's Objective-C name of ``AFHTTPClientParameterEncoding/propertyList``.
public let AFPropertyListParameterEncoding = AFHTTPClientParameterEncoding.propertyList

/// AFNetworking 1's client for one service: default header fields, paths relative to a base URL, and a registry of
/// operation classes, each of which decides which requests it can process.
///
/// New code uses `AFHTTPSessionManager`, or `URLSession` itself. Safe to use from any thread. Results arrive on the
/// main queue by default: see ``AFHTTPRequestOperation/successCallbackQueue``, and ``completionQueue`` here.
open class AFHTTPClient: NSObject, NSCoding, NSCopying, @unchecked Sendable {
  struct Details {
    var stringEncoding = String.Encoding.utf8.rawValue
    var parameterEncoding = AFHTTPClientParameterEncoding.form
    /// Registered classes, the latest first.
    var operationClasses: [AFHTTPRequestOperation.Type] = []
    var fields: [String: String] = [:]
    var credential: URLCredential?
    var pinningMode = AFSSLPinningMode.none
    var allowsInvalidCertificates = false
    /// The policy for the two properties above: one object for all operations.
    var policy: AFSecurityPolicy?
    var completionQueue: DispatchQueue?
  }

  let details: Mutex<Details>

  /// The URL that paths are relative to. If it has a path, the path ends in a slash.
  public let baseURL: URL

  /// The queue that runs the operations.
  public let operationQueue = OperationQueue()

  private let reachability: AFNetworkReachabilityManager
  private let isMonitoring = Mutex(false)

  /// Creates a client.
  ///
  /// - Parameter url: The base URL. The client adds a slash to its path, so that relative paths extend the path instead
  ///   of replacing its last segment.
  public required init(baseURL url: URL) {
    baseURL = url.asDirectory
    details = Mutex(Details(fields: DefaultFields.current))
    reachability = url.host.map { AFNetworkReachabilityManager(forDomain: $0) } ?? AFNetworkReachabilityManager()
    super.init()
  }

  /// Creates a client; equivalent to `AFHTTPClient(baseURL:)`.
  public class func client(withBaseURL url: URL) -> Self { Self(baseURL: url) }

  // MARK: - Settings

  /// The encoding of strings in queries and forms, as a raw value of `String.Encoding`. UTF-8 by default.
  ///
  /// The `Content-Type` of a form names the encoding. Parameters with characters that the encoding does not have cannot
  /// be written. JSON and property lists are always UTF-8.
  open var stringEncoding: UInt {
    get { details.withLock { $0.stringEncoding } }
    set { details.withLock { $0.stringEncoding = newValue } }
  }

  /// The encoding of parameters in a body. A form by default.
  open var parameterEncoding: AFHTTPClientParameterEncoding {
    get { details.withLock { $0.parameterEncoding } }
    set { details.withLock { $0.parameterEncoding = newValue } }
  }

  /// The pinning mode of the security policy that operations get. The pins are the certificates of the main bundle.
  /// ``AFSSLPinningMode/none`` by default.
  open var defaultSSLPinningMode: AFSSLPinningMode {
    get { details.withLock { $0.pinningMode } }
    set {
      details.withLock { details in
        details.pinningMode = newValue
        details.policy = nil
      }
    }
  }

  /// Whether operations accept certificates that are not valid, or are for another host. `false` by default. Dangerous:
  /// an attacker on the network path can impersonate the server.
  open var allowsInvalidSSLCertificate: Bool {
    get { details.withLock { $0.allowsInvalidCertificates } }
    set {
      details.withLock { details in
        details.allowsInvalidCertificates = newValue
        details.policy = nil
      }
    }
  }

  /// The queue for the operations' results, or `nil`, the default, for the main queue. AFNetworking 1 has this property
  /// on each operation only.
  open var completionQueue: DispatchQueue? {
    get { details.withLock { $0.completionQueue } }
    set { details.withLock { $0.completionQueue = newValue } }
  }

  // MARK: - Reachability

  /// Whether the base URL's host can be reached: unknown until the first check is complete. The first call starts the
  /// monitoring.
  open var networkReachabilityStatus: AFNetworkReachabilityStatus {
    monitor()
    return reachability.networkReachabilityStatus
  }

  /// Sets a block that is called on the main queue: once soon after this call with the current status, and then after
  /// each change.
  open func setReachabilityStatusChange(_ block: ((AFNetworkReachabilityStatus) -> Void)?) {
    reachability.setReachabilityStatusChange(block)
    isMonitoring.withLock { $0 = true }
    // A restart reports the status once more.
    reachability.startMonitoring()
  }

  /// Starts the monitoring at the first question, and not before: a host name costs a DNS look-up.
  private func monitor() {
    if !isMonitoring.withLock({ exchange(&$0, with: true) }) { reachability.startMonitoring() }
  }

  /// The Objective-C spelling of ``setReachabilityStatusChange(_:)``.
  public func setReachabilityStatusChangeBlock(_ block: ((AFNetworkReachabilityStatus) -> Void)?) {
    setReachabilityStatusChange(block)
  }

  // MARK: - Header fields

  /// Returns the value of a default header field, or `nil` if there is none. Compares the names case-insensitively.
  open func defaultValue(forHeader header: String) -> String! {
    details.withLock { details in details.fields.first { Self.isSame($0.key, header) }?.value }
  }

  /// Sets a default header field, in place of any of the same name. A `value` of `nil` removes the field. Compares the
  /// names case-insensitively.
  open func setDefaultHeader(_ header: String, value: String?) {
    details.withLock { details in
      for name in details.fields.keys where Self.isSame(name, header) { details.fields[name] = nil }
      details.fields[header] = value
    }
  }

  private static func isSame(_ name: String, _ other: String) -> Bool {
    name.caseInsensitiveCompare(other) == .orderedSame
  }

  /// Sets the `Authorization` field to a user name and a password, in UTF-8 (RFC 7617).
  open func setAuthorizationHeaderWithUsername(_ username: String, password: String) {
    let value = Data("\(username):\(password)".utf8).base64EncodedString()
    setDefaultHeader("Authorization", value: "Basic " + value)
  }

  /// Sets the `Authorization` field to `Token token="..."`.
  open func setAuthorizationHeaderWithToken(_ token: String) {
    setDefaultHeader("Authorization", value: "Token token=\"\(token)\"")
  }

  /// Removes the `Authorization` field.
  open func clearAuthorizationHeader() { setDefaultHeader("Authorization", value: nil) }

  /// Sets the credential with which operations answer challenges.
  open func setDefaultCredential(_ credential: URLCredential?) { details.withLock { $0.credential = credential } }

  // MARK: - Requests

  /// Creates a request for a path, with the default header fields and the parameters: in the query for GET, HEAD and
  /// DELETE, and in the body otherwise.
  ///
  /// - Parameters:
  ///   - method: The request method, sent as it is.
  ///   - path: A path relative to the base URL, or `nil` for the base URL itself.
  ///   - parameters: The parameters, or `nil` if there are none.
  /// - Returns: The request. If the path is not a URL, or the parameters cannot be written, a request without a URL,
  ///   which fails when it is loaded.
  open func request(
    withMethod method: String, path: String?, parameters: [AnyHashable: Any]? = nil
  ) -> NSMutableURLRequest {
    ClientRequest(self).request(method, path ?? "", parameters) ?? MutableRequest.nowhere(method)
  }

  /// Creates a request with a multipart form as its body. The body is read while it is sent: see `AFMultipartFormData`.
  ///
  /// - Parameters:
  ///   - method: Neither GET nor HEAD: these give a request without a URL, which fails when it is loaded.
  ///   - path: A path relative to the base URL, or an absolute URL.
  ///   - parameters: Parts of the form, before those of the block: a dictionary with string keys. A dictionary with any
  ///     other key is ignored.
  ///   - block: Appends parts. It is called before this function returns.
  open func multipartFormRequest(
    withMethod method: String, path: String?, parameters: [AnyHashable: Any]? = nil,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?
  ) -> NSMutableURLRequest {
    ClientRequest(self).form(method, path ?? "", parameters, block) ?? MutableRequest.nowhere(method)
  }

  // MARK: - Operations

  /// Registers an operation class. It is asked before the classes that are registered already whether it can process a
  /// request.
  ///
  /// - Returns: `false` if the class is not a subclass of ``AFHTTPRequestOperation``.
  @discardableResult
  open func registerHTTPOperationClass(_ operationClass: AnyClass) -> Bool {
    guard let operationClass = operationClass as? AFHTTPRequestOperation.Type else { return false }
    details.withLock { details in
      details.operationClasses.removeAll { $0 == operationClass }
      details.operationClasses.insert(operationClass, at: 0)
    }
    return true
  }

  /// Removes an operation class from the registry.
  open func unregisterHTTPOperationClass(_ operationClass: AnyClass) {
    details.withLock { $0.operationClasses.removeAll { $0 == operationClass } }
  }

  /// Creates an operation with this client's credential, completion queue and security policy. Its class is the latest
  /// registered one that can process the request, or else ``AFHTTPRequestOperation``. The operation is not added to the
  /// queue. All other methods create their operations with this one.
  open func httpRequestOperation(
    with urlRequest: URLRequest, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation {
    let own = details.withLock { $0 }
    let type = own.operationClasses.first { $0.canProcess(urlRequest) } ?? AFHTTPRequestOperation.self
    let operation = type.init(request: urlRequest)
    operation.setCompletionBlockWithSuccess(success, failure: failure)
    operation.credential = own.credential
    operation.completionQueue = own.completionQueue
    operation.securityPolicy = policy()
    return operation
  }

  private func policy() -> AFSecurityPolicy {
    details.withLock { details in
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

  /// Adds an operation to the queue.
  open func enqueue(_ operation: AFHTTPRequestOperation) { operationQueue.addOperation(operation) }

  /// The Objective-C spelling of ``enqueue(_:)``.
  public func enqueueHTTPRequestOperation(_ operation: AFHTTPRequestOperation) { enqueue(operation) }

  /// Cancels the HTTP operations in the queue that have this method and path.
  ///
  /// - Parameters:
  ///   - method: The method, or `nil` for any.
  ///   - path: A path relative to the base URL. Only the paths are compared, without the queries.
  open func cancelAllHTTPOperations(withMethod method: String?, path: String?) {
    let wanted = request(withMethod: method ?? "GET", path: path, parameters: nil).url?.path
    for case let operation as AFHTTPRequestOperation in operationQueue.operations {
      let request = operation.request
      let isWanted = wanted != nil && request.url?.path == wanted
      if isWanted, method == nil || method == request.httpMethod { operation.cancel() }
    }
  }

  /// Creates operations for requests and adds them to the queue as a batch.
  ///
  /// - Parameters:
  ///   - urlRequests: Elements are `URLRequest` or `NSURLRequest`; others are skipped.
  ///   - progressBlock: Called for each operation that has finished, on the operation's completion queue, which is the
  ///     main queue by default: the number of finished operations, and the number of all.
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

  /// Adds operations to the queue as a batch.
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

  /// Creates a client from an archive.
  ///
  /// - Returns: The client, or `nil` if the archive has no base URL.
  public required convenience init?(coder decoder: NSCoder) {
    guard let url = decoder.object(NSURL.self, forKey: Key.baseURL) else { return nil }
    self.init(baseURL: url as URL)
    let names = decoder.texts(forKey: Key.fieldNames)
    let values = decoder.texts(forKey: Key.fieldValues)
    let encoding = decoder.number(forKey: Key.stringEncoding)
    let parameters = decoder.number(forKey: Key.parameterEncoding).flatMap { UInt32(exactly: $0) }
    details.withLock { details in
      if let encoding, encoding > 0 { details.stringEncoding = encoding }
      details.parameterEncoding = parameters.flatMap { AFHTTPClientParameterEncoding(rawValue: $0) } ?? .form
      if let names, let values, names.count == values.count {
        details.fields = Dictionary(zip(names, values)) { $1 }
      }
    }
  }

  /// Writes the base URL, the encodings and the header fields. Registered classes and blocks are not archived.
  open func encode(with coder: NSCoder) {
    let own = details.withLock { $0 }
    coder.encode(baseURL as NSURL, forKey: Key.baseURL)
    coder.encode(number: own.stringEncoding, forKey: Key.stringEncoding)
    coder.encode(number: UInt(own.parameterEncoding.rawValue), forKey: Key.parameterEncoding)
    let fields = own.fields.sorted { $0.key < $1.key }
    coder.encode(texts: fields.map(\.key), forKey: Key.fieldNames)
    coder.encode(texts: fields.map(\.value), forKey: Key.fieldValues)
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns a client with the same settings and registered classes, and with a new, empty queue.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = type(of: self).init(baseURL: baseURL)
    let own = details.withLock { $0 }
    copy.details.withLock { $0 = own }
    return copy
  }

  open override var description: String {
    let own = details.withLock { $0 }
    let parts = [
      "baseURL: \(baseURL.absoluteString)", "defaultHeaders: \(own.fields)",
      "registeredOperationClasses: \(own.operationClasses)", "operationQueue: \(operationQueue)",
    ]
    return "<\(type(of: self)), \(parts.joined(separator: ", "))>"
  }
}
