import LarkspurBytes
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// Writes the events of a transfer's connections to standard error, for `-v`:
///
/// ```
/// *     0.7 ms  connected to 127.0.0.1:8080
/// > GET / HTTP/1.1
/// < HTTP/1.1 200 OK
/// ```
struct VerboseLog {
  private let start: Deadline
  /// The number of received bytes of the current response's body.
  private var received = 0

  init(since start: Deadline) { self.start = start }

  mutating func write(_ event: ConnectionEvent, at time: Deadline) {
    switch event {
    case .resolving(let host): say("resolving \(host)", time)
    case .resolved(let addresses): say("resolved: \(addresses.map(\.description).joined(separator: ", "))", time)
    case .connecting(let address): say("connecting to \(address)", time)
    case .connectFailed(let address, let error): say("could not connect to \(address): \(error)", time)
    case .connected(let address): say("connected to \(address)", time)
    case .tunnelling(let target, let proxy): say("asking \(proxy) for a tunnel to \(target)", time)
    case .tunnelled: say("the tunnel is open", time)
    case .securing(let server): say("TLS handshake with \(server.text)", time)
    case .secured(let handshake):
      say("\(handshake.version), \(handshake.cipher)" + (handshake.isResumed ? ", resumed" : ""), time)
      for line in TrustReport.lines(of: handshake.trust) { Console.note("*              " + line) }
    case .requestStarted(let head, let bytes, let isReused):
      if isReused { say("the connection is used again", time) }
      received = 0
      say("sending the request, \(Format.grouped(bytes)) bytes" + (bytes > head.count ? " with its body" : ""), time)
      writeHead(head, prefix: ">")
    case .openFailed, .requestContent, .bodySent, .responseContent: break
    case .requestSent: say("request sent", time)
    case .interimReceived(let status, _, _): say("interim response: \(status)", time)
    case .headReceived(let status, let bytes):
      say("response: \(status), a head of \(Format.grouped(bytes.count)) bytes", time)
      writeHead(bytes, prefix: "<")
    case .bodyReceived(let bytes):
      if received == 0 { say("first \(Format.grouped(bytes)) bytes of the body", time) }
      received += bytes
    case .completed: say("complete: \(Format.grouped(received)) bytes of body", time)
    case .handedOver: say("the connection is another protocol's from here on", time)
    case .failed(let error): say("failed after \(Format.grouped(received)) bytes of body: \(error)", time)
    case .closed(let reason): say("connection closed: \(Self.message(for: reason))", time)
    }
  }

  private func writeHead(_ bytes: [UInt8], prefix: String) {
    var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
    Console.note(
      lines.map { line in
        let text = String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
        return text.isEmpty ? prefix : "\(prefix) \(text)"
      })
  }

  private func say(_ message: String, _ time: Deadline) {
    Console.write(message, after: time.duration(since: start))
  }

  private static func message(for reason: ExchangeMachine.CloseReason) -> String {
    switch reason {
    case .serverWillClose: "the server does not keep it"
    case .requestUnfinished: "the response came before the request had been sent"
    case .exchangeFailed: "the exchange failed"
    case .peerClosed: "the server closed it"
    case .unsolicitedBytes: "the server sent more than the response"
    case .connectionLost: "it broke"
    case .unneeded: "not needed any more (it could have been used again)"
    }
  }
}
