import Foundation

/// A WebSocket task (RFC 6455). Not supported in this version: when the task is resumed it fails with
/// `URLError.unsupportedURL`.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
  /// The reason why a WebSocket was closed (RFC 6455 7.4.1).
  public enum CloseCode: Int, Sendable {
    /// The WebSocket has not been closed.
    case invalid = 0
    /// The purpose of the connection has been fulfilled.
    case normalClosure = 1000
    /// One side goes away, such as a server that shuts down or a page that is left.
    case goingAway = 1001
    /// The other side has violated the protocol.
    case protocolError = 1002
    /// The other side has sent a kind of data that is not accepted.
    case unsupportedData = 1003
    /// The other side gave no reason. Never sent.
    case noStatusReceived = 1005
    /// The connection was lost without a close message. Never sent.
    case abnormalClosure = 1006
    /// The content of a message does not match its kind, such as text that is not UTF-8.
    case invalidFramePayloadData = 1007
    /// The message violates the receiver's policy.
    case policyViolation = 1008
    /// The message is larger than the receiver accepts.
    case messageTooBig = 1009
    /// The server has not agreed to an extension that the client needs.
    case mandatoryExtensionMissing = 1010
    /// The server cannot fulfil the request.
    case internalServerError = 1011
    /// The TLS handshake has failed. Never sent.
    case tlsHandshakeFailure = 1015
  }

  /// A message.
  public enum Message: Sendable {
    /// Bytes.
    case data(Data)
    /// Text.
    case string(String)
  }

  /// Maximum size of a message in bytes. Without effect in this version.
  open var maximumMessageSize: Int = 1 << 20

  /// Always `invalid` in this version.
  open var closeCode: CloseCode { .invalid }
  /// Always `nil` in this version.
  open var closeReason: Data? { nil }

  // Each operation fails with `URLError.unsupportedURL`. Completion handlers are called on the delegate queue.

  /// Would send a ping and wait for the pong. Fails in this version.
  open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
    core?.delegateQueue.async { pongReceiveHandler(Self.unsupported) }
  }

  /// See ``sendPing(pongReceiveHandler:)``.
  open func sendPing() async throws { throw Self.unsupported }

  /// Would close the WebSocket. Only cancels the task in this version.
  open func cancel(with closeCode: CloseCode, reason: Data?) { cancel() }

  /// Would send a message. Throws in this version.
  public func send(_ message: Message) async throws { throw Self.unsupported }

  /// See ``send(_:)``.
  public func send(_ message: Message, completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
    core?.delegateQueue.async { completionHandler(Self.unsupported) }
  }

  /// Would wait for a message. Throws in this version.
  public func receive() async throws -> Message { throw Self.unsupported }

  /// See ``receive()``.
  public func receive(completionHandler: @escaping @Sendable (Result<Message, any Error>) -> Void) {
    core?.delegateQueue.async { completionHandler(.failure(Self.unsupported)) }
  }

  override func prepare(_ transfer: Transfer) throws(URLError) { throw Self.unsupported }

  private static var unsupported: URLError { .make(.unsupportedURL, "WebSocket tasks are not supported") }
}
