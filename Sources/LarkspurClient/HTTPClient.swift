import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport

/// A client for HTTP/1.1 without Foundation, for programs that have to be small.
///
/// ```swift
/// let page = try await HTTPClient.shared.get("https://example.org/") { response in
///   try await response.body.collect(upTo: 1 << 20)
/// }
/// ```
///
/// A request calls a closure with its response, when the response's head has arrived. The body belongs to that closure: it is
/// read while the closure runs, and memory is bounded however long it is. When the closure ends, the connection serves the
/// next request if the body was read to its end, or if at most 64 KiB of it are left that come soon; otherwise it is closed.
/// A connection cannot leak.
///
/// Requests of one client share its connections and cookies. Any thread and any task may use a client. A request is cancelled
/// with its task. The client's connections are closed when the last reference to it is released; requests that run keep it.
///
/// Errors are ``HTTPClientError``, and the errors of the closure or an interceptor. A status such as 404 is no error.
public final class HTTPClient: Sendable {
  /// A client with the default options.
  public static let shared = HTTPClient()

  /// The options that the client was created with.
  public let options: Options
  let engine: Result<ClientEngine, HTTPClientError>

  /// Creates a client. An option that cannot be used fails each request.
  public convenience init(_ options: Options = Options()) {
    self.init(options) { () throws(HTTPClientError) in try ClientEngine(options) }
  }

  /// Creates a client on a loop that outlives the client, with options of its pool.
  package convenience init(_ options: Options, on loop: ClientLoop, _ poolOptions: Pool.Options) {
    self.init(options) { () throws(HTTPClientError) in try ClientEngine(options, on: loop, nil, poolOptions) }
  }

  private init(_ options: Options, _ makeEngine: () throws(HTTPClientError) -> ClientEngine) {
    self.options = options
    do throws(HTTPClientError) {
      engine = .success(try makeEngine())
    } catch {
      engine = .failure(error)
    }
  }

  /// The loop of the client's requests, as an executor for Swift tasks that prefer it: awaiting a request then costs no
  /// switch between threads. Child tasks inherit the preference.
  ///
  /// A loop is one thread, which other clients share: code that runs there must not block, and should not compute for long.
  /// Code that is isolated to an actor stays on its actor. The value is valid as long as the process runs. It is `nil`, which
  /// prefers nothing, if an option of the client cannot be used.
  public var taskExecutor: (any TaskExecutor)? { try? engine.get().loop }

  /// The client's pool, or `nil` if an option cannot be used.
  package var pool: Pool? { try? engine.get().pool }

  deinit { if case .success(let engine) = engine { engine.shutDown() } }

  /// Loads a URL with GET.
  ///
  /// - Parameters:
  ///   - url: The URL as text.
  ///   - fields: The request's own fields.
  ///   - handle: Called with the response. Its result is the call's result.
  public func get<Result>(
    _ url: String, fields: FieldList = [], _ handle: (Response) async throws -> Result
  ) async throws -> Result {
    try await perform(Request(url, fields: fields), handle)
  }

  /// Sends a body with POST.
  ///
  /// - Parameters:
  ///   - url: The URL as text.
  ///   - body: The request's body.
  ///   - contentType: The body's media type, such as `application/json`.
  ///   - fields: The request's other fields.
  ///   - handle: Called with the response. Its result is the call's result.
  public func post<Result>(
    _ url: String, _ body: RequestBody, contentType: String, fields: FieldList = [],
    _ handle: (Response) async throws -> Result
  ) async throws -> Result {
    let fields = fields + [Field("Content-Type", contentType)]
    return try await perform(Request(url, method: "POST", fields: fields, body: body), handle)
  }

  /// Sends a request, and calls `handle` with the response. `handle` runs where the caller runs.
  ///
  /// The response may come while the request's body is still sent: both directions are open at once, and the rest of the
  /// body is sent while the response's body is read.
  public func perform<Result>(
    _ request: Request, _ handle: (Response) async throws -> Result
  ) async throws -> Result {
    let load = ClientLoad(request, of: self, try engine.get())
    return try await withTaskCancellationHandler {
      try await load.run()
      do {
        let result = try await handle(Response(load))
        await load.finish(mayDrain: true)
        return result
      } catch {
        await load.finish(mayDrain: false)
        throw error
      }
    } onCancel: {
      load.cancel()
    }
  }
}
