import LarkspurBytes
import LarkspurIO

/// An HTTP/1.1 server on the loopback interface, for tests of clients.
///
/// It answers by its own routes (`/get`, `/bytes/N`, `/redirect/N`, listed in <doc:LarkspurTestServer>), by routes that the test
/// adds, and by scripts, which do on a connection whatever a good or a bad server could do:
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
/// Every connection has a thread of its own, which runs its script and the routes' closures: they may block. Everything
/// here may be called on any thread. The server stops when it is let go of.
public final class TestServer: Sendable {
  /// The loopback address to listen on.
  public enum Address: Hashable, Sendable {
    /// 127.0.0.1
    case ipv4
    /// ::1
    case ipv6
  }

  /// How much the server takes and keeps.
  public struct Options: Hashable, Sendable {
    public var address = Address.ipv4
    /// A longer head is answered with 431.
    public var headBytesMax = 1 << 20
    /// How much of a request's body is kept for routes and records. The rest is counted and summed only.
    public var bodyBytesKept = 16 << 20
    /// How many requests ``TestServer/requests`` keeps: the latest ones. (And handshakes, ``TestServer/handshakes``.)
    public var requestsKept = 10_000

    public init() {}
  }

  /// The server could not begin to listen, or its TLS makes no sense: why, in words.
  public struct ListenError: Error, Hashable, CustomStringConvertible {
    public let description: String
  }

  /// The server has stopped before what was waited for could happen.
  public struct Stopped: Error, Hashable {
    public init() {}
  }

  /// The TCP port that it listens on. The kernel has chosen it.
  public let port: Int
  private let core: ServerCore

  /// Starts to listen, on a port that is free.
  ///
  /// - Parameter tls: Nil: the server speaks HTTP without TLS.
  public convenience init(_ options: Options = Options(), tls: TLS? = nil) throws(ListenError) {
    let address: SocketAddress =
      switch options.address {
      case .ipv4: .loopback(port: 0)
      case .ipv6: .ipv6(high: 0, low: 1, scope: 0, port: 0)
      }
    try self.init(options, tls: tls, at: address)
  }

  /// Listens on any address of this machine's. The URLs of the server lead to the loopback address all the same.
  package init(_ options: Options = Options(), tls: TLS? = nil, at address: SocketAddress) throws(ListenError) {
    let security: (TLS, TLSContext)?
    do {
      security = if let tls { (tls, try TLSContext(tls)) } else { nil }
    } catch {
      throw ListenError(description: "TLS cannot be set up: \(error.words)")
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

  /// Closes everything, and returns when all of the server's threads have ended. (On one of them, in a route's closure,
  /// it returns at once.) A second call does nothing more.
  ///
  /// Clients see their connections end. Closures of routes are waited for.
  public func stop() { core.stop() }

  /// `127.0.0.1:port`, or `[::1]:port`: what stands in a URL.
  public var authority: String { (core.options.address == .ipv4 ? "127.0.0.1:" : "[::1]:") + String(port) }

  /// The URL of a path on this server, such as `/get` or `/range/100?x=1`: `https` if it speaks TLS.
  ///
  /// - Parameter host: A name that leads to this machine, to stand in place of the IP address: `localhost`.
  public func url(_ path: String = "/", host: String? = nil) -> String {
    let authority = host.map { "\($0):\(port)" } ?? authority
    return (core.tls == nil ? "http://" : "https://") + authority + (path.hasPrefix("/") ? path : "/" + path)
  }

  // MARK: Routes

  /// Answers requests of the method for the path. The latest route for a path counts, the server's own come last.
  ///
  /// - Parameters:
  ///   - method: Case kept; `GET` answers `HEAD` too; `*` is any.
  ///   - path: Segments are compared after percent-decoding. `{name}` stands for any one segment, which is then in
  ///     ``Request/parameters``; `*` at the end stands for any rest.
  ///   - respond: Called on the connection's thread when the whole request has been read. It may block. An error that it
  ///     throws is answered with 500 and recorded in ``failures``.
  public func route(_ method: String, _ path: String, respond: @escaping @Sendable (Request) throws -> Response) {
    core.add(Router.Route(method, path) { request in .response(try respond(request)) })
  }

  /// Runs a script when the path is asked for: the request has been read, the next step is to answer.
  ///
  /// The script ends the connection, unless it ends with ``Step/serveRoutes``.
  public func route(_ method: String, _ path: String, script: Script) {
    core.add(Router.Route(method, path) { _ in .script(script) })
  }

  // MARK: Scripts

  /// Gives the script to the next connection that has none, each to one, in the order of the calls.
  public func enqueue(_ scripts: Script...) { core.enqueue(scripts) }

  /// How many enqueued scripts have not found a connection yet.
  public var scriptsPending: Int { core.scriptsPending }

  /// What connections do that find no script in the queue. Nil, as it is at first: the ordinary routes.
  public var defaultScript: Script? {
    get { core.defaultScript }
    set { core.defaultScript = newValue }
  }

  // MARK: Records

  /// The latest requests, in the order in which they were complete (a script's ``Step/expectHead`` records the head).
  public var requests: [Request] { core.requests }

  /// How many requests there have been.
  public var requestsReceived: Int { core.count(.requests) }

  /// The latest TLS handshakes, in the order in which they were done or had failed.
  ///
  /// A failed one is a record, no more: it is not in ``failures``.
  public var handshakes: [Handshake] { core.handshakes }

  /// How many connections have been accepted.
  public var connectionsAccepted: Int { core.count(.connections) }

  /// How many of them the server has closed.
  public var connectionsClosed: Int { core.count(.closedConnections) }

  /// What went against a script, what was malformed, which route threw: in words, with the connection's number.
  public var failures: [String] { core.failures }

  // MARK: Waiting

  /// Suspends until there have been so many requests since the server's start, and returns the records.
  ///
  /// This and its relatives throw ``Stopped`` when the server stops first, `CancellationError` when the task is cancelled.
  @discardableResult
  public func waitForRequests(_ count: Int) async throws -> [Request] {
    try await core.wait(for: .requests, count)
    return requests
  }

  /// Suspends until so many connections have been accepted since the server's start.
  public func waitForConnections(_ count: Int) async throws { try await core.wait(for: .connections, count) }

  /// Suspends until so many TLS handshakes are done or have failed since the server's start, and returns the records.
  @discardableResult
  public func waitForHandshakes(_ count: Int) async throws -> [Handshake] {
    try await core.wait(for: .handshakes, count)
    return handshakes
  }

  /// Suspends until so many connections are over: closed by the server, usually because the client has closed.
  public func waitForClosedConnections(_ count: Int) async throws {
    try await core.wait(for: .closedConnections, count)
  }
}
