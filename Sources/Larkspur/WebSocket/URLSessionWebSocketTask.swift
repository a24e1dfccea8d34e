import Foundation
import LarkspurEngine
import LarkspurHTTP

/// A WebSocket (RFC 6455): a connection over which client and server send each other messages.
///
/// The task is made for a `ws` or `wss` URL, and opens when it is first resumed. The opening handshake is an HTTP
/// request: the session's cookies, credentials, challenges, proxies (always by CONNECT), pins and time limits apply,
/// and redirections are followed. A server that answers it with another status than 101, or wrongly, fails the task
/// with `URLError.badServerResponse`; ``URLSessionTask/response`` shows the answer. `send` and `receive` may be called
/// before the handshake is complete.
///
/// Messages are received only while they are wanted: besides the message that waits for the next `receive`, nothing is
/// read from the server, and pings that it sends meanwhile are answered later. So call `receive` again after each
/// message. Calls of `receive` wait in their order.
///
/// After the handshake only ``URLSessionConfiguration/timeoutIntervalForResource`` counts. The task is complete when
/// both sides have sent a Close, with `error` `nil`, or when the connection has failed. Calls that come later fail with
/// `ENOTCONN` of `NSPOSIXErrorDomain`. Messages are compressed if the server agrees (permessage-deflate, RFC 7692).
/// Completion handlers are called on the delegate queue. For any thread.
///
/// ```swift
/// let socket = URLSession.shared.webSocketTask(with: URL(string: "wss://example.org/chat")!)
/// socket.resume()
/// try await socket.send(.string("hello"))
/// for try await message in socket.messages { print(message) }
/// ```
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
  /// The reason why a WebSocket was closed (RFC 6455 7.4.1).
  public enum CloseCode: RawRepresentable, Hashable, Sendable {
    /// The WebSocket has not been closed.
    case invalid
    /// The purpose of the connection has been fulfilled.
    case normalClosure
    /// One side goes away, such as a server that shuts down or a page that is left.
    case goingAway
    /// The other side has violated the protocol.
    case protocolError
    /// The other side has sent a kind of data that is not accepted.
    case unsupportedData
    /// The other side gave no reason. Never sent.
    case noStatusReceived
    /// The connection was lost without a close message. Never sent.
    case abnormalClosure
    /// The content of a message does not match its kind, such as text that is not UTF-8.
    case invalidFramePayloadData
    /// The message violates the receiver's policy.
    case policyViolation
    /// The message is larger than the receiver accepts.
    case messageTooBig
    /// The server has not agreed to an extension that the client needs.
    case mandatoryExtensionMissing
    /// The server cannot fulfil the request.
    case internalServerError
    /// The TLS handshake has failed. Never sent.
    case tlsHandshakeFailure
    /// Another code, such as those from 3000 to 4999 that libraries and applications define. On Darwin such a code is a
    /// value of the enumeration without a name.
    case other(Int)

    private static let named: [CloseCode] = [
      .invalid, .normalClosure, .goingAway, .protocolError, .unsupportedData, .noStatusReceived, .abnormalClosure,
      .invalidFramePayloadData, .policyViolation, .messageTooBig, .mandatoryExtensionMissing, .internalServerError,
      .tlsHandshakeFailure,
    ]

    /// The number of the code.
    public var rawValue: Int {
      switch self {
      case .invalid: 0
      case .normalClosure: 1000
      case .goingAway: 1001
      case .protocolError: 1002
      case .unsupportedData: 1003
      case .noStatusReceived: 1005
      case .abnormalClosure: 1006
      case .invalidFramePayloadData: 1007
      case .policyViolation: 1008
      case .messageTooBig: 1009
      case .mandatoryExtensionMissing: 1010
      case .internalServerError: 1011
      case .tlsHandshakeFailure: 1015
      case .other(let code): code
      }
    }

    /// Creates a code from its number. As on Darwin, every number is a code.
    public init?(rawValue: Int) { self = Self.named.first { $0.rawValue == rawValue } ?? .other(rawValue) }

    /// - Parameter code: The code of a Close frame, or `nil` if the frame has none.
    init(_ code: UInt16?) {
      self = code.flatMap { CloseCode(rawValue: Int($0)) } ?? .noStatusReceived
    }
  }

  /// A message.
  public enum Message: Sendable {
    /// Bytes.
    case data(Data)
    /// Text.
    case string(String)
  }

  private let gate = LiveGate()
  private let settings = WebSocketTaskSettings()

  /// Maximum size of a received message in bytes, after decompression; 1 MiB by default. A larger message fails the
  /// task: the server gets a Close with ``CloseCode-swift.enum/messageTooBig``, and `receive` fails with `EMSGSIZE` of
  /// `NSPOSIXErrorDomain`. Nothing of the message is kept.
  open var maximumMessageSize: Int {
    get { settings.machineSettings.messageBytesMax }
    set { settings.read { $0.machine.messageBytesMax = max(newValue, 0) } }
  }

  /// The reason why the WebSocket was closed: the code of ``cancel(with:reason:)``, or the server's, or the one with
  /// which a violation of the protocol was answered; ``CloseCode-swift.enum/abnormalClosure`` if the connection was
  /// lost; ``CloseCode-swift.enum/invalid`` while it is open, and if it was cancelled or never opened.
  open var closeCode: CloseCode { settings.read { $0.closeCode } }

  /// The text or the bytes that came with ``closeCode-swift.property``, or `nil` if there are none.
  open var closeReason: Data? { settings.read { $0.closeReason } }

  /// Whether compression is offered to the server. Set it before the first `resume()`. Not on Darwin, which never
  /// offers it.
  open var offersCompression: Bool {
    get { settings.read { $0.offersCompression } }
    set { settings.read { $0.offersCompression = newValue } }
  }

  /// The time in seconds without a byte from the server after which the task sends a ping, so that a machine on the way
  /// does not drop the connection; 0, the default, for no pings. Set it before the first `resume()`. Not on Darwin.
  open var pingInterval: TimeInterval {
    get { settings.machineSettings.pingInterval?.interval ?? 0 }
    set { settings.read { $0.machine.pingInterval = newValue > 0 ? Duration(interval: newValue) : nil } }
  }

  /// The time in seconds without a byte from the server after a ping, at whose end the connection counts as lost;
  /// 0, the default, for no limit. Set it before the first `resume()`. Not on Darwin.
  open var pongTimeout: TimeInterval {
    get { settings.machineSettings.pongTimeout?.interval ?? 0 }
    set { settings.read { $0.machine.pongTimeout = newValue > 0 ? Duration(interval: newValue) : nil } }
  }

  /// Sends a ping, and calls the handler when the pong has arrived, or with an error when the connection is over. Pongs
  /// are read together with messages: see the type's description.
  open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
    start(.ping) { pongReceiveHandler($0.failure) }
  }

  /// Sends a ping, and returns when the pong has arrived.
  open func sendPing() async throws { try await WebSocketOperation(.ping, through: gate).run() }

  /// Closes the WebSocket: sends a Close behind the messages that have been sent before. The task is complete when the
  /// server has answered, or after 10 seconds. A WebSocket that is not open yet is closed right after the handshake; a
  /// task that was never resumed is cancelled. A code that may not be sent is left out (RFC 6455 7.4), and a reason is
  /// cut after 123 bytes. A call on a WebSocket that is over, or has been closed or cancelled before, changes nothing.
  ///
  /// A server that ends the connection without sending a Close has not answered: the task fails with
  /// `URLError.networkConnectionLost`, ``closeCode-swift.property`` stays, and the delegate is not notified of a Close.
  open func cancel(with closeCode: CloseCode, reason: Data?) {
    guard state == .running || state == .suspended, settings.close(with: closeCode, reason) else { return }
    start(.close(UInt16(exactly: closeCode.rawValue), reason: reason.map { [UInt8]($0) } ?? [])) { _ in }
    if isUnbegun { cancel() }
  }

  /// Sends a message, and returns when the kernel or TLS has taken it. Cancelling the Swift task ends the wait with
  /// `CancellationError`; the message is sent all the same.
  public func send(_ message: Message) async throws {
    try await WebSocketOperation(.send(message), through: gate).run()
  }

  /// Sends a message. The handler is called when the kernel or TLS has taken it, or with an error.
  public func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
    start(.send(message)) { completionHandler($0.failure) }
  }

  /// Waits for a message. Cancelling the Swift task ends the wait with `CancellationError`, and no message is lost.
  public func receive() async throws -> Message {
    let operation = WebSocketOperation(.receive, through: gate)
    try await operation.run()
    return operation.received
  }

  /// Calls the handler with the next message, or with an error.
  public func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
    start(.receive) { completionHandler($0.failure.map(Result.failure) ?? .success($0.received)) }
  }

  private func start(_ kind: WebSocketOperation.Kind, _ handle: @escaping @Sendable (WebSocketOperation) -> Void) {
    guard let core else { return }
    WebSocketOperation(kind, through: gate, on: core.delegateQueue, handle: handle).start()
  }

  override func prepare(_ load: Load) throws(URLError) {
    load.live = WebSocketLoad(through: gate, settings)
  }

  override func ended(_ failure: (any Error)?) {
    settings.end()
    gate.close(failure ?? WebSocketLoad.notConnected)
  }
}

extension URLSessionWebSocketTask {
  /// The messages of the server, up to the Close. Not on Darwin.
  ///
  /// The sequence ends when the WebSocket has been closed by either side, and throws the error of ``receive()``
  /// otherwise. Each step is one `receive`, so several readers share the messages.
  public var messages: Messages { Messages(task: self) }
}

/// The messages of a WebSocket: see ``URLSessionWebSocketTask/messages``.
public struct URLSessionWebSocketMessages: AsyncSequence, Sendable {
  fileprivate let task: URLSessionWebSocketTask

  public func makeAsyncIterator() -> Iterator { Iterator(task: task) }

  /// Receives one message with each step.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let task: URLSessionWebSocketTask

    public mutating func next() async throws -> URLSessionWebSocketTask.Message? {
      do {
        return try await task.receive()
      } catch let error as NSError where error.domain == NSPOSIXErrorDomain && error.code == Int(ENOTCONN) {
        return nil
      }
    }
  }
}

extension WebSocketClose {
  /// The reason as a program gets it: `nil` if there is none.
  var reasonData: Data? { reason.isEmpty ? nil : Data(reason) }
}
