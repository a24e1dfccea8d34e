import Larkspur
import LarkspurBytes
import LarkspurEngine
import LarkspurIO
import LarkspurTransport
import Synchronization

/// The state of one transfer, as far as its connections have reported it. For any thread.
final class TransferProgress: HTTPEventObserver {
  private struct State {
    var phase = TransportError.Phase.queueing
    /// The addresses of the session's connections, by their numbers.
    var addresses: [Int: SocketAddress] = [:]
    /// The address of the connection that the latest request was sent on, or `nil` while another connection is being
    /// opened.
    var address: SocketAddress?
    var head: [UInt8] = []
    /// The heads that `takeHeads` has not returned yet.
    var newHeads: [UInt8] = []

    mutating func note(_ event: ConnectionEvent, of connection: Int?) {
      switch event {
      case .resolving:
        address = nil
        phase = .resolving
      case .connecting:
        address = nil
        phase = .connecting
      case .connected(let address): if let connection { addresses[connection] = address }
      case .tunnelling: phase = .tunnelling
      case .securing: phase = .securing
      case .requestStarted:
        address = connection.flatMap { addresses[$0] }
        phase = .sending
      case .requestSent: phase = .awaitingHead
      case .headReceived(_, let bytes):
        head = bytes
        newHeads += bytes
        phase = .receivingBody
      case .closed: if let connection { addresses[connection] = nil }
      default: break
      }
    }
  }

  /// An event and its time.
  typealias Entry = (event: ConnectionEvent, time: Deadline)

  private let state: Mutex<State>
  /// The events for the log of `-v`. A blocked output delays the log, and not the thread of the session.
  let entries: AsyncStream<Entry>
  private let continuation: AsyncStream<Entry>.Continuation
  private let isLogged: Bool

  /// - Parameters:
  ///   - isLogged: Whether the events are logged.
  ///   - earlier: The earlier transfer of the same session.
  init(isLogged: Bool, after earlier: TransferProgress? = nil) {
    self.isLogged = isLogged
    state = Mutex(State(addresses: earlier?.state.withLock(\.addresses) ?? [:]))
    (entries, continuation) = AsyncStream.makeStream()
  }

  /// Takes an event of the session's connections.
  func observe(_ event: HTTPEvent) {
    guard case .connection(let connectionEvent) = event.kind else { return }
    state.withLock { $0.note(connectionEvent, of: event.connection) }
    if isLogged { continuation.yield((connectionEvent, event.moment)) }
  }

  /// Ends the events for the log.
  func endLog() { continuation.finish() }

  /// The phase that the transfer is in.
  var phase: TransportError.Phase { state.withLock { $0.phase } }

  /// The address that the latest request was sent to: the server's, or the proxy's. `nil` while there is none.
  var address: SocketAddress? { state.withLock { $0.address } }

  /// Returns the heads of the final responses since the last call, as received. A session limits their size and number
  /// up to the response that it delivers.
  func takeHeads() -> [UInt8] {
    state.withLock { state in
      defer { state.newHeads = [] }
      return state.newHeads
    }
  }

  /// The head of the latest final response, as received.
  var head: [UInt8] { state.withLock { $0.head } }

  /// The status and the reason of the latest response: `404 Not Found`.
  var status: String {
    let line = state.withLock { $0.head }.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") }
    let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
    return parts.dropFirst().map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
  }
}
