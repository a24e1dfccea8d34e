import LarkspurEngine

extension HTTPClient {
  /// Opens a WebSocket (RFC 6455) with a `ws` or `wss` URL, and calls a closure with it: see
  /// ``webSocket(_:options:_:)``.
  ///
  /// - Parameters:
  ///   - url: The URL as text.
  ///   - protocols: The offered subprotocols (RFC 6455 1.9), the preferred one first.
  ///   - options: The limits and times.
  ///   - handle: Called with the WebSocket. Its result is the call's result.
  public func webSocket<Result>(
    _ url: String, protocols: [String] = [], options: WebSocket.Options = WebSocket.Options(),
    _ handle: (WebSocket) async throws -> Result
  ) async throws -> Result {
    let offer = protocols.joined(separator: ", ")
    let fields = protocols.isEmpty ? [] : [Field("Sec-WebSocket-Protocol", offer)]
    return try await webSocket(Request(url, fields: fields), options: options, handle)
  }

  /// Opens a WebSocket (RFC 6455), and calls `handle` with it. `handle` runs where the caller runs.
  ///
  /// The opening handshake is a request like any other: cookies, credentials, redirections, proxies (always by CONNECT), pins
  /// and time limits apply to it. Later only the times of `options` count. A server that does not open the WebSocket fails
  /// the call with ``HTTPClientError/Code/invalidResponse``.
  ///
  /// The WebSocket belongs to the closure. When the closure returns, the client sends a Close with the code 1000, unless it
  /// has sent one, and waits up to 10 seconds for the server's Close; messages that arrive until then are dropped. When the
  /// closure throws, or the task is cancelled, the connection is closed without a Close.
  ///
  /// - Parameters:
  ///   - request: A GET for a `ws`, `wss`, `http` or `https` URL, without a body. Subprotocols stand in
  ///     `Sec-WebSocket-Protocol`.
  ///   - options: The limits and times.
  ///   - handle: Called with the WebSocket. Its result is the call's result.
  public func webSocket<Result>(
    _ request: Request, options: WebSocket.Options = WebSocket.Options(),
    _ handle: (WebSocket) async throws -> Result
  ) async throws -> Result {
    let socket = ClientWebSocket(options)
    let load = ClientLoad(request, of: self, try engine.get(), opening: socket)
    return try await withTaskCancellationHandler {
      try await load.run()
      do {
        let result = try await handle(WebSocket(socket))
        await socket.close()
        await load.finish(mayDrain: false)
        return result
      } catch {
        await socket.interrupt()
        await load.finish(mayDrain: false)
        throw error
      }
    } onCancel: {
      load.cancel()
    }
  }

  /// An open WebSocket: an asynchronous sequence of the server's messages, which ends with the Close of either side. Any task
  /// may use it, also several at once; several readers share the messages.
  ///
  /// Messages are received only while they are wanted: besides the message that waits for the next ``receive()``, nothing is
  /// read from the server, and pings that it sends meanwhile are answered later. Messages are compressed if the server
  /// agrees (permessage-deflate, RFC 7692).
  public struct WebSocket: AsyncSequence, Sendable {
    public typealias Element = Message
    public typealias Failure = HTTPClientError

    /// A message (RFC 6455 5.6).
    public enum Message: Hashable, Sendable {
      /// Text. Received text is valid UTF-8.
      case text(String)
      /// Bytes.
      case bytes([UInt8])
    }

    /// The content of a Close (RFC 6455 5.5.1).
    public struct Close: Hashable, Sendable {
      /// The code (RFC 6455 7.4), or `nil` if the Close has none.
      public let code: UInt16?
      /// The reason. Empty if there is none.
      public let reason: String
    }

    /// The limits and times of a WebSocket.
    public struct Options: Hashable, Sendable {
      /// Maximum size of a received message in bytes, after decompression. A larger one ends the conversation with
      /// ``HTTPClientError/Code/tooLarge``, and nothing of it is kept. 1 MiB by default.
      public var messageBytesMax = 1 << 20
      /// Whether compression is offered to the server. `true` by default.
      public var offersCompression = true
      /// The time without a byte from the server after which a ping is sent, or `nil`, the default, for no pings.
      public var pingInterval: Duration?
      /// The time without a byte from the server after a ping, at whose end the connection counts as lost, or `nil`, the
      /// default, for no limit.
      public var pongTimeout: Duration?

      /// Creates the default options.
      public init() {}
    }

    private let socket: ClientWebSocket

    init(_ socket: ClientWebSocket) { self.socket = socket }

    /// The subprotocol that the server has chosen among the offered ones, or `nil` if it chose no subprotocol.
    public var subprotocol: String? { socket.facts.subprotocol }

    /// The server's Close, once the conversation has ended with one.
    public var closing: Close? { socket.facts.closing }

    /// Sends text, and returns when the kernel or TLS has taken it.
    ///
    /// - Throws: ``HTTPClientError/Code/closed`` after the Close of either side. A cancellation of the task ends the wait with
    ///   ``HTTPClientError/Code/cancelled``; the message is sent all the same.
    public func send(_ text: String) async throws(HTTPClientError) { try await send(.text(text)) }

    /// Sends bytes as one message: see ``send(_:)-(String)``.
    public func send(_ bytes: [UInt8]) async throws(HTTPClientError) { try await send(.bytes(bytes)) }

    /// Sends a message: see ``send(_:)-(String)``.
    public func send(_ message: Message) async throws(HTTPClientError) {
      _ = try await socket.call(.send, message)
    }

    /// Waits for the next message.
    ///
    /// - Returns: `nil` after the Close of either side.
    /// - Throws: The error that has ended the conversation, or ``HTTPClientError/Code/cancelled``; no message is lost then.
    public func receive() async throws(HTTPClientError) -> Message? { try await socket.receive() }

    /// Sends a ping, and returns when the pong has arrived. Pongs are read together with messages.
    public func ping() async throws(HTTPClientError) { _ = try await socket.call(.ping) }

    /// Sends a Close after the messages that have been sent before. The sequence of messages ends when the server has
    /// answered, or fails after 10 seconds. A code that may not be sent is left out (RFC 6455 7.4), and a reason is cut after
    /// 123 bytes.
    public func close(code: UInt16 = 1000, reason: String = "") async throws(HTTPClientError) {
      _ = try await socket.call(.close(code, reason: Array(reason.utf8)))
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(socket: socket) }

    /// Receives one message with each step.
    public struct AsyncIterator: AsyncIteratorProtocol {
      fileprivate let socket: ClientWebSocket

      /// Returns the next message, or `nil` after the Close of either side.
      public mutating func next() async throws(HTTPClientError) -> Message? { try await socket.receive() }

      /// Returns the next message, or `nil` after the Close of either side.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(HTTPClientError) -> Message? { try await socket.receive() }
    }
  }
}
