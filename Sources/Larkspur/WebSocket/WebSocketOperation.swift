import Foundation
import LarkspurHTTP

/// One call on a WebSocket task.
final class WebSocketOperation: LiveOperation, @unchecked Sendable {
  enum Kind {
    case send(URLSessionWebSocketTask.Message)
    case receive
    case ping
    case close(UInt16?, reason: [UInt8])
  }

  let kind: Kind
  /// The message that has been received. Belongs to the loop until the operation is finished.
  var message: WebSocketMessage?

  private let handle: (@Sendable (WebSocketOperation) -> Void)?

  init(
    _ kind: Kind, through gate: LiveGate, on queue: DelegateQueue? = nil,
    handle: (@Sendable (WebSocketOperation) -> Void)? = nil
  ) {
    self.kind = kind
    self.handle = handle
    super.init(through: gate, on: queue, isHandled: handle != nil)
  }

  override func handleResult() { handle?(self) }

  /// The result of a `receive` that has not failed.
  var received: URLSessionWebSocketTask.Message {
    let bytes = message?.bytes ?? []
    return message?.kind == .text ? .string(String(decoding: bytes, as: UTF8.self)) : .data(Data(bytes))
  }
}
