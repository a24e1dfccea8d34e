import Foundation
import Larkspur
import Synchronization

/// A session manager that creates HTTP requests from a method, a path and parameters. Its methods `get`, `post` and so
/// on also start the task.
///
/// ```swift
/// let manager = AFHTTPSessionManager(baseURL: URL(string: "https://api.example.com/v1"))
/// manager.get("songs", parameters: ["page": 2], headers: nil, progress: nil) { task, songs in
///   print(songs ?? "nothing")
/// } failure: { task, error in
///   print(error.localizedDescription)
/// }
///
/// let (song, response) = try await manager.get("songs/17")
/// ```
///
/// Safe to use from any thread. Blocks are called on ``AFURLSessionManager/completionQueue``, progress blocks on
/// ``AFURLSessionManager/operationQueue``.
open class AFHTTPSessionManager: AFURLSessionManager, @unchecked Sendable {
  struct Requests: Sendable {
    var base: Base?
    var serializer = AFHTTPRequestSerializer()
    /// Performance: the latest path and its URL. Many programs request one path repeatedly.
    var latest: (path: String, url: URL)?

    init(base: Base? = nil) { self.base = base }
  }

  /// A base URL, with values that every request needs.
  struct Base: Sendable {
    let url: URL
    let text: String
    let origin: BaseOrigin
    /// Whether the URL has a path that ends in a slash, and neither query nor fragment.
    let isDirectory: Bool

    init(_ url: URL) {
      self.url = url
      text = url.absoluteString
      origin = BaseOrigin(url)
      isDirectory = text.hasSuffix("/") && !url.path.isEmpty && url.query == nil && url.fragment == nil
    }
  }

  let requests: Mutex<Requests>

  /// Creates a manager.
  ///
  /// - Parameters:
  ///   - url: The base of relative paths. `https://example.com/v1` counts as `https://example.com/v1/`.
  ///   - configuration: The configuration, which is copied, or `nil` for the default one.
  public init(baseURL url: URL?, sessionConfiguration configuration: URLSessionConfiguration?) {
    requests = Mutex(Requests(base: url.map { Base($0.asDirectory) }))
    super.init(sessionConfiguration: configuration)
  }

  /// Creates a manager with the default configuration.
  public convenience init(baseURL url: URL?) { self.init(baseURL: url, sessionConfiguration: nil) }

  public override convenience init(sessionConfiguration configuration: URLSessionConfiguration?) {
    self.init(baseURL: nil, sessionConfiguration: configuration)
  }

  /// Creates a manager without a base URL.
  public class func manager() -> AFHTTPSessionManager { AFHTTPSessionManager() }

  // MARK: - What it has

  /// The base of relative paths. If it has a path, the path ends in a slash.
  open var baseURL: URL? { base?.url }

  var base: Base? { requests.withLock { $0 }.base }

  /// The serializer that creates requests from methods, paths and parameters. An ``AFHTTPRequestSerializer`` by
  /// default.
  open var requestSerializer: AFHTTPRequestSerializer {
    get { requests.withLock { $0 }.serializer }
    set { requests.put(newValue, at: \.serializer) }
  }

  /// The serializer that validates responses and makes objects of them, for tasks that end from now on. An
  /// ``AFJSONResponseSerializer`` by default.
  open var responseSerializer: AFHTTPResponseSerializer {
    get { storedResponseSerializer as? AFHTTPResponseSerializer ?? AFHTTPResponseSerializer() }
    set { storedResponseSerializer = newValue }
  }

  /// Decides whether a server is trusted.
  ///
  /// A policy with pins has no effect for a base URL that is not `https`, because an attacker on the network path can
  /// answer in place of the server. AFNetworking raises an exception. Here such a policy is refused: the previous
  /// policy stays, and every request fails with an error that says so, until a usable policy is set.
  open override var securityPolicy: AFSecurityPolicy {
    get { super.securityPolicy }
    set {
      let refusal = refusal(of: newValue)
      state.withLock { $0.refusal = refusal }
      if refusal == nil { super.securityPolicy = newValue }
    }
  }

  private func refusal(of policy: AFSecurityPolicy) -> URLError? {
    let name: String
    switch policy.sslPinningMode {
    case .none: return nil
    case .certificate: name = "AFSSLPinningModeCertificate"
    case .publicKey: name = "AFSSLPinningModePublicKey"
    }
    guard baseURL?.scheme?.lowercased() != "https" else { return nil }
    return URLError(
      .secureConnectionFailed,
      userInfo: [
        NSLocalizedDescriptionKey: "Invalid Security Policy",
        NSLocalizedFailureReasonErrorKey:
          "A security policy configured with `\(name)` can only be applied on a manager with a secure base URL "
          + "(i.e. https)",
      ])
  }

  // MARK: - Requests

  /// Creates a request with the request serializer, and a data task for it. The caller resumes the task.
  ///
  /// - Parameters:
  ///   - urlString: A path relative to ``baseURL``, or an absolute URL.
  ///   - parameters: A value that the request serializer can write: mostly a dictionary.
  ///   - headers: Fields for this request; they replace the serializer's fields of the same names.
  ///   - success: Called on the completion queue with the response serializer's object.
  ///   - failure: Called on the completion queue after any error; without a task if no request could be made.
  ///   - downloadProgress: Called on the operation queue while the content arrives.
  ///   - method: The request method: `GET`, or any other that the server supports.
  ///   - uploadProgress: Called on the operation queue while the body is sent.
  /// - Returns: The task, or `nil` if no request could be made.
  @discardableResult
  open func dataTask(
    withHTTPMethod method: String, urlString: String, parameters: Any?, headers: [String: String]? = nil,
    uploadProgress: ((Progress) -> Void)? = nil, downloadProgress: ((Progress) -> Void)? = nil,
    success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)?
  ) -> URLSessionDataTask? {
    let request: URLRequest
    do {
      request = try self.request(method, urlString, parameters, headers)
    } catch {
      report(error, to: failure)
      return nil
    }
    let box = TaskBox<URLSessionDataTask>()
    let task = dataTask(
      with: request, uploadProgress: uploadProgress, downloadProgress: downloadProgress,
      completionHandler: box.completion(success, failure))
    box.task = task
    return task
  }

  /// Starts a `GET` request. See
  /// ``dataTask(withHTTPMethod:urlString:parameters:headers:uploadProgress:downloadProgress:success:failure:)`` for the
  /// parameters.
  ///
  /// - Returns: The task, which has been resumed, or `nil` if no request could be made.
  @discardableResult
  open func get(
    _ URLString: String, parameters: Any?, headers: [String: String]? = nil,
    progress downloadProgress: ((Progress) -> Void)? = nil, success: ((URLSessionDataTask, Any?) -> Void)?,
    failure: ((URLSessionDataTask?, any Error) -> Void)? = nil
  ) -> URLSessionDataTask? {
    run(
      dataTask(
        withHTTPMethod: "GET", urlString: URLString, parameters: parameters, headers: headers, uploadProgress: nil,
        downloadProgress: downloadProgress, success: success, failure: failure))
  }

  /// Starts a `HEAD` request.
  @discardableResult
  open func head(
    _ URLString: String, parameters: Any?, headers: [String: String]? = nil,
    success: ((URLSessionDataTask) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)? = nil
  ) -> URLSessionDataTask? {
    run(
      dataTask(
        withHTTPMethod: "HEAD", urlString: URLString, parameters: parameters, headers: headers, uploadProgress: nil,
        downloadProgress: nil, success: success.map { success in { task, _ in success(task) } }, failure: failure))
  }

  /// Starts a `POST` request.
  @discardableResult
  open func post(
    _ URLString: String, parameters: Any?, headers: [String: String]? = nil,
    progress uploadProgress: ((Progress) -> Void)? = nil, success: ((URLSessionDataTask, Any?) -> Void)?,
    failure: ((URLSessionDataTask?, any Error) -> Void)? = nil
  ) -> URLSessionDataTask? {
    run(
      dataTask(
        withHTTPMethod: "POST", urlString: URLString, parameters: parameters, headers: headers,
        uploadProgress: uploadProgress, downloadProgress: nil, success: success, failure: failure))
  }

  /// Starts a `POST` request with a multipart form.
  ///
  /// - Parameters:
  ///   - parameters: Parts of the form, before those of the block: a dictionary with string keys. Any other value is
  ///     ignored.
  ///   - block: Appends parts. It is called before this function returns.
  ///   - headers: Fields for this request; they replace the serializer's fields of the same names.
  ///   - URLString: A path relative to the base URL, or an absolute URL.
  ///   - failure: Called on the completion queue after any error.
  ///   - success: Called on the completion queue after a success.
  ///   - uploadProgress: Called on the operation queue while the body is sent.
  @discardableResult
  open func post(
    _ URLString: String, parameters: Any?, headers: [String: String]? = nil,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?,
    progress uploadProgress: ((Progress) -> Void)? = nil, success: ((URLSessionDataTask, Any?) -> Void)?,
    failure: ((URLSessionDataTask?, any Error) -> Void)? = nil
  ) -> URLSessionDataTask? {
    let request: URLRequest
    do {
      request = try self.form(URLString, parameters, headers, block)
    } catch {
      report(error, to: failure)
      return nil
    }
    let box = TaskBox<URLSessionDataTask>()
    let task = uploadTask(
      withStreamedRequest: request, progress: uploadProgress, completionHandler: box.completion(success, failure))
    box.task = task
    return run(task)
  }

  /// Starts a `PUT` request.
  @discardableResult
  open func put(
    _ URLString: String, parameters: Any?, headers: [String: String]? = nil,
    success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)? = nil
  ) -> URLSessionDataTask? {
    run(
      dataTask(
        withHTTPMethod: "PUT", urlString: URLString, parameters: parameters, headers: headers, uploadProgress: nil,
        downloadProgress: nil, success: success, failure: failure))
  }

  /// Starts a `PATCH` request.
  @discardableResult
  open func patch(
    _ URLString: String, parameters: Any?, headers: [String: String]? = nil,
    success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)? = nil
  ) -> URLSessionDataTask? {
    run(
      dataTask(
        withHTTPMethod: "PATCH", urlString: URLString, parameters: parameters, headers: headers, uploadProgress: nil,
        downloadProgress: nil, success: success, failure: failure))
  }

  /// Starts a `DELETE` request.
  @discardableResult
  open func delete(
    _ URLString: String, parameters: Any?, headers: [String: String]? = nil,
    success: ((URLSessionDataTask, Any?) -> Void)?, failure: ((URLSessionDataTask?, any Error) -> Void)? = nil
  ) -> URLSessionDataTask? {
    run(
      dataTask(
        withHTTPMethod: "DELETE", urlString: URLString, parameters: parameters, headers: headers, uploadProgress: nil,
        downloadProgress: nil, success: success, failure: failure))
  }

  // MARK: - NSObject

  open override var description: String {
    "<\(type(of: self)): \(address), baseURL: \(baseURL?.absoluteString ?? "(null)"), session: \(session), "
      + "operationQueue: \(operationQueue)>"
  }

  /// Creates a manager from an archive. The archive has the base URL, the serializers and the policy, and of the
  /// configuration only the identifier, if there is one.
  public required init?(coder decoder: NSCoder) {
    requests = Mutex(Requests(base: decoder.text(forKey: "baseURL").flatMap { URL(string: $0) }.map(Base.init)))
    super.init(coder: decoder)
    if let serializer: AFHTTPRequestSerializer = decoder.object(forKey: "requestSerializer") {
      requestSerializer = serializer
    }
    if let serializer: AFHTTPResponseSerializer = decoder.object(forKey: "responseSerializer") {
      responseSerializer = serializer
    }
    if let policy: AFSecurityPolicy = decoder.object(forKey: "securityPolicy") { securityPolicy = policy }
  }

  open override func encode(with coder: NSCoder) {
    super.encode(with: coder)
    if let baseURL { coder.encode(NSString(string: baseURL.absoluteString), forKey: "baseURL") }
    coder.encode(requestSerializer, forKey: "requestSerializer")
    coder.encode(responseSerializer, forKey: "responseSerializer")
    coder.encode(securityPolicy, forKey: "securityPolicy")
  }

  /// Returns a manager of the same class with a new session, the same configuration, and copies of the serializers and
  /// the policy. Blocks are not copied.
  open override func copy(with zone: NSZone? = nil) -> Any {
    guard let copy = blank() as? AFHTTPSessionManager else { return self }
    let base = base
    copy.requests.withLock { $0 = Requests(base: base) }
    if let serializer = requestSerializer.copy() as? AFHTTPRequestSerializer { copy.requestSerializer = serializer }
    if let serializer = responseSerializer.copy() as? AFHTTPResponseSerializer { copy.responseSerializer = serializer }
    if let policy = securityPolicy.copy() as? AFSecurityPolicy { copy.securityPolicy = policy }
    return copy
  }
}
