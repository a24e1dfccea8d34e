import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Creates and runs ``AFHTTPRequestOperation``s for one service: with a request serializer, a base URL, one security
/// policy, and one queue.
///
/// This is AFNetworking 2's class of this name. New code uses `AFHTTPSessionManager`, or `URLSession` itself. Safe to
/// use from any thread.
open class AFHTTPRequestOperationManager: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  private struct Details {
    var requestSerializer: AFHTTPRequestSerializer = AFHTTPRequestSerializer()
    var responseSerializer: AFHTTPResponseSerializer = AFJSONResponseSerializer()
    var operationQueue = OperationQueue()
    var usesCredentialStorage = true
    var credential: URLCredential?
    var securityPolicy = AFSecurityPolicy.default()
    var reachabilityManager = AFNetworkReachabilityManager.shared()
    var completionQueue: DispatchQueue?
    var completionGroup: DispatchGroup?
  }

  private let details = Mutex(Details())

  /// The base of relative URLs. If it has a path, the path ends in a slash.
  public let baseURL: URL?

  /// Creates a manager for absolute URLs.
  public convenience override init() { self.init(baseURL: nil) }

  /// Creates a manager.
  ///
  /// - Parameter url: The base URL. The manager adds a slash to its path, so that relative paths extend the path
  ///   instead of replacing its last segment.
  public required init(baseURL url: URL?) {
    baseURL = url?.asDirectory
    super.init()
  }

  /// Creates a manager for absolute URLs.
  open class func manager() -> Self { Self(baseURL: nil) }

  // MARK: - Settings

  /// The serializer that creates requests. An `AFHTTPRequestSerializer` by default.
  open var requestSerializer: AFHTTPRequestSerializer {
    get { details.withLock { $0.requestSerializer } }
    set { details.put(newValue, at: \.requestSerializer) }
  }

  /// The serializer that validates responses and makes objects of them. An `AFJSONResponseSerializer` by default.
  open var responseSerializer: AFHTTPResponseSerializer {
    get { details.withLock { $0.responseSerializer } }
    set { details.put(newValue, at: \.responseSerializer) }
  }

  /// The queue that runs the operations.
  open var operationQueue: OperationQueue {
    get { details.withLock { $0.operationQueue } }
    set { details.put(newValue, at: \.operationQueue) }
  }

  /// Whether operations use credentials from the storage. `true` by default.
  open var shouldUseCredentialStorage: Bool {
    get { details.withLock { $0.usesCredentialStorage } }
    set { details.withLock { $0.usesCredentialStorage = newValue } }
  }

  /// The credential for a challenge's first attempt.
  open var credential: URLCredential! {
    get { details.withLock { $0.credential } }
    set { details.put(newValue, at: \.credential) }
  }

  /// The policy that decides whether servers are trusted. The default policy at first.
  open var securityPolicy: AFSecurityPolicy {
    get { details.withLock { $0.securityPolicy } }
    set { details.put(newValue, at: \.securityPolicy) }
  }

  /// The manager that monitors reachability, the shared one by default. It does not affect operations.
  open var reachabilityManager: AFNetworkReachabilityManager {
    get { details.withLock { $0.reachabilityManager } }
    set { details.put(newValue, at: \.reachabilityManager) }
  }

  /// The queue for results, or `nil`, the default, for the main queue.
  open var completionQueue: DispatchQueue? {
    get { details.withLock { $0.completionQueue } }
    set { details.put(newValue, at: \.completionQueue) }
  }

  /// The dispatch group for results, or `nil`, the default, for a group that all operations without one share.
  open var completionGroup: DispatchGroup? {
    get { details.withLock { $0.completionGroup } }
    set { details.put(newValue, at: \.completionGroup) }
  }

  // MARK: - Operations

  /// Creates an operation with this manager's settings. The operation is neither started nor added to the queue. All
  /// other methods create their operations with this one.
  open func httpRequestOperation(
    with request: URLRequest, success: ((AFHTTPRequestOperation, Any?) -> Void)?,
    failure: ((AFHTTPRequestOperation, any Error) -> Void)?
  ) -> AFHTTPRequestOperation {
    let own = details.withLock { $0 }
    let operation = AFHTTPRequestOperation(request: request)
    operation.responseSerializer = own.responseSerializer
    operation.shouldUseCredentialStorage = own.usesCredentialStorage
    operation.credential = own.credential
    operation.securityPolicy = own.securityPolicy
    operation.completionQueue = own.completionQueue
    operation.completionGroup = own.completionGroup
    operation.setCompletionBlockWithSuccess(success, failure: failure)
    return operation
  }

  /// Runs a request that `make` creates.
  func run(
    _ success: ((AFHTTPRequestOperation, Any?) -> Void)?, _ failure: ((AFHTTPRequestOperation?, any Error) -> Void)?,
    by make: () throws -> NSMutableURLRequest
  ) -> AFHTTPRequestOperation? {
    var request: URLRequest
    do {
      request = try make() as URLRequest
    } catch {
      let carried = UncheckedSendable(failure)
      (completionQueue ?? .main).async(group: completionGroup) { carried.value?(nil, error) }
      return nil
    }
    if let baseURL { BaseOrigin(baseURL).protect(&request) }
    let operation = httpRequestOperation(with: request, success: success) { failure?($0, $1) }
    operationQueue.addOperation(operation)
    return operation
  }

  /// Returns the absolute form of a URL. A string that is not a URL is returned unchanged, and the serializer then
  /// refuses it.
  func absolute(_ urlString: String) -> String {
    URL(string: urlString, relativeTo: baseURL)?.absoluteString ?? urlString
  }

  // MARK: - Verbs
  //
  // The parameter `urlString` is relative to the base URL. If the serializer fails, these methods return `nil`, and
  // call `failure` without an operation on the completion queue.

  /// Runs a `GET` request.
  @discardableResult
  open func get(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    run("GET", urlString, parameters, success, failure)
  }

  /// Runs a `HEAD` request.
  @discardableResult
  open func head(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    run("HEAD", urlString, parameters, success.map { block in { operation, _ in block(operation) } }, failure)
  }

  /// Runs a `POST` request.
  @discardableResult
  open func post(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    run("POST", urlString, parameters, success, failure)
  }

  /// Runs a `PUT` request.
  @discardableResult
  open func put(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    run("PUT", urlString, parameters, success, failure)
  }

  /// Runs a `PATCH` request.
  @discardableResult
  open func patch(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    run("PATCH", urlString, parameters, success, failure)
  }

  /// Runs a `DELETE` request.
  @discardableResult
  open func delete(
    _ urlString: String, parameters: Any? = nil, success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    run("DELETE", urlString, parameters, success, failure)
  }

  /// Runs a `POST` request with a multipart form, to which `block` appends parts. The body is read while it is sent:
  /// see `AFMultipartFormData`.
  @discardableResult
  open func post(
    _ urlString: String, parameters: Any? = nil, constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
    success: ((AFHTTPRequestOperation, Any?) -> Void)? = nil,
    failure: ((AFHTTPRequestOperation?, any Error) -> Void)? = nil
  ) -> AFHTTPRequestOperation? {
    run(success, failure) {
      try requestSerializer.multipartFormRequest(
        withMethod: "POST", urlString: absolute(urlString), parameters: parameters as? [String: Any],
        constructingBodyWith: block)
    }
  }

  private func run(
    _ method: String, _ urlString: String, _ parameters: Any?, _ success: ((AFHTTPRequestOperation, Any?) -> Void)?,
    _ failure: ((AFHTTPRequestOperation?, any Error) -> Void)?
  ) -> AFHTTPRequestOperation? {
    run(success, failure) {
      try requestSerializer.request(withMethod: method, urlString: absolute(urlString), parameters: parameters)
    }
  }

  // MARK: - Archives and copies

  private enum Key {
    static let baseURL = "baseURL"
    static let requestSerializer = "requestSerializer"
    static let responseSerializer = "responseSerializer"
    static let securityPolicy = "securityPolicy"
  }

  open class var supportsSecureCoding: Bool { true }

  public required convenience init?(coder decoder: NSCoder) {
    self.init(baseURL: decoder.object(NSURL.self, forKey: Key.baseURL) as URL?)
    if let serializer: AFHTTPRequestSerializer = decoder.object(forKey: Key.requestSerializer) {
      requestSerializer = serializer
    }
    if let serializer: AFHTTPResponseSerializer = decoder.object(forKey: Key.responseSerializer) {
      responseSerializer = serializer
    }
    if let policy: AFSecurityPolicy = decoder.object(forKey: Key.securityPolicy) { securityPolicy = policy }
  }

  /// Writes the base URL, the serializers and the security policy, but no queues and no credential.
  open func encode(with coder: NSCoder) {
    coder.encode(baseURL as NSURL?, forKey: Key.baseURL)
    coder.encode(requestSerializer, forKey: Key.requestSerializer)
    coder.encode(responseSerializer, forKey: Key.responseSerializer)
    coder.encode(securityPolicy, forKey: Key.securityPolicy)
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns a manager with copies of the serializers, the same security policy and a new, empty queue.
  open func copy(with zone: NSZone? = nil) -> Any {
    let own = details.withLock { $0 }
    let copy = type(of: self).init(baseURL: baseURL)
    if let serializer = own.requestSerializer.copy() as? AFHTTPRequestSerializer { copy.requestSerializer = serializer }
    if let serializer = own.responseSerializer.copy() as? AFHTTPResponseSerializer {
      copy.responseSerializer = serializer
    }
    copy.securityPolicy = own.securityPolicy
    return copy
  }

  open override var description: String {
    "<\(type(of: self)), baseURL: \(baseURL?.absoluteString ?? "none"), operationQueue: \(operationQueue)>"
  }
}
