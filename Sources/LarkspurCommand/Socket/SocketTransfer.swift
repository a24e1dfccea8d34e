import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import Synchronization

/// One WebSocket, in a separate session, and the session's reports of it.
final class SocketTransfer: NSObject, URLSessionWebSocketDelegate, Sendable {
  /// The server's Close.
  struct Close: Sendable {
    var code: URLSessionWebSocketTask.CloseCode
    var reason: Data
  }

  /// The end of the WebSocket.
  struct Completion: Sendable {
    /// The error, or `nil` if both sides have sent a Close.
    var error: (any Error)?
    var close: Close?
    /// Whether the opening handshake has succeeded.
    var isOpened: Bool
    /// The response to the opening handshake.
    var response: HTTPURLResponse?
  }

  private struct State {
    var session: URLSession?
    var task: URLSessionWebSocketTask?
    var isOpened = false
    var isInterrupted = false
    var close: Close?
  }

  private let log: SessionLog?
  private let state = Mutex(State())
  private let completion = OneShot<Completion>()

  init(_ log: SessionLog?) { self.log = log }

  /// Opens the WebSocket.
  func start(
    _ request: URLRequest, _ configuration: URLSessionConfiguration, _ options: SocketOptions
  ) -> URLSessionWebSocketTask {
    let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    let task = session.webSocketTask(with: request)
    task.maximumMessageSize = Socket.messageBytesMax
    task.offersCompression = options.offersCompression
    if let interval = options.pingInterval { task.pongTimeout = Format.seconds(interval) }
    let isInterrupted = state.withLock { state in
      state.session = session
      state.task = task
      return state.isInterrupted
    }
    task.resume()
    if isInterrupted { task.cancel() }
    return task
  }

  /// Sends a Close behind the messages that have been sent. The server's messages still have to be received.
  func close(_ code: URLSessionWebSocketTask.CloseCode) {
    let task = state.withLock { $0.task }
    log?.write("sending Close \(code.rawValue)")
    task?.cancel(with: code, reason: nil)
  }

  /// Closes the WebSocket because of a signal. One that is not open yet ends at once.
  func interrupt() {
    let task = state.withLock { state in
      state.isInterrupted = true
      return state.task
    }
    // With this response, a Close that comes too early waits for the end of the handshake.
    let isOpening = (task?.response as? HTTPURLResponse)?.statusCode == 101
    if isOpening { close(.goingAway) } else { task?.cancel() }
  }

  /// Suspends until the WebSocket has ended. Cancelling the task does not end the wait.
  func end() async -> Completion? {
    let end = await completion.get()
    state.withLock { $0.session.take() }?.invalidateAndCancel()
    return end
  }

  // MARK: - Delegate methods

  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
  ) {
    state.withLock { $0.isOpened = true }
    log?.writeHandshake(of: webSocketTask)
    let subprotocol = `protocol`.map { "with the subprotocol \($0)" } ?? "without a subprotocol"
    let response = webSocketTask.response as? HTTPURLResponse
    let extensions = response?.value(forHTTPHeaderField: "Sec-WebSocket-Extensions")
    log?.write("the WebSocket is open, \(subprotocol), \(extensions.map { "with \($0)" } ?? "without compression")")
  }

  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
    didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
  ) {
    let close = Close(code: closeCode, reason: reason ?? Data())
    state.withLock { $0.close = close }
    log?.write("received Close \(close.message)")
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let response = task.response as? HTTPURLResponse
    let end = state.withLock { Completion(error: error, close: $0.close, isOpened: $0.isOpened, response: response) }
    if !end.isOpened {
      log?.writeHandshake(of: task)
      log?.write("the WebSocket has not opened")
    }
    completion.set(end)
  }
}

extension SocketTransfer.Close {
  /// The code and the reason, for messages.
  var message: String {
    let number = code == .noStatusReceived ? "without a code" : "\(code.rawValue)"
    return reason.isEmpty ? number : "\(number) \"\(String(decoding: reason, as: UTF8.self))\""
  }
}
