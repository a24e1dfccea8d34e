import Foundation
import LarkspurEngine
import LarkspurHTTP
import Synchronization

/// The settings of a WebSocket task, and its close code and reason. For any thread.
final class WebSocketTaskSettings: Sendable {
  struct Values {
    var machine = WebSocketSettings()
    var offersCompression = true
    var closeCode = URLSessionWebSocketTask.CloseCode.invalid
    var closeReason: Data?
    /// Whether the program has closed the WebSocket, so that `closeCode` is the code of this side.
    var isClosedHere = false
    /// Whether the conversation, or the attempt to open one, has ended.
    var isOver = false
  }

  private let values = Mutex(Values())

  var machineSettings: WebSocketSettings { values.withLock { $0.machine } }

  func read<T: Sendable>(_ body: (inout Values) -> T) -> T { values.withLock { body(&$0) } }

  /// Notes that the program closes the WebSocket.
  ///
  /// - Returns: `false` if the WebSocket has been closed before, or is over: then nothing changes.
  func close(with code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) -> Bool {
    read { values in
      guard !values.isClosedHere, !values.isOver else { return false }
      (values.closeCode, values.closeReason, values.isClosedHere) = (code, reason, true)
      return true
    }
  }

  /// Notes the end.
  ///
  /// - Parameters:
  ///   - code: The code, or `nil` if the end has none.
  ///   - isServers: Whether the server has closed the WebSocket. Otherwise a code of the program stays.
  func end(
    with code: URLSessionWebSocketTask.CloseCode? = nil, _ reason: Data? = nil, isServers: Bool = false
  ) {
    read { values in
      guard !values.isOver else { return }
      values.isOver = true
      if let code, isServers || !values.isClosedHere { (values.closeCode, values.closeReason) = (code, reason) }
    }
  }
}

extension WebSocketTaskSettings: WebSocketUser {
  func error(for failure: WebSocketConnection.Failure) -> any Error {
    switch failure {
    case .notConnected: WebSocketLoad.notConnected
    case .failed(let error, let cause): WebSocketLoad.error(for: error, cause)
    case .sendingFailed(let error): URLError(error, url: nil)
    }
  }

  func noteEnd(_ end: WebSocketConnection.Outcome) {
    switch end {
    case .closed(let close, let initiator):
      self.end(with: .init(close.code), close.reasonData, isServers: initiator == .peer)
    case .failed(let error, _): self.end(with: error.closeCode.map { .init($0) } ?? .abnormalClosure)
    case .interrupted: self.end()
    }
  }
}
