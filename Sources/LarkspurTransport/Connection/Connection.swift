import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// A connection to a server, which serves one exchange after another.
///
/// It belongs to its loop's thread: use it inside `loop.run`. What happens without waiting is in
/// `ConnectionCore`; here is the waiting.
package final class Connection {
  package typealias Observer = (ConnectionEvent, Deadline) -> Void

  private var core: ConnectionCore

  /// Told of everything that happens, soon after it did, with the time when it did.
  package var observer: Observer? {
    didSet { core.isObserved = observer != nil }
  }

  /// Takes over a channel that is connected.
  package init(over channel: Channel, limits: Limits = Limits()) {
    core = ConnectionCore(over: channel, limits: limits)
  }

  deinit {
    core.release()
  }

  /// Whether another exchange may begin.
  package var isIdle: Bool { core.machine.isIdle }

  /// Closes the connection. An exchange that is running fails as cancelled.
  package func close() {
    core.release()
    tellStory()
  }

  /// Sends a request and returns when the response's head is there. `deadline` is for the whole exchange.
  ///
  /// Cancelling the task ends the exchange and closes the connection, here and while the body is received.
  package func send(
    _ request: RequestHead, body: [UInt8] = [], deadline: Deadline = .never
  ) async throws(TransportError) -> Exchange {
    defer { tellStory() }
    let number = try core.begin(request, body: body, deadline: deadline)
    while true {
      guard case .wait(let channel, let writing) = try core.pollHead() else {
        return Exchange(connection: self, number: number)
      }
      try await wait(for: channel, writing: writing)
    }
  }

  /// Lends the next piece of the body to `consume`. False: there is none, the response is complete.
  func receivePiece(_ consume: (Span<UInt8>) -> Void) async throws(TransportError) -> Bool {
    defer { tellStory() }
    while true {
      var chunk = Chunk()
      var range = 0..<0
      switch try core.pollBody(lending: &chunk, at: &range) {
      case .ready:
        chunk.lend(range, to: consume)
        core.restore(&chunk)
        return true
      case .end: return false
      case .wait(let channel, let writing): try await wait(for: channel, writing: writing)
      }
    }
  }

  private func wait(for channel: Channel, writing: Bool) async throws(TransportError) {
    tellStory()
    do throws(Channel.Interruption) {
      try await channel.wait(writing: writing)
    } catch {
      throw core.interrupted(error)
    }
  }

  private func tellStory() {
    guard let observer else { return }
    for (event, time) in core.takeStory() { observer(event, time) }
  }

  // MARK: - The response

  var exchangeNumber: UInt64 { core.exchangeNumber }
  var head: ResponseHead { core.head }
  var headBytes: [UInt8] { core.headBytes }
  var trailers: FieldTable { core.trailers }
  var trailerBytes: [UInt8] { core.trailerBytes }
}
