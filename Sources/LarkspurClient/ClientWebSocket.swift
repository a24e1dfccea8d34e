import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurTransport
import Synchronization

/// A client's WebSocket, from its opening handshake to the end of its conversation. The load opens it, on the loop; calls
/// come from any thread.
struct ClientWebSocket: Sendable {
  /// The facts about a WebSocket. Its connection keeps them, so they do not keep the connection.
  struct Facts {
    var handshake: WebSocketHandshake?
    /// The URL of the opening handshake.
    var url = ""
    var subprotocol: String?
    var closing: HTTPClient.WebSocket.Close?
  }

  private let options: HTTPClient.WebSocket.Options
  private let gate = LiveGate()
  private let user: User

  init(_ options: HTTPClient.WebSocket.Options) {
    self.options = options
    user = User(options)
  }

  /// The subprotocol and the server's Close, as far as they are known.
  var facts: Facts { user.facts.withLock { $0 } }

  // MARK: - The load

  /// Returns the fields of the opening handshake, with a new key.
  func openingFields(of request: HTTPClient.Request) throws(HTTPClientError) -> FieldList {
    guard request.method == "GET", request.body.isNone else {
      throw HTTPClientError(.invalidRequest, "a WebSocket is opened by a GET without a body", url: request.url)
    }
    do throws(WebSocketHandshakeError) {
      let handshake = try WebSocketHandshake(
        offering: request.fields.values(named: "Sec-WebSocket-Protocol").joined(separator: ","),
        offersCompression: options.offersCompression)
      user.facts.withLock { $0.handshake = handshake }
      return handshake.fields
    } catch {
      throw HTTPClientError(.invalidRequest, "the WebSocket cannot be opened: \(error)", url: request.url)
    }
  }

  /// Checks the server's answer, and uses the connection for the conversation.
  func open(over connection: Connection, status: Int, _ fields: FieldList, url: String) throws(HTTPClientError) {
    let agreement: WebSocketAgreement
    do throws(WebSocketHandshakeError) {
      guard let handshake = facts.handshake else { throw .hashUnavailable }
      agreement = try handshake.check(status: status) { fields.values(named: $0) }
    } catch {
      throw HTTPClientError(.invalidResponse, "the server does not open the WebSocket: \(error)", url: url)
    }
    guard let tunnel = connection.takeTunnel() else { throw .inconsistency }
    user.facts.withLock { ($0.subprotocol, $0.url) = (agreement.subprotocol, url) }
    let connection = WebSocketConnection(over: tunnel, agreement, user) {}
    connection.start()
    gate.open(for: connection)
  }

  // MARK: - Calls

  func call(
    _ action: WebSocketCall.Action, _ message: HTTPClient.WebSocket.Message? = nil
  ) async throws(HTTPClientError) -> Call {
    let call = Call(action, message, through: gate)
    do {
      try await call.run()
      return call
    } catch {
      throw error as? HTTPClientError ?? HTTPClientError(.cancelled, "cancelled", url: facts.url)
    }
  }

  func receive() async throws(HTTPClientError) -> HTTPClient.WebSocket.Message? {
    do throws(HTTPClientError) {
      return try await call(.receive).received
    } catch {
      guard error.code == .closed else { throw error }
      return nil
    }
  }

  /// Ends the conversation: waits for the server's Close, and drops the messages before it.
  func close() async {
    _ = try? await call(.close(1000, reason: []))
    while (try? await receive()) != nil {}
    await interrupt()
  }

  /// Ends the conversation at once. A conversation that has ended leaves the connection to the server, which closes it first
  /// (RFC 6455 7.1.1).
  func interrupt() async {
    guard let connection = gate.connection as? WebSocketConnection else { return }
    await connection.loop.run { [user] in
      if connection.end == nil { connection.interrupt(user.error(for: .notConnected)) }
    }
  }

  private final class User: WebSocketUser {
    let machineSettings: WebSocketSettings
    let facts = Mutex(Facts())

    init(_ options: HTTPClient.WebSocket.Options) {
      machineSettings = WebSocketSettings(
        messageBytesMax: max(0, options.messageBytesMax), pingInterval: options.pingInterval,
        pongTimeout: options.pongTimeout)
    }

    func error(for failure: WebSocketConnection.Failure) -> any Error {
      let url = facts.withLock { $0.url }
      return switch failure {
      case .notConnected: HTTPClientError(.closed, "the WebSocket is closed", url: url)
      case .sendingFailed(let error), .failed(.endedWithoutClose, let error?): HTTPClientError(error, url: url)
      case .failed(let error, _): HTTPClientError(error, url: url)
      }
    }

    func noteEnd(_ end: WebSocketConnection.Outcome) {
      guard case .closed(let close, _) = end else { return }
      let closing = HTTPClient.WebSocket.Close(
        code: close.code, reason: String(decoding: close.reason, as: UTF8.self))
      facts.withLock { $0.closing = closing }
    }
  }

  /// One call, with the message that is sent.
  final class Call: WebSocketCall, @unchecked Sendable {
    private let outgoing: HTTPClient.WebSocket.Message?

    init(_ action: Action, _ message: HTTPClient.WebSocket.Message?, through gate: LiveGate) {
      outgoing = message
      super.init(action, through: gate)
    }

    override func lendMessage(to write: (Bool, Span<UInt8>) -> Void) {
      switch outgoing {
      case .text(let text): write(true, text.utf8Span.span)
      case .bytes(let bytes): write(false, bytes.span)
      case nil: break
      }
    }

    /// The result of a `receive` that has not failed.
    var received: HTTPClient.WebSocket.Message? {
      message.map { $0.kind == .text ? .text(String(decoding: $0.bytes, as: UTF8.self)) : .bytes($0.bytes) }
    }
  }
}
