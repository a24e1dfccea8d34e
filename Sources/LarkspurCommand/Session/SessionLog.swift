import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurIO
import Synchronization

/// Writes events to standard error, for `-v` of `larkspur socket` and `larkspur events`: requests and responses as far as
/// a session exposes them. As a session's delegate it writes each response when its connection is over.
///
/// ```
/// *     0.3 ms  try 1
/// > GET http://127.0.0.1:8080/events
/// < HTTP/1.1 200 OK
/// *    12.0 ms  the next try is in 3.10 s
/// ```
final class SessionLog: NSObject, URLSessionTaskDelegate, Sendable {
  private let kernel: any Kernel
  private let start: Deadline
  private let tries = Mutex(0)
  private let isInvalid = OneShot<Void>()

  init(on kernel: any Kernel) {
    self.kernel = kernel
    start = kernel.now()
  }

  /// Writes a message with the time since the start.
  func write(_ message: String) { Console.write(message, after: kernel.now().duration(since: start)) }

  /// Writes a request of an event stream that is about to be sent.
  func writeTry(_ request: URLRequest) {
    let number = tries.withLock { tries in
      tries += 1
      return tries
    }
    write("try \(number)")
    write(request)
  }

  /// Writes the request and the response of a WebSocket's opening handshake.
  func writeHandshake(of task: URLSessionTask) {
    if let request = task.originalRequest { write(request) }
    if let response = task.response as? HTTPURLResponse { write(response) }
  }

  func write(_ verb: String, _ message: URLSessionWebSocketTask.Message) {
    switch message {
    case .string(let text): write("\(verb) a text of \(Format.grouped(text.utf8.count)) bytes")
    case .data(let data): write("\(verb) a binary message of \(Format.grouped(data.count)) bytes")
    }
  }

  private func write(_ request: URLRequest) {
    Console.note("> \(request.httpMethod ?? "GET") \(request.url?.absoluteString ?? "")")
    for line in Self.lines(request.allHTTPHeaderFields ?? [:]) { Console.note("> " + line) }
  }

  /// Writes a response's head as far as `HTTPURLResponse` has it: with the standard reason, and sorted fields.
  private func write(_ response: HTTPURLResponse) {
    var fields: [String: String] = [:]
    for (name, value) in response.allHeaderFields { fields["\(name)"] = "\(value)" }
    let reason = HTTPURLResponse.localizedString(forStatusCode: response.statusCode)
    for line in ["HTTP/1.1 \(response.statusCode) \(reason)"] + Self.lines(fields) { Console.note("< " + line) }
    Console.note("<")
  }

  private static func lines(_ fields: [String: String]) -> [String] {
    fields.sorted { $0.key.lowercased() < $1.key.lowercased() }.map { "\($0.key): \($0.value)" }
  }

  // MARK: - Delegate methods

  /// Suspends until the session has made all of its reports. Called when the session has been invalidated.
  func end() async { _ = await isInvalid.get() }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { isInvalid.set(()) }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    for transaction in metrics.transactionMetrics {
      if let response = transaction.response as? HTTPURLResponse { write(response) }
    }
  }
}
