import Foundation
import Larkspur
import Synchronization

/// A session manager that makes HTTP requests of a method, a path and parameters, and starts them by itself.
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
/// For any thread. Blocks are called on ``AFURLSessionManager/completionQueue``, progress blocks on
/// ``AFURLSessionManager/operationQueue``.
open class AFHTTPSessionManager: AFURLSessionManager, @unchecked Sendable {
  struct Requests: @unchecked Sendable {
    var base: Base?
    var serializer = AFHTTPRequestSerializer()
    /// What the latest path has come to: many programs ask for the same again and again.
    var latest: (path: String, url: URL)?

    init(base: Base? = nil) { self.base = base }
  }

  /// A base URL, and what has to be known of it for every request.
  struct Base: Sendable {
    let url: URL
    let text: String
    let origin: BaseOrigin
    /// It ends with a slash, and has neither query nor fragment.
    let isFolder: Bool

    init(_ url: URL) {
      self.url = url
      text = url.absoluteString
      origin = BaseOrigin(url)
      isFolder = text.hasSuffix("/") && !url.path.isEmpty && url.query == nil && url.fragment == nil
    }
  }

  let requests: Mutex<Requests>

  /// - Parameters:
  ///   - url: Where relative paths begin. `https://example.com/v1` counts as `https://example.com/v1/`.
  ///   - configuration: Copied. Nil: the default configuration.
  public init(baseURL url: URL?, sessionConfiguration configuration: URLSessionConfiguration?) {
    requests = Mutex(Requests(base: url.map { Base($0.asFolder) }))
    super.init(sessionConfiguration: configuration)
  }

  /// With the default configuration.
  public convenience init(baseURL url: URL?) { self.init(baseURL: url, sessionConfiguration: nil) }

  public override convenience init(sessionConfiguration configuration: URLSessionConfiguration?) {
    self.init(baseURL: nil, sessionConfiguration: configuration)
  }

  /// A manager without a base URL.
  public class func manager() -> AFHTTPSessionManager { AFHTTPSessionManager() }

  // MARK: - What it has

  /// Where relative paths begin. If it has a path, that ends with a slash.
  open var baseURL: URL? { base?.url }

  var base: Base? { requests.withLock { $0 }.base }

  /// What makes requests of methods, paths and parameters. From the beginning an ``AFHTTPRequestSerializer``.
  open var requestSerializer: AFHTTPRequestSerializer {
    get { requests.withLock { $0 }.serializer }
    set { requests.put(newValue, at: \.serializer) }
  }

  /// What makes something useful of responses, for tasks that end from now on. From the beginning an
  /// ``AFJSONResponseSerializer``.
  open var responseSerializer: AFHTTPResponseSerializer {
    get { storedResponseSerializer as? AFHTTPResponseSerializer ?? AFHTTPResponseSerializer() }
    set { storedResponseSerializer = newValue }
  }

  /// Decides whether a server is trusted.
  ///
  /// A policy that pins is of no use for a base URL that is not `https`: anybody on the way could answer in the
  /// server's place. AFNetworking raises an exception. Here such a policy is refused: the one before stays, and every
  /// request fails with an error that says so, until a policy is set that can be used.
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

  /// Makes a request with the request serializer, and a data task with it, which is resumed by the caller.
  ///
  /// - Parameters:
  ///   - urlString: Relative to ``baseURL``, or a whole URL.
  ///   - parameters: What the request serializer takes: as a rule a dictionary.
  ///   - headers: Fields for this request; they replace the serializer's.
  ///   - success: Called on the completion queue with what the response serializer has made of the response.
  ///   - failure: Called on the completion queue, if anything went wrong: also if no request could be made, and then
  ///     without a task.
  ///   - downloadProgress: Called on the operation queue as the content comes.
  ///   - method: As it stands in the request: `GET`, or whatever the server knows.
  ///   - uploadProgress: Called on the operation queue as the body leaves.
  /// - Returns: Nil: no request could be made.
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
      tell(failure, of: error)
      return nil
    }
    let own = Own<URLSessionDataTask>()
    let task = dataTask(
      with: request, uploadProgress: uploadProgress, downloadProgress: downloadProgress,
      completionHandler: own.completion(success, failure))
    own.task = task
    return task
  }

  /// A GET. Its task runs already; nil: no request could be made. For the parameters see
  /// ``dataTask(withHTTPMethod:urlString:parameters:headers:uploadProgress:downloadProgress:success:failure:)``.
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

  /// A HEAD, which runs already.
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

  /// A POST, which runs already.
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

  /// A POST of a form in parts, which runs already.
  ///
  /// - Parameters:
  ///   - parameters: A dictionary; parts of the form, before those of the block.
  ///   - block: Appends parts. It is called before this function returns.
  ///   - headers: Fields for this request; they replace the serializer's.
  ///   - URLString: Relative to the base URL, or a whole URL.
  ///   - failure: Called on the completion queue, if anything went wrong.
  ///   - success: Called on the completion queue, if all went well.
  ///   - uploadProgress: Called on the operation queue as the body leaves.
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
      tell(failure, of: error)
      return nil
    }
    let own = Own<URLSessionDataTask>()
    let task = uploadTask(
      withStreamedRequest: request, progress: uploadProgress, completionHandler: own.completion(success, failure))
    own.task = task
    return run(task)
  }

  /// A PUT, which runs already.
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

  /// A PATCH, which runs already.
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

  /// A DELETE, which runs already.
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

  /// Of a configuration an archive keeps the identifier, if it has one; of the rest base URL, serializers and policy.
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

  /// A manager of the same class with a session of its own, of the same configuration, with copies of the serializers
  /// and the policy. Blocks are not copied.
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
