import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP

/// One call on a WebSocket task.
final class WebSocketOperation: WebSocketCall, @unchecked Sendable {
  enum Kind {
    case send(URLSessionWebSocketTask.Message)
    case receive
    case ping
    case close(UInt16?, reason: [UInt8])

    fileprivate var action: Action {
      switch self {
      case .send: .send
      case .receive: .receive
      case .ping: .ping
      case .close(let code, let reason): .close(code, reason: reason)
      }
    }
  }

  private let kind: Kind
  private let queue: DelegateQueue?
  private let handle: (@Sendable (WebSocketOperation) -> Void)?

  init(
    _ kind: Kind, through gate: LiveGate, on queue: DelegateQueue? = nil,
    handle: (@Sendable (WebSocketOperation) -> Void)? = nil
  ) {
    self.kind = kind
    self.queue = queue
    self.handle = handle
    super.init(kind.action, through: gate, isHandled: handle != nil)
  }

  override func lendMessage(to write: (Bool, Span<UInt8>) -> Void) {
    guard case .send(let message) = kind else { return }
    switch message {
    case .data(let data): write(false, data.span)
    case .string(let text): write(true, text.utf8Span.span)
    }
  }

  override func handleResult(for owner: AnyObject?) { call({ [self] in handle?(self) }, on: queue, for: owner) }

  /// The result of a `receive` that has not failed.
  var received: URLSessionWebSocketTask.Message {
    let bytes = message?.bytes ?? []
    return message?.kind == .text ? .string(String(decoding: bytes, as: UTF8.self)) : .data(Data(bytes))
  }
}
