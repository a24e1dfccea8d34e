import Foundation

/// A WebSocket (RFC 6455). Not spoken in this version: the task fails with `URLError.unsupportedURL` when it is resumed.
open class URLSessionWebSocketTask: URLSessionTask, @unchecked Sendable {
  /// Why a WebSocket was closed (RFC 6455 7.4.1).
  public enum CloseCode: Int, Sendable {
    case invalid = 0
    case normalClosure = 1000
    case goingAway = 1001
    case protocolError = 1002
    case unsupportedData = 1003
    case noStatusReceived = 1005
    case abnormalClosure = 1006
    case invalidFramePayloadData = 1007
    case policyViolation = 1008
    case messageTooBig = 1009
    case mandatoryExtensionMissing = 1010
    case internalServerError = 1011
    case tlsHandshakeFailure = 1015
  }

  /// What is sent and received.
  public enum Message: Sendable {
    case data(Data)
    case string(String)
  }

  /// Larger messages are refused. Bytes.
  open var maximumMessageSize: Int = 1 << 20

  /// Always `invalid` in this version.
  open var closeCode: CloseCode { .invalid }
  /// Always nil in this version.
  open var closeReason: Data? { nil }

  // Whatever is asked of it fails with `URLError.unsupportedURL`; handlers are called on the delegate queue.

  /// Would send a ping, and wait for the pong. Fails in this version.
  open func sendPing(pongReceiveHandler: @escaping @Sendable ((any Error)?) -> Void) {
    core?.delegateQueue.async { pongReceiveHandler(Self.unsupported) }
  }

  /// See ``sendPing(pongReceiveHandler:)``.
  open func sendPing() async throws { throw Self.unsupported }

  /// Would close the WebSocket. Cancels the task in this version.
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

  override func prepare(_ performer: TaskPerformer) throws(URLError) { throw Self.unsupported }

  private static var unsupported: URLError { .make(.unsupportedURL, "WebSocket tasks are not supported") }
}
