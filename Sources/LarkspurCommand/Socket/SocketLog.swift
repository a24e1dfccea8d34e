import Foundation
import Larkspur
import LarkspurBytes
import LarkspurConsole
import LarkspurIO

/// Writes the events of a WebSocket to standard error, for `-v`:
///
/// ```
/// > GET ws://127.0.0.1:8080/
/// < HTTP/1.1 101 Switching Protocols
/// *     2.1 ms  the WebSocket is open, with the subprotocol chat, without compression
/// *     2.4 ms  sent a text of 5 bytes
/// *     3.0 ms  received Close 1000
/// ```
struct SocketLog: Sendable {
  private let kernel: any Kernel
  private let start: Deadline

  init(since start: Deadline, on kernel: any Kernel) {
    self.kernel = kernel
    self.start = start
  }

  var now: Deadline { kernel.now() }

  func write(_ message: String) { Console.write(message, after: now.duration(since: start)) }

  func writeOpening(of task: URLSessionWebSocketTask, protocol name: String?) {
    writeHandshake(of: task)
    let subprotocol = name.map { "with the subprotocol \($0)" } ?? "without a subprotocol"
    let extensions = (task.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Sec-WebSocket-Extensions")
    let compression = extensions.map { "with \($0)" } ?? "without compression"
    write("the WebSocket is open, \(subprotocol), \(compression)")
  }

  /// Writes that an opening handshake has failed.
  func writeRefusal(of task: URLSessionTask) {
    writeHandshake(of: task)
    write("the WebSocket has not opened")
  }

  func write(_ verb: String, _ message: URLSessionWebSocketTask.Message) {
    switch message {
    case .string(let text): write("\(verb) a text of \(Format.grouped(text.utf8.count)) bytes")
    case .data(let data): write("\(verb) a binary message of \(Format.grouped(data.count)) bytes")
    }
  }

  private func writeHandshake(of task: URLSessionTask) {
    if let request = task.originalRequest { SessionLog.write(request) }
    if let response = task.response as? HTTPURLResponse { SessionLog.write(response) }
  }
}
