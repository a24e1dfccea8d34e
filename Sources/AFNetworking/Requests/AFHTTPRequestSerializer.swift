import Foundation
import Larkspur
import Synchronization

/// Makes requests with parameters in the URL's query, or in a form body (`application/x-www-form-urlencoded`), and with the
/// header fields that every request is to have.
///
/// It may be used on any thread. A copy has all that this one has; an archive has all but the query block.
open class AFHTTPRequestSerializer: NSObject, AFURLRequestSerialization, @unchecked Sendable {
  /// Turns parameters into a query. It is called on the thread that makes the request.
  public typealias QueryStringSerialization = (URLRequest, Any, NSErrorPointer) -> String?

  let state: Mutex<RequestSerializerState>

  /// With `Accept-Language` and `User-Agent` as the default header fields.
  public override init() {
    state = Mutex(RequestSerializerState(fields: DefaultFields.current))
    super.init()
  }

  /// A serializer with the default settings.
  open class func serializer() -> AFHTTPRequestSerializer { AFHTTPRequestSerializer() }

  // MARK: - Properties of requests

  /// How form bodies are written, as `String.Encoding.rawValue`. UTF-8 by default.
  open var stringEncoding: UInt {
    get { state.withLock { $0.stringEncoding } }
    set { state.withLock { $0.stringEncoding = newValue } }
  }

  /// Requests get this, and the five below, only if it has been set here.
  open var allowsCellularAccess: Bool {
    get { state.withLock { $0.settings.allowsCellularAccess } ?? true }
    set { state.withLock { $0.settings.allowsCellularAccess = newValue } }
  }

  /// `.useProtocolCachePolicy` by default.
  open var cachePolicy: NSURLRequest.CachePolicy {
    get { state.withLock { $0.settings.cachePolicy } ?? .useProtocolCachePolicy }
    set { state.withLock { $0.settings.cachePolicy = newValue } }
  }

  /// True by default.
  open var httpShouldHandleCookies: Bool {
    get { state.withLock { $0.settings.handlesCookies } ?? true }
    set { state.withLock { $0.settings.handlesCookies = newValue } }
  }

  /// False by default.
  open var httpShouldUsePipelining: Bool {
    get { state.withLock { $0.settings.usesPipelining } ?? false }
    set { state.withLock { $0.settings.usesPipelining = newValue } }
  }

  /// `.default` by default.
  open var networkServiceType: NSURLRequest.NetworkServiceType {
    get { state.withLock { $0.settings.networkServiceType } ?? .default }
    set { state.withLock { $0.settings.networkServiceType = newValue } }
  }

  /// In seconds; 60 by default.
  open var timeoutInterval: TimeInterval {
    get { state.withLock { $0.settings.timeoutInterval } ?? 60 }
    set { state.withLock { $0.settings.timeoutInterval = newValue } }
  }

  // MARK: - Header fields

  /// What every request gets, but for fields that it has already.
  open var httpRequestHeaders: [String: String] { state.withLock { $0.fields } }

  /// Sets a default field in place of any of that name, or removes it if `value` is nil. Names are compared without regard
  /// to case.
  open func setValue(_ value: String?, forHTTPHeaderField field: String) {
    state.withLock { $0.setField(field, to: value) }
  }

  /// The value of a default field, whose name is compared without regard to case.
  open func value(forHTTPHeaderField field: String) -> String? { state.withLock { $0.field(field) } }

  /// Sets `Authorization` to Basic (RFC 7617), in UTF-8.
  open func setAuthorizationHeaderFieldWithUsername(_ username: String, password: String) {
    setValue("Basic " + Data("\(username):\(password)".utf8).base64EncodedString(), forHTTPHeaderField: "Authorization")
  }

  /// Sets `Authorization` to a token as Rails understands it.
  @available(*, deprecated, message: "Use setValue(_:forHTTPHeaderField:).")
  open func setAuthorizationHeaderFieldWithToken(_ token: String) {
    setValue("Token token=\"\(token)\"", forHTTPHeaderField: "Authorization")
  }

  /// Removes `Authorization`.
  open func clearAuthorizationHeader() { setValue(nil, forHTTPHeaderField: "Authorization") }

  // MARK: - Queries

  /// The methods whose parameters go into the URL: GET, HEAD and DELETE by default, in upper case.
  open var httpMethodsEncodingParametersInURI: Set<String> {
    get { state.withLock { $0.methodsWithQuery } }
    set { state.withLock { $0.methodsWithQuery = newValue } }
  }

  /// Sets how a query is written, and takes a block that has been set away.
  open func setQueryStringSerializationWith(_ style: AFHTTPRequestQueryStringSerializationStyle) {
    state.withLock {
      $0.style = style
      $0.query = nil
    }
  }

  /// Sets who writes queries and form bodies from now on. If it sets the error there is no request.
  open func setQueryStringSerializationWith(_ block: QueryStringSerialization?) {
    let carried = block.map(Carried.init)
    state.put(carried, at: \.query)
  }

  // MARK: - Requests

  /// A request with the properties that have been set here, the default fields and the parameters.
  ///
  /// - Throws: An error in `AFURLRequestSerializationErrorDomain` if the URL is none; what the parameters' writer throws.
  open func request(withMethod method: String, urlString: String, parameters: Any?) throws -> NSMutableURLRequest {
    guard let url = URL(string: urlString) else {
      throw RequestProblem.make(.badURL, "\(urlString) is no URL.")
    }
    var request = URLRequest(url: url)
    request.httpMethod = method
    state.withLock { $0.settings }.apply(to: &request)
    let ready = try self.request(bySerializingRequest: request, withParameters: parameters)
    return MutableRequest.make(ready)
  }

  /// As `request(withMethod:urlString:parameters:)`, which it calls.
  ///
  /// - Returns: If something is wrong, a request without a URL, which fails when it is loaded.
  open func request(withMethod method: String, urlString: String, parameters: Any?, error: NSErrorPointer)
    -> NSMutableURLRequest
  {
    AutoreleasingUnsafeMutablePointer<NSError?>.reported(to: error) {
      try request(withMethod: method, urlString: urlString, parameters: parameters)
    } ?? MutableRequest.nowhere(method)
  }

  /// A request whose body is a form in parts (`multipart/form-data`, RFC 7578). The body is a stream: files are read as it
  /// is sent, and it can be sent again as often as need be, but for parts that are streams themselves. `Content-Length`
  /// says its exact length.
  ///
  /// - Parameters:
  ///   - method: Neither GET nor HEAD.
  ///   - parameters: Parts of their own, before those of the block; keys as in a query. `Data` goes as it is, `NSNull` is
  ///     an empty part.
  ///   - block: Appends parts. It is called before this function returns.
  ///   - error: Takes what went wrong, but for what the block does: its calls throw for themselves.
  ///   - urlString: Relative to the base URL, or a whole URL.
  /// - Returns: If something is wrong, a request without a URL, which fails when it is loaded.
  open func multipartFormRequest(
    withMethod method: String, urlString: String, parameters: [String: Any]?,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, error: NSErrorPointer
  ) -> NSMutableURLRequest {
    AutoreleasingUnsafeMutablePointer<NSError?>.reported(to: error) {
      guard !["GET", "HEAD"].contains(method.uppercased()) else {
        throw RequestProblem.make(.unknown, "A \(method) request has no form in its body.")
      }
      let request = try AutoreleasingUnsafeMutablePointer<NSError?>.thrown {
        self.request(withMethod: method, urlString: urlString, parameters: nil, error: $0)
      }
      let form = MultipartForm()
      try form.append(parameters ?? [:], encoding: String.Encoding(rawValue: stringEncoding))
      block?(form)
      form.finish(request)
      return request
    } ?? MutableRequest.nowhere(method)
  }

  /// Writes the body stream of a request into a file, on a queue of the system.
  ///
  /// The stream is copied if it can be, as a form's can: the request may still be sent then.
  ///
  /// - Parameters:
  ///   - fileURL: A file that is there is written over. If writing fails there is no file.
  ///   - handler: Called on the main queue. A program whose main thread does not run it (by `RunLoop.main.run()`,
  ///     `dispatchMain()` or an async `main`) hears nothing: it uses the async form.
  ///   - request: What is to be loaded.
  /// - Returns: The request without its body, to be sent with the file.
  @discardableResult
  open func request(
    withMultipartForm request: URLRequest, writingStreamContentsToFile fileURL: URL,
    completionHandler handler: (((any Error)?) -> Void)?
  ) -> NSMutableURLRequest {
    FormFile.write(request, to: fileURL, handler: handler)
    var rest = request
    rest.httpBodyStream = nil
    return MutableRequest.make(rest)
  }

  // MARK: - Serialization

  /// See ``AFURLRequestSerialization``.
  open func request(
    bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer
  ) -> URLRequest? {
    AutoreleasingUnsafeMutablePointer<NSError?>.reported(to: error) { try serialized(request, parameters) }
  }

  /// What kinds of bodies differ in: the type, and the bytes. Nil: no body.
  func body(of parameters: Any?, for request: URLRequest) throws -> (type: String, bytes: Data)? {
    // No parameters are an empty form.
    let text = try query(of: parameters, for: request) ?? ""
    let encoding = String.Encoding(rawValue: stringEncoding)
    guard let bytes = TextCoding.bytes(of: text, in: encoding) else {
      throw RequestProblem.make(.cannotDecodeContentData, "The form has no bytes in \(encoding).", request: request)
    }
    return ("application/x-www-form-urlencoded", bytes)
  }

  // MARK: - Archives and copies

  open class var supportsSecureCoding: Bool { true }

  public required init?(coder decoder: NSCoder) {
    state = Mutex(RequestSerializerState(decoder))
    super.init()
  }

  open func encode(with coder: NSCoder) { state.withLock { $0 }.encode(with: coder) }

  open override func copy() -> Any { copy(with: nil) }

  /// A serializer of the same class. One of a subclass is made by `init(coder:)` from what `encode(with:)` writes.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = blank() ?? AFHTTPRequestSerializer()
    let state = state.withLock { $0 }
    copy.state.withLock { $0 = state }
    return copy
  }

  /// An object of this class, whatever its settings.
  func blank() -> AFHTTPRequestSerializer? {
    if type(of: self) == AFHTTPRequestSerializer.self { return AFHTTPRequestSerializer() }
    let archiver = NSKeyedArchiver(requiringSecureCoding: false)
    encode(with: archiver)
    archiver.finishEncoding()
    guard let unarchiver = try? NSKeyedUnarchiver(forReadingFrom: archiver.encodedData) else { return nil }
    unarchiver.requiresSecureCoding = false
    return type(of: self).init(coder: unarchiver)
  }
}

extension AFHTTPRequestSerializer {
  /// For `error: &error`.
  public func request(withMethod method: String, urlString: String, parameters: Any?, error: inout NSError?)
    -> NSMutableURLRequest
  {
    AutoreleasingUnsafeMutablePointer<NSError?>.copied(to: &error) {
      request(withMethod: method, urlString: urlString, parameters: parameters, error: $0)
    }
  }

  /// For `error: &error`.
  public func multipartFormRequest(
    withMethod method: String, urlString: String, parameters: [String: Any]?,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, error: inout NSError?
  ) -> NSMutableURLRequest {
    AutoreleasingUnsafeMutablePointer<NSError?>.copied(to: &error) {
      multipartFormRequest(
        withMethod: method, urlString: urlString, parameters: parameters, constructingBodyWith: block, error: $0)
    }
  }

  /// As `multipartFormRequest(withMethod:urlString:parameters:constructingBodyWith:error:)`, and throws its error.
  public func multipartFormRequest(
    withMethod method: String, urlString: String, parameters: [String: Any]?,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?
  ) throws -> NSMutableURLRequest {
    try AutoreleasingUnsafeMutablePointer<NSError?>.thrown {
      multipartFormRequest(
        withMethod: method, urlString: urlString, parameters: parameters, constructingBodyWith: block, error: $0)
    }
  }

  /// As the form with a handler, and returns when the file is complete.
  public func request(withMultipartForm request: URLRequest, writingStreamContentsToFile fileURL: URL) async throws
    -> URLRequest
  {
    try await FormFile.write(request, to: fileURL)
    var rest = request
    rest.httpBodyStream = nil
    return rest
  }
}
