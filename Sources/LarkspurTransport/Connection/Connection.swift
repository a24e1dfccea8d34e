import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// A connection to a server, which serves one exchange after another.
///
/// It belongs to its loop's thread: use it inside `loop.run`. What happens without waiting is in
/// `ConnectionCore`; here is the waiting.
package final class Connection {
  package typealias Observer = (ConnectionEvent, Deadline) -> Void

  private let confined: Confined<ConnectionCore>
  private var core: ConnectionCore {
    @inline(__always) _read { yield confined.state }
    @inline(__always) _modify { yield &confined.state }
  }

  private let observer: Observer?

  /// Takes over a channel that is connected. `observer` is told of everything that happens, soon after it did,
  /// with the time when it did.
  package init(over channel: Channel, limits: Limits = Limits(), observer: Observer? = nil) {
    confined = Confined(ConnectionCore(over: channel, limits: limits, isObserved: observer != nil))
    self.observer = observer
  }

  deinit {
    core.abandon()
  }

  /// Whether another exchange may begin.
  package var isIdle: Bool { core.machine.isIdle }

  /// The server's address. Nil once the connection is closed.
  package var address: SocketAddress? { core.channel?.address }

  /// Closes the connection. An exchange that is running fails as cancelled.
  package func close() {
    core.abandon()
    tellStory()
  }

  // MARK: - TLS

  /// Makes the handshake, before anything is sent. What it fails with closes the connection.
  package func secure(by security: Security, as server: ServerName, port: UInt16, deadline: Deadline)
    async throws(TransportError)
  {
    defer { tellStory() }
    core.channel?.setDeadline(deadline)
    do throws(TransportError) {
      let engine = try security.engine(for: server, port: port, date: core.loop.kernel.date())
      core.secure(engine)
      try await cancelledWithTask { () async throws(TransportError) in
        while try await !makeHandshake(by: security, deadline: deadline) {}
      }
    } catch {
      core.abandon()
      throw error
    }
  }

  /// One step of the handshake. True: it is done.
  private func makeHandshake(by security: Security, deadline: Deadline) async throws(TransportError) -> Bool {
    let step = try pollHandshake(telling: security.context)
    switch step {
    case .done: return true
    case .wait(let channel, let reading, let writing):
      tellStory()
      do throws(Channel.Interruption) {
        try await channel.wait(reading: reading, writing: writing)
      } catch {
        switch error {
        case .timedOut: throw .tls(TLSError(.handshakeTimedOut))
        case .cancelled: throw .cancelled
        case .busy: throw .localMisuse(.exchangeRunning)
        }
      }
    case .wantsTrust(let trust):
      guard let decideTrust = security.decideTrust else { throw .internalInconsistency }
      core.decide(try await answer(until: deadline) { await decideTrust(trust) })
    case .wantsIdentity(let issuers):
      guard let provideIdentity = security.provideIdentity else { throw .internalInconsistency }
      try core.identify(try await answer(until: deadline) { await provideIdentity(issuers) })
    }
    return false
  }

  /// What pins did not match is told when the step is over: it is somebody else's code.
  private func pollHandshake(telling context: TLSContext) throws(TransportError) -> ConnectionCore.HandshakeStep {
    defer { for mismatch in core.takePinMismatches() { context.pinMismatched?(mismatch) } }
    return try core.pollHandshake()
  }

  /// Asks the caller, who answers on a thread of its own. The handshake waits, and the loop does not.
  private func answer<T: Sendable>(
    until deadline: Deadline, _ ask: @escaping @Sendable () async -> T
  ) async throws(TransportError) -> T {
    let answer = Answer<T>()
    let question = Task { @concurrent in answer.finish(.answered(await ask())) }
    let outcome = await answer.outcome(deadline: deadline, on: core.loop)
    question.cancel()
    switch outcome {
    case .answered(let value): return value
    case .timedOut: throw .tls(TLSError(.handshakeTimedOut))
    case .cancelled: throw .cancelled
    }
  }

  /// Runs `operation`, and cancels what goes on at the connection when the task is cancelled meanwhile. One
  /// handler serves any number of exchanges: installing one costs as much as a third of an exchange.
  package func cancelledWithTask<T, E: Error>(_ operation: () async throws(E) -> T) async throws(E) -> T {
    let scope = core.loop.isCurrent ? core.channel?.beginScope() : nil
    let canceller = scope.flatMap { core.channel?.canceller(of: $0) }
    defer { if let scope { core.channel?.endScope(scope) } }
    let result: Result<T, E> = await withTaskCancellationHandler {
      do throws(E) {
        return .success(try await operation())
      } catch {
        return .failure(error)
      }
    } onCancel: {
      canceller?.cancel()
    }
    return try result.get()
  }

  /// Sends a request and returns when the response's head is there. `deadline` is for the whole exchange.
  package func send(
    _ request: RequestHead, body: [UInt8] = [], deadline: Deadline = .never
  ) async throws(TransportError) -> Exchange {
    defer { tellStory() }
    let number = try core.begin(request, body: body, deadline: deadline)
    while true {
      guard case .wait(let channel, let reading, let writing) = try core.pollHead() else {
        return Exchange(connection: self, number: number)
      }
      try await wait(for: channel, reading: reading, writing: writing)
    }
  }

  /// Sends a request with a body of any kind, and returns when the response's head is there.
  ///
  /// After a final response of 300 or more the rest of the body is not sent, and the connection serves no other exchange.
  /// After any other it goes on while somebody asks for the response.
  package func send(
    _ request: RequestHead, body: RequestBody, timeouts: Timeouts = Timeouts(), deadline: Deadline = .never
  ) async throws(TransportError) -> Exchange {
    defer { tellStory() }
    let number = try core.begin(request, body: body, timeouts: timeouts, deadline: deadline)
    while true {
      guard case .wait(let channel, let reading, let writing) = try core.pollHead() else {
        return Exchange(connection: self, number: number)
      }
      try await wait(for: channel, reading: reading, writing: writing)
    }
  }

  /// Limits how many bytes a second go each way, from now on. Nil: as many as the network takes.
  package func limit(sendingTo sending: Int? = nil, receivingTo receiving: Int? = nil) {
    core.limit(sending: sending, receiving: receiving)
  }

  /// Lends the next piece of the body to `consume`. False: there is none, the response is complete.
  @inline(__always)
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
      case .wait(let channel, let reading, let writing):
        try await wait(for: channel, reading: reading, writing: writing)
      }
    }
  }

  /// Moves the next piece of the body into the file. Returns its length; nil: there is none, the response is complete.
  func receivePiece(into file: OpenFile) async throws(TransportError) -> Int? {
    defer { tellStory() }
    var count = 0
    while true {
      switch try core.pollBody(into: file, count: &count) {
      case .ready: return count
      case .end: return nil
      case .wait(let channel, let reading, let writing):
        try await wait(for: channel, reading: reading, writing: writing)
      }
    }
  }

  @inline(__always)
  private func wait(for channel: Channel, reading: Bool, writing: Bool) async throws(TransportError) {
    tellStory()
    do throws(Channel.Interruption) {
      try await channel.wait(reading: reading, writing: writing)
    } catch {
      throw core.interrupted(error)
    }
  }

  @inline(__always)
  private func tellStory() {
    if let observer { tellStory(to: observer) }
  }

  private func tellStory(to observer: Observer) {
    for (event, time) in core.takeStory() { observer(event, time) }
  }

  /// After a 101, or a 2xx to CONNECT: what the connection has become. Nil at any other time, and the second time.
  package func takeTunnel() -> Tunnel? { core.takeTunnel() }

  // MARK: - The response

  /// Whether something of the response, or of its failure, is still to be received.
  var isReceiving: Bool { core.isReceiving }
  var exchangeNumber: UInt64 { core.exchangeNumber }
  var status: Int { core.head.status }
  func canceller(of exchange: UInt64) -> Canceller? { core.channel?.canceller(of: .exchange(exchange)) }
  var head: ResponseHead { core.head }
  var headBytes: [UInt8] { core.headBytes }
  var trailers: FieldTable { core.trailers }
  var trailerBytes: [UInt8] { core.trailerBytes }
}

/// A connection that has been handed over to another protocol. It is closed when its owner lets go of it.
package final class Tunnel {
  package let channel: Channel
  /// What is between the two protocols and the channel, if anything.
  var tls: TLSLayer?
  /// What the server has sent behind the head already: the other protocol's first bytes.
  package let received: [UInt8]

  init(channel: Channel, tls: consuming TLSLayer?, received: [UInt8]) {
    self.channel = channel
    self.tls = tls
    self.received = received
  }

  deinit {
    channel.abandon()
  }
}
