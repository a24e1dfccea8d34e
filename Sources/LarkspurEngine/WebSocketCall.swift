import LarkspurBytes
import LarkspurHTTP

/// One call of a program on a WebSocket. Each client derives the class that lends its own kind of messages.
open class WebSocketCall: LiveOperation, @unchecked Sendable {
  public enum Action: Sendable {
    /// Send the message that `lendMessage` lends.
    case send
    case receive
    case ping
    case close(UInt16?, reason: [UInt8])
  }

  package let action: Action
  /// The message that has been received. Belongs to the loop until the operation is finished.
  package internal(set) final var message: WebSocketMessage?

  public init(_ action: Action, through gate: LiveGate, isHandled: Bool = false) {
    self.action = action
    super.init(through: gate, isHandled: isHandled)
  }

  /// Lends the message that is sent to `write`, with whether it is text.
  open func lendMessage(to write: (Bool, Span<UInt8>) -> Void) {}
}

/// The user of a WebSocket's connection: what differs between clients. It belongs to the loop.
package protocol WebSocketUser: AnyObject, Sendable {
  /// The limits of the conversation, which may change while it lasts.
  var machineSettings: WebSocketSettings { get }
  /// Returns the error of a call in the client's terms.
  func error(for failure: WebSocketConnection.Failure) -> any Error
  /// Notes the end of the conversation, before any call fails.
  func noteEnd(_ end: WebSocketConnection.Outcome)
}
