import Foundation
import Larkspur
import Synchronization

/// Creates requests with parameters in the URL's query, or in a form body (`application/x-www-form-urlencoded`), and
/// with default header fields.
///
/// Safe to use from any thread. A copy has all settings; an archive has all but the query block.
open class AFHTTPRequestSerializer: NSObject, AFURLRequestSerialization, @unchecked Sendable {
  /// Turns parameters into a query. It is called on the thread that creates the request.
  public typealias QueryStringSerialization = (URLRequest, Any, NSErrorPointer) -> String?

  let state: Mutex<RequestSerializerState>

  /// Creates a serializer with `Accept-Language` and `User-Agent` as its default header fields.
  public override init() {
    state = Mutex(RequestSerializerState(fields: DefaultFields.current))
    super.init()
  }

  /// Creates a serializer with the default settings.
  open class func serializer() -> AFHTTPRequestSerializer { AFHTTPRequestSerializer() }

  // MARK: - Properties of requests

  /// The encoding of form bodies, as `String.Encoding.rawValue`. UTF-8 by default.
  open var stringEncoding: UInt {
    get { state.withLock { $0.stringEncoding } }
    set { state.withLock { $0.stringEncoding = newValue } }
  }

  /// The property `allowsCellularAccess` of requests. `true` by default. Requests get this property, and the five
  /// below, only if it has been set here.
  open var allowsCellularAccess: Bool {
    get { state.withLock { $0.settings.allowsCellularAccess } ?? true }
    set { state.withLock { $0.settings.allowsCellularAccess = newValue } }
  }

  /// The property `cachePolicy` of requests. `.useProtocolCachePolicy` by default.
  open var cachePolicy: NSURLRequest.CachePolicy {
    get { state.withLock { $0.settings.cachePolicy } ?? .useProtocolCachePolicy }
    set { state.withLock { $0.settings.cachePolicy = newValue } }
  }

  /// The property `httpShouldHandleCookies` of requests. `true` by default.
  open var httpShouldHandleCookies: Bool {
    get { state.withLock { $0.settings.handlesCookies } ?? true }
    set { state.withLock { $0.settings.handlesCookies = newValue } }
  }

  /// The property `httpShouldUsePipelining` of requests. `false` by default.
  open var httpShouldUsePipelining: Bool {
    get { state.withLock { $0.settings.usesPipelining } ?? false }
    set { state.withLock { $0.settings.usesPipelining = newValue } }
  }

  /// The property `networkServiceType` of requests. `.default` by default.
  open var networkServiceType: NSURLRequest.NetworkServiceType {
    get { state.withLock { $0.settings.networkServiceType } ?? .default }
    set { state.withLock { $0.settings.networkServiceType = newValue } }
  }

  /// The property `timeoutInterval` of requests, in seconds. 60 by default.
  open var timeoutInterval: TimeInterval {
    get { state.withLock { $0.settings.timeoutInterval } ?? 60 }
    set { state.withLock { $0.settings.timeoutInterval = newValue } }
  }

  // MARK: - Header fields

  /// The default header fields. A request gets those that it does not have already.
  open var httpRequestHeaders: [String: String] { state.withLock { $0.fields } }

  /// Sets a default field in place of any of the same name, or removes it if `value` is `nil`. Compares the names
  /// case-insensitively.
  open func setValue(_ value: String?, forHTTPHeaderField field: String) {
    state.withLock { $0.setField(field, to: value) }
  }

  /// Returns the value of a default field. Compares the names case-insensitively.
  open func value(forHTTPHeaderField field: String) -> String? { state.withLock { $0.field(field) } }

  /// Sets the `Authorization` field to Basic (RFC 7617), in UTF-8.
  open func setAuthorizationHeaderFieldWithUsername(_ username: String, password: String) {
    setValue("Basic " + Data("\(username):\(password)".utf8).base64EncodedString(), forHTTPHeaderField: "Authorization")
  }

  /// Sets the `Authorization` field to a token in the notation of Rails.
  @available(*, deprecated, message: "Use setValue(_:forHTTPHeaderField:).")
  open func setAuthorizationHeaderFieldWithToken(_ token: String) {
    setValue("Token token=\"\(token)\"", forHTTPHeaderField: "Authorization")
  }

  /// Removes the `Authorization` field.
  open func clearAuthorizationHeader() { setValue(nil, forHTTPHeaderField: "Authorization") }

  // MARK: - Queries

  /// The methods whose parameters go into the URL, in upper case: GET, HEAD and DELETE by default.
  open var httpMethodsEncodingParametersInURI: Set<String> {
    get { state.withLock { $0.methodsWithQuery } }
    set { state.withLock { $0.methodsWithQuery = newValue } }
  }

  /// Sets the style of queries, and removes a block that was set before.
  open func setQueryStringSerializationWith(_ style: AFHTTPRequestQueryStringSerializationStyle) {
    state.withLock {
      $0.style = style
      $0.query = nil
    }
  }

  /// Sets a block that writes queries and form bodies. If the block sets its error, no request is made.
  open func setQueryStringSerializationWith(_ block: QueryStringSerialization?) {
    let carried = block.map(UncheckedSendable.init)
    state.put(carried, at: \.query)
  }

  // MARK: - Requests

  /// Creates a request with the properties that have been set here, the default fields and the parameters.
  ///
  /// - Throws: An error in `AFURLRequestSerializationErrorDomain` if `urlString` is not a URL, or the error of the
  ///   parameters' serialization.
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

  /// Creates a request like `request(withMethod:urlString:parameters:)`, which this method calls.
  ///
  /// - Returns: The request. After an error, a request without a URL, which fails when it is loaded.
  open func request(withMethod method: String, urlString: String, parameters: Any?, error: NSErrorPointer)
    -> NSMutableURLRequest
  {
    AutoreleasingUnsafeMutablePointer<NSError?>.reported(to: error) {
      try request(withMethod: method, urlString: urlString, parameters: parameters)
    } ?? MutableRequest.nowhere(method)
  }

  /// Creates a request with a multipart form (`multipart/form-data`, RFC 7578) as its body. The body is a stream: files
  /// are read while it is sent, and it can be sent any number of times, unless a part is itself a stream.
  /// `Content-Length` is exact.
  ///
  /// - Parameters:
  ///   - method: Neither GET nor HEAD.
  ///   - parameters: Parts before those of the block, with the keys of a query. `Data` is written unchanged, `NSNull`
  ///     is an empty part.
  ///   - block: Appends parts. It is called before this function returns.
  ///   - error: Receives an error, except for errors in the block, whose calls throw themselves.
  ///   - urlString: An absolute URL.
  /// - Returns: The request. After an error, a request without a URL, which fails when it is loaded.
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

  /// Writes the body stream of a request into a file, on a global dispatch queue.
  ///
  /// A stream that can be copied, as a form's can, is copied first, so that the request can still be sent.
  ///
  /// - Parameters:
  ///   - fileURL: The file. An existing file is replaced. If writing fails, the file is removed.
  ///   - handler: Called on the main queue. In a program whose main thread does not serve that queue (by
  ///     `RunLoop.main.run()`, `dispatchMain()` or an async `main`), it is never called: use the async form there.
  ///   - request: The request whose body is written.
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

  /// Returns the type and the bytes of a body, or `nil` for no body. Subclasses override this method.
  func body(of parameters: Any?, for request: URLRequest) throws -> (type: String, bytes: Data)? {
    // Without parameters the form is empty.
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

  /// Returns a serializer of the same class with the same settings. For subclasses, `init(coder:)` creates it from the
  /// archive that `encode(with:)` writes.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = blank() ?? AFHTTPRequestSerializer()
    let state = state.withLock { $0 }
    copy.state.withLock { $0 = state }
    return copy
  }

  /// Creates an object of this class. Its settings are not defined.
  func blank() -> AFHTTPRequestSerializer? {
    type(of: self) == AFHTTPRequestSerializer.self ? AFHTTPRequestSerializer() : recoded()
  }
}

extension AFHTTPRequestSerializer {
  /// Creates a request, for callers that write `error: &error`.
  public func request(withMethod method: String, urlString: String, parameters: Any?, error: inout NSError?)
    -> NSMutableURLRequest
  {
    AutoreleasingUnsafeMutablePointer<NSError?>.copied(to: &error) {
      request(withMethod: method, urlString: urlString, parameters: parameters, error: $0)
    }
  }

  /// Creates a request with a multipart form, for callers that write `error: &error`.
  public func multipartFormRequest(
    withMethod method: String, urlString: String, parameters: [String: Any]?,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?, error: inout NSError?
  ) -> NSMutableURLRequest {
    AutoreleasingUnsafeMutablePointer<NSError?>.copied(to: &error) {
      multipartFormRequest(
        withMethod: method, urlString: urlString, parameters: parameters, constructingBodyWith: block, error: $0)
    }
  }

  /// Creates a request like `multipartFormRequest(withMethod:urlString:parameters:constructingBodyWith:error:)`, and
  /// throws its error.
  public func multipartFormRequest(
    withMethod method: String, urlString: String, parameters: [String: Any]?,
    constructingBodyWith block: ((any AFMultipartFormData) -> Void)?
  ) throws -> NSMutableURLRequest {
    try AutoreleasingUnsafeMutablePointer<NSError?>.thrown {
      multipartFormRequest(
        withMethod: method, urlString: urlString, parameters: parameters, constructingBodyWith: block, error: $0)
    }
  }

  /// Writes the body stream of a request into a file, and returns when the file is complete.
  ///
  /// - Returns: The request without its body, to be sent with the file.
  public func request(withMultipartForm request: URLRequest, writingStreamContentsToFile fileURL: URL) async throws
    -> URLRequest
  {
    try await FormFile.write(request, to: fileURL)
    var rest = request
    rest.httpBodyStream = nil
    return rest
  }
}
