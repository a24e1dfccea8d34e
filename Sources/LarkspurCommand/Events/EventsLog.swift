import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurIO
import Synchronization

/// Writes the tries of an event stream to standard error, for `-v`. The session reports a response when its connection
/// is over.
///
/// ```
/// *     0.3 ms  try 1
/// > GET http://127.0.0.1:8080/events
/// < HTTP/1.1 200 OK
/// *    12.0 ms  the next try is in 3.10 s
/// ```
final class EventsLog: NSObject, URLSessionTaskDelegate, Sendable {
  private let kernel: any Kernel
  private let start: Deadline
  private let tries = Mutex(0)
  private let isInvalid = OneShot<Void>()

  init(since start: Deadline, on kernel: any Kernel) {
    self.kernel = kernel
    self.start = start
  }

  /// Writes a request that is about to be sent.
  func writeTry(_ request: URLRequest) {
    let number = tries.withLock { tries in
      tries += 1
      return tries
    }
    write("try \(number)")
    SessionLog.write(request)
  }

  func writeWait(_ delay: Duration) { write("the next try is in \(Format.time(delay))") }

  /// Suspends until the session has made all of its reports. Called when the session has been invalidated.
  func end() async { _ = await isInvalid.get() }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { isInvalid.set(()) }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    for transaction in metrics.transactionMetrics {
      if let response = transaction.response as? HTTPURLResponse { SessionLog.write(response) }
    }
  }

  private func write(_ message: String) { Console.write(message, after: kernel.now().duration(since: start)) }
}
