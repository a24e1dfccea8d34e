import Foundation
import LarkspurHTTP
import Synchronization

/// The settings of a WebSocket task, and its close code and reason. For any thread.
final class WebSocketTaskSettings: Sendable {
  struct Values {
    var machine = WebSocketSettings()
    var offersCompression = true
    var closeCode = URLSessionWebSocketTask.CloseCode.invalid
    var closeReason: Data?
    /// Whether `closeCode` is the code of this side.
    var isClosedHere = false
  }

  private let values = Mutex(Values())

  var machine: WebSocketSettings { values.withLock { $0.machine } }

  func read<T: Sendable>(_ body: (inout Values) -> T) -> T { values.withLock { body(&$0) } }
}
