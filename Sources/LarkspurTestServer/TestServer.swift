import LarkspurBytes
import LarkspurIO

/// An HTTP/1.1 server on the loopback interface, for tests of clients.
///
/// The server answers by its own routes (`/get`, `/bytes/N`, `/redirect/N`, listed in <doc:LarkspurTestServer>), by
/// routes that the test adds, and by scripts, which do on a connection whatever a good or a bad server could do:
///
/// ```swift
/// let server = try TestServer()
/// server.route("GET", "/hello/{name}") { request in .text("Hello, \(request.parameters["name"] ?? "")!") }
/// server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close])
/// // ... the client asks for server.url("/get"), and sees a body that is cut short ...
/// try await server.waitForRequests(1)
/// #expect(server.failures.isEmpty)
/// ```
///
/// Every connection has a dedicated thread, which runs its script and the routes' closures: they may block. All methods
/// and properties may be used on any thread. The server stops when its last reference is released.
public final class TestServer: Sendable {
  /// The loopback address to listen on.
  public enum Address: Hashable, Sendable {
    /// 127.0.0.1
    case ipv4
    /// ::1
    case ipv6
  }

  /// Limits of the server.
  public struct Options: Hashable, Sendable {
    /// The loopback address to listen on.
    public var address = Address.ipv4
    /// The maximum length of a head in bytes. A route answers a longer head with 431; a script's step fails.
    public var headBytesMax = 1 << 20
    /// The maximum number of bytes of a request's body that routes and records get. All other bytes only enter the
    /// count and the checksum.
    public var bodyBytesKept = 16 << 20
    /// The number of latest requests that ``TestServer/requests`` keeps, and of handshakes in
    /// ``TestServer/handshakes`` and ``TestServer/webSockets``.
    public var requestsKept = 10_000
    /// The maximum length in bytes of a WebSocket message that a client sends, inflated if it was compressed. A longer
    /// one fails the step that reads it.
    public var webSocketMessageBytesMax = 64 << 20
    /// The number of latest frames, and of latest messages, that the record of each WebSocket keeps.
    public var webSocketFramesKept = 10_000
    /// The number of payload bytes of frames, and of messages, that the record of each WebSocket keeps. Of later ones
    /// only the length is recorded.
    public var webSocketBytesKept = 16 << 20

    /// Creates the default limits, and the address 127.0.0.1.
    public init() {}
  }

  /// The reason, in words, why the server could not listen or could not use its TLS settings.
  public struct ListenError: Error, Hashable, CustomStringConvertible {
    /// The reason in words.
    public let description: String
  }

  /// The server stopped before the awaited event could happen.
  public struct Stopped: Error, Hashable {
    /// Creates the error.
    public init() {}
  }

  /// The TCP port that the server listens on, chosen by the kernel.
  public let port: Int
  let core: ServerCore

  /// Starts a server on a free port of the loopback interface.
  ///
  /// - Parameters:
  ///   - options: The address and the limits.
  ///   - tls: The TLS settings, or `nil` for HTTP without TLS.
  public convenience init(_ options: Options = Options(), tls: TLS? = nil) throws(ListenError) {
    let address: SocketAddress =
      switch options.address {
      case .ipv4: .loopback(port: 0)
      case .ipv6: .ipv6(high: 0, low: 1, scope: 0, port: 0)
      }
    try self.init(options, tls: tls, at: address)
  }

  /// Starts a server on any address of this machine. The server's URLs still name the loopback address.
  package init(_ options: Options = Options(), tls: TLS? = nil, at address: SocketAddress) throws(ListenError) {
    let security: (TLS, TLSContext)?
    do {
      security = if let tls { (tls, try TLSContext(tls)) } else { nil }
    } catch {
      throw ListenError(description: "TLS cannot be set up: \(error.message)")
    }
    let listener: BlockingListener
    do {
      listener = try BlockingListener(address: address)
    } catch {
      throw ListenError(description: "cannot listen on \(address): \(error)")
    }
    port = Int(listener.port)
    core = ServerCore(listener, options: options, tls: security)
    guard core.startThread("test-server", { acceptConnections(listener, $0) }) else {
      throw ListenError(description: "cannot start a thread")
    }
  }

  deinit {
    core.stop()
  }

  /// Closes all connections, and returns when all of the server's threads have ended. Called on one of those threads,
  /// in a route's closure, it returns at once. A second call does nothing more.
  ///
  /// Clients see their connections end. The call waits for running closures of routes.
  public func stop() { core.stop() }

  /// The authority of the server's URLs: `127.0.0.1:port` or `[::1]:port`.
  public var authority: String { (core.options.address == .ipv4 ? "127.0.0.1:" : "[::1]:") + String(port) }

  /// Returns the URL of a path on this server, such as `/get` or `/range/100?x=1`, with `https` if the server speaks
  /// TLS.
  ///
  /// - Parameters:
  ///   - path: The path, with or without a query. A `/` in front is added if there is none.
  ///   - host: A name of this machine, such as `localhost`, to use in place of the IP address.
  public func url(_ path: String = "/", host: String? = nil) -> String {
    let authority = host.map { "\($0):\(port)" } ?? authority
    return (core.tls == nil ? "http://" : "https://") + authority + (path.hasPrefix("/") ? path : "/" + path)
  }

  /// Returns the URL of a path on this server for WebSockets: `ws://`, or `wss://` if the server speaks TLS.
  ///
  /// - Parameters:
  ///   - path: The path, with or without a query. A `/` in front is added if there is none.
  ///   - host: A name of this machine, such as `localhost`, to use in place of the IP address.
  public func webSocketURL(_ path: String = "/", host: String? = nil) -> String {
    "ws" + url(path, host: host).dropFirst("http".count)
  }

  // MARK: Routes

  /// Adds a route for a method and a path. The latest route that matches a request answers it; the server's own come
  /// last.
  ///
  /// - Parameters:
  ///   - method: The method, compared with its letter case. `GET` answers `HEAD` too; `*` is any method.
  ///   - path: The path. Segments are compared after percent-decoding. `{name}` matches any one segment, which is then
  ///     in ``Request/parameters``; `*` at the end matches any rest.
  ///   - respond: Called on the connection's thread when the whole request has been read. It may block. If it throws,
  ///     the server answers with 500 and records the error in ``failures``.
  public func route(_ method: String, _ path: String, respond: @escaping @Sendable (Request) throws -> Response) {
    core.add(Router.Route(method, path) { request in .response(try respond(request)) })
  }

  /// Adds a route that runs a script. The request has been read when the script starts; its first step is the response.
  ///
  /// The server closes the connection after the script, unless the script ends with ``Step/serveRoutes``.
  public func route(_ method: String, _ path: String, script: Script) {
    core.add(Router.Route(method, path) { _ in .script(script) })
  }

  /// Adds a route that accepts WebSockets, and does the steps on each. The server closes the connection after the
  /// steps.
  ///
  /// - Parameters:
  ///   - path: The path, as for other routes.
  ///   - steps: The steps on each WebSocket.
  ///   - answer: The choices of the server in the opening handshake, and its faults.
  public func webSocket(_ path: String, _ steps: [WebSocketStep], answer: WebSocketAnswer = WebSocketAnswer()) {
    route("GET", path, script: [.webSocket(steps, answer: answer)])
  }

  /// Adds a route that sends an event stream, and continues it when the client reconnects.
  public func eventStream(_ path: String, _ stream: EventStream) {
    core.add(Router.Route("GET", path) { stream.answer(to: $0) })
  }

  /// Adds a route that takes resumable uploads, and returns their record. The route comes before all others.
  ///
  /// - Parameters:
  ///   - path: The path of the request that starts an upload, with any method. The upload resources have the path with
  ///     a number behind it, such as `/files/1`.
  ///   - upload: The choices of the server, and its faults.
  @discardableResult
  public func resumableUploads(_ path: String, _ upload: ResumableUpload = ResumableUpload()) -> Uploads {
    let uploads = Uploads(path, upload)
    core.add(uploads)
    return uploads
  }

  // MARK: Scripts

  /// Appends scripts to the queue. Each new connection takes the first script of the queue, if there is one.
  public func enqueue(_ scripts: Script...) { core.enqueue(scripts) }

  /// The number of scripts in the queue that no connection has taken yet.
  public var scriptsPending: Int { core.scriptsPending }

  /// The script of connections that find the queue empty. If `nil`, the default, they are served by the ordinary
  /// routes.
  public var defaultScript: Script? {
    get { core.defaultScript }
    set { core.defaultScript = newValue }
  }

  // MARK: Records

  /// The latest requests, in the order in which they were recorded.
  ///
  /// The ordinary routes record a request when it is complete. A script records a request when its head has been read,
  /// and completes the record when the body has been read.
  public var requests: [Request] { core.requests }

  /// The number of requests recorded since the start.
  public var requestsReceived: Int { core.count(.requests) }

  /// The latest TLS handshakes, in the order in which they were completed or failed.
  ///
  /// A failed handshake is not in ``failures``.
  public var handshakes: [Handshake] { core.handshakes }

  /// The latest WebSockets, in the order in which the server answered their handshakes, with all that the clients sent.
  public var webSockets: [WebSocket] { core.webSockets }

  /// The number of connections accepted since the start.
  public var connectionsAccepted: Int { core.count(.connections) }

  /// The number of accepted connections that the server has closed.
  public var connectionsClosed: Int { core.count(.closedConnections) }

  /// The failures so far, in words: unmet expectations of scripts, malformed requests, errors thrown by routes. Most
  /// begin with the connection's number.
  public var failures: [String] { core.failures }

  // MARK: Waiting

  /// Suspends until `count` requests have been recorded since the server's start, and returns ``requests``.
  ///
  /// All waiting methods throw ``Stopped`` if the server stops first, and `CancellationError` if the task is cancelled.
  @discardableResult
  public func waitForRequests(_ count: Int) async throws -> [Request] {
    try await core.wait(for: .requests, count)
    return requests
  }

  /// Suspends until `count` connections have been accepted since the server's start.
  public func waitForConnections(_ count: Int) async throws { try await core.wait(for: .connections, count) }

  /// Suspends until `count` TLS handshakes have been completed or have failed since the server's start, and returns
  /// ``handshakes``.
  @discardableResult
  public func waitForHandshakes(_ count: Int) async throws -> [Handshake] {
    try await core.wait(for: .handshakes, count)
    return handshakes
  }

  /// Suspends until the server has answered `count` opening handshakes of WebSockets since its start, and returns
  /// ``webSockets``.
  @discardableResult
  public func waitForWebSockets(_ count: Int) async throws -> [WebSocket] {
    try await core.wait(for: .webSockets, count)
    return webSockets
  }

  /// Suspends until clients have sent `count` messages since the server's start, over all WebSockets together, and
  /// returns ``webSockets``.
  ///
  /// Only messages that a step has read are counted.
  @discardableResult
  public func waitForWebSocketMessages(_ count: Int) async throws -> [WebSocket] {
    try await core.wait(for: .webSocketMessages, count)
    return webSockets
  }

  /// Suspends until clients have sent `count` Close frames since the server's start, over all WebSockets together, and
  /// returns ``webSockets``.
  ///
  /// Only frames that a step has read are counted.
  @discardableResult
  public func waitForWebSocketCloses(_ count: Int) async throws -> [WebSocket] {
    try await core.wait(for: .webSocketCloses, count)
    return webSockets
  }

  /// Suspends until the server has closed `count` connections, usually because the client has closed.
  public func waitForClosedConnections(_ count: Int) async throws {
    try await core.wait(for: .closedConnections, count)
  }
}
