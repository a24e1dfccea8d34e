import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// A connection to a server, which serves one exchange after another.
///
/// Theory of operation. Everything is pulled: the task that wants the next part of a response parses what is
/// there, receives when nothing is, and waits when the kernel has nothing. Bytes are therefore only received
/// when somebody wants them, and demand flows back to the server by itself. Whether the connection lives on
/// is for the `ExchangeMachine` to say.
///
/// It belongs to its loop's thread: use it inside `loop.run`.
package final class Connection {
  package let channel: Channel
  /// Told of everything that happens, as it happens, at the loop's time.
  package var observer: ((ConnectionEvent, Deadline) -> Void)?

  private var parser: ResponseParser
  private var machine = ExchangeMachine()
  private var output = ByteQueue()
  private var input = Chunk()
  /// How much of `input` the parser is done with; a piece of the body that is being lent is before it.
  private var consumed = 0
  /// How much to receive at once. It doubles while receives fill it.
  private var receiveBytes = ChunkPool.smallest
  private static let receiveBytesMax = 256 * 1024

  /// Counts the exchanges, so that an `Exchange` that is over can tell.
  private(set) var exchangeNumber: UInt64 = 0
  private var failure: TransportError?
  private var lastErrno: Errno?

  // The present or latest response. The storage is used again for the next one.
  private(set) var head = ResponseHead()
  private(set) var headBytes: [UInt8] = []
  private(set) var trailers = FieldTable()
  private(set) var trailerBytes: [UInt8] = []

  /// Takes over a channel that is connected.
  package init(over channel: Channel, limits: Limits = Limits()) {
    self.channel = channel
    parser = ResponseParser(limits: limits)
  }

  deinit {
    channel.close()
  }

  /// Whether another exchange may begin.
  package var isIdle: Bool { machine.isIdle }

  /// Closes the connection. An exchange that is running fails as cancelled.
  package func close() {
    decide { $0.released(into: &$1) }
  }

  /// Sends a request and returns when the response's head is there. `deadline` is for the whole exchange.
  package func send(
    _ request: RequestHead, body: [UInt8] = [], deadline: Deadline = .never
  ) async throws(TransportError) -> Exchange {
    guard channel.loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    try lookForEnd()
    guard machine.begin(), parser.begin(request.context) else {
      throw machine.state == .closed ? .connectionClosed : .localMisuse(.exchangeRunning)
    }
    exchangeNumber &+= 1
    failure = nil
    lastErrno = nil
    trailers = FieldTable()
    output.append(request.bytes)
    output.append(body)
    channel.setDeadline(deadline)
    observe(.requestStarted(bytes: output.byteCount))
    flush()

    while true {
      switch try await advance() {
      case .interim:
        keepHead()
        observe(.interimReceived(status: head.status))
      case .head:
        keepHead()
        observe(.headReceived(status: head.status, bytes: head.byteCount))
        let head = head
        decide {
          if head.framing == .tunnel { $0.tunnelBegan(into: &$1) } else {
            $0.headReceived(isPersistent: head.isPersistent, into: &$1)
          }
        }
        return Exchange(connection: self, number: exchangeNumber)
      case .needMore, .body, .end:
        // Neither can come before the head.
        continue
      }
    }
  }

  /// Lends the next piece of the body to `consume`. False: there is none, the response is complete.
  func receivePiece(_ consume: (Span<UInt8>) -> Void) async throws(TransportError) -> Bool {
    while true {
      if let failure { throw failure }
      guard case .active = machine.state else { return false }
      switch try await advance() {
      case .body(let range):
        observe(.bodyReceived(bytes: range.count))
        input.lend(range, to: consume)
        return true
      case .end(let base):
        keepTrailers(from: base)
        input.drop(consumed)
        consumed = 0
        let hasStrayBytes = input.count > 0
        decide { $0.responseEnded(into: &$1) }
        if hasStrayBytes { decide { $0.unsolicitedBytes(into: &$1) } }
        releaseInput()
        return false
      case .needMore, .interim, .head:
        continue
      }
    }
  }

  // MARK: - Progress

  /// The next event of the response.
  private func advance() async throws(TransportError) -> ResponseParser.Event {
    while true {
      if consumed > 0 {
        input.drop(consumed)
        consumed = 0
      }
      do throws(ResponseError) {
        let event = try parser.next(in: input.bytes, consumed: &consumed)
        if event != .needMore { return event }
      } catch {
        throw fail { $0.responseFailed(error, into: &$1) }
      }
      if !output.isEmpty, channel.isWritable { flush() }
      if channel.mayReceive {
        if try receive() { return .end(trailerBase: consumed) }
        continue
      }
      if input.count == 0 { releaseInput() }
      do throws(Channel.Interruption) {
        try await channel.wait(writing: !output.isEmpty)
      } catch {
        switch error {
        case .timedOut: throw fail { $0.timedOut(into: &$1) }
        case .cancelled: throw fail { $0.cancelled(into: &$1) }
        }
      }
      // Somebody has closed the connection meanwhile.
      if let failure { throw failure }
    }
  }

  /// Receives once. True: the stream has ended, and the response with it.
  private func receive() throws(TransportError) -> Bool {
    makeRoom()
    let received: ClientSocket.Received
    do throws(Errno) {
      received = try channel.receive(into: &input)
    } catch {
      lastErrno = error
      throw fail { $0.connectionLost(into: &$1) }
    }
    switch received {
    case .bytes(_, let drained):
      if !drained { receiveBytes = min(receiveBytes * 2, Self.receiveBytesMax) }
      return false
    case .wouldBlock:
      return false
    case .endOfStream:
      do throws(ResponseError) {
        if try parser.peerClosed(unread: input.count) { return true }
      } catch {
        throw fail { $0.responseFailed(error, into: &$1) }
      }
      throw fail { $0.connectionLost(into: &$1) }
    }
  }

  /// Hands the kernel what is queued of the request.
  private func flush() {
    do throws(Errno) {
      guard try channel.send(&output) else { return }
      observe(.requestSent)
      decide { $0.requestSent(into: &$1) }
    } catch {
      lastErrno = error
      decide { $0.sendingFailed(into: &$1) }
    }
  }

  /// Makes sure that the connection is still good: a server may close an idle connection at any time, and
  /// whatever bytes it sends there answer nothing.
  private func lookForEnd() throws(TransportError) {
    guard machine.isIdle, channel.isReadable else { return }
    makeRoom()
    do throws(Errno) {
      switch try channel.receive(into: &input) {
      case .wouldBlock: break
      case .bytes: decide { $0.unsolicitedBytes(into: &$1) }
      case .endOfStream: decide { $0.peerClosed(into: &$1) }
      }
    } catch {
      decide { $0.connectionLost(into: &$1) }
    }
    releaseInput()
    if !machine.isIdle { throw .connectionClosed }
  }

  // MARK: - Decisions

  private func decide(_ fact: (inout ExchangeMachine, inout ExchangeMachine.Actions) -> Void) {
    var actions = ExchangeMachine.Actions()
    fact(&machine, &actions)
    if let action = actions.first { perform(action) }
    if let action = actions.second { perform(action) }
  }

  /// Reports a fact that ends the exchange, and returns the error that it ended with.
  private func fail(_ fact: (inout ExchangeMachine, inout ExchangeMachine.Actions) -> Void) -> TransportError {
    decide(fact)
    return failure ?? .connectionClosed
  }

  private func perform(_ action: ExchangeMachine.Action) {
    switch action {
    case .complete: observe(.completed)
    case .handOver: observe(.handedOver)
    case .stopSending: output.removeAll()
    case .fail(let reason):
      let error = transportError(reason)
      failure = error
      observe(.failed(error))
    case .close(let reason):
      output.removeAll()
      channel.close()
      releaseInput()
      observe(.closed(reason))
    case .reportInconsistency:
      assertionFailure("a fact that does not fit the state \(machine.state)")
    }
  }

  private func transportError(_ failure: ExchangeMachine.Failure) -> TransportError {
    let phase: TransportError.Phase =
      if head.status >= 200 { .receivingBody } else if output.isEmpty { .awaitingHead } else { .sending }
    return switch failure {
    case .response(let error): .badResponse(error)
    case .connectionLost: .connectionLost(phase, lastErrno)
    case .timedOut: .timedOut(phase)
    case .cancelled: .cancelled
    }
  }

  private func observe(_ event: ConnectionEvent) {
    guard let observer else { return }
    observer(event, channel.loop.kernel.now())
  }

  // MARK: - Storage

  /// Keeps the head's bytes: the chunk will be overwritten, and strings are made only when somebody asks.
  private func keepHead() {
    swap(&head, &parser.head)
    headBytes.removeAll(keepingCapacity: true)
    input.lend((consumed - head.byteCount)..<consumed) { headBytes.append(copying: $0) }
  }

  private func keepTrailers(from base: Int) {
    trailers = parser.trailers
    guard trailers.count > 0 else { return }
    trailerBytes.removeAll(keepingCapacity: true)
    input.lend(base..<consumed) { trailerBytes.append(copying: $0) }
  }

  /// Sees to it that there is room to receive into.
  private func makeRoom() {
    if input.capacity == 0 {
      input = channel.loop.chunks.take(atLeast: receiveBytes)
      return
    }
    guard input.spareCapacity == 0 || input.count == 0 && input.capacity < receiveBytes else { return }
    // What is left is an incomplete head or trailer section, or nothing. A larger chunk takes it over.
    input.compact()
    guard input.spareCapacity == 0 || input.count == 0 else { return }
    var larger = channel.loop.chunks.take(atLeast: max(receiveBytes, input.count * 2))
    _ = larger.append(input.bytes)
    swap(&input, &larger)
    channel.loop.chunks.recycle(larger)
  }

  /// Gives the chunk back: a connection that waits holds no memory.
  private func releaseInput() {
    guard input.capacity > 0 else { return }
    consumed = 0
    var empty = Chunk()
    swap(&input, &empty)
    channel.loop.chunks.recycle(empty)
  }
}
