import Dispatch
import Larkspur
import LarkspurIO

/// The messages of standard input, which a dedicated thread reads.
///
/// The thread passes one message on, and waits until the socket has taken it. So a slow server slows the input down.
final class SocketInput: Sendable {
  enum Event: Sendable {
    case message(URLSessionWebSocketTask.Message)
    case ended
    case failed(CommandFailure)
  }

  let events: AsyncStream<Event>
  private let continuation: AsyncStream<Event>.Continuation
  private let taken = DispatchSemaphore(value: 0)

  init() { (events, continuation) = AsyncStream.makeStream() }

  /// Starts the thread. Only the end of the process ends a thread that waits for input.
  func start(isBinary: Bool) throws(CommandFailure) {
    do throws(Errno) {
      try SystemThread(name: "input") { [self] in
        if let event = readAll(isBinary: isBinary) { continuation.yield(event) }
        continuation.finish()
      }.detach()
    } catch {
      throw CommandFailure(.outOfResources, "cannot start a thread: \(error)")
    }
  }

  func messageIsTaken() { taken.signal() }

  /// Reads standard input to its end.
  ///
  /// - Returns: The last event, or `nil` if a signal has ended the read.
  private func readAll(isBinary: Bool) -> Event? {
    var lines = SocketLines(isBinary: isBinary)
    do throws(SocketLines.Failure) {
      while true {
        let piece: [UInt8]
        do throws(Errno) {
          piece = try OpenFile.standardInput.read(atMost: 1 << 16)
        } catch {
          if error == .interrupted { return nil }
          return .failed(CommandFailure(.readFailed, "could not read standard input: \(error)"))
        }
        guard !piece.isEmpty else { break }
        lines.append(piece)
        while let message = try lines.next() { pass(message) }
      }
      if let message = try lines.last() { pass(message) }
      return .ended
    } catch {
      return .failed(CommandFailure(.readFailed, "\(error)"))
    }
  }

  private func pass(_ message: URLSessionWebSocketTask.Message) {
    continuation.yield(.message(message))
    taken.wait()
  }
}
