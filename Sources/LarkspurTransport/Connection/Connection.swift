import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// A connection to a server, which serves one exchange after another.
///
/// It belongs to its loop's thread: use it inside `loop.run`. What happens without waiting is in
/// `ConnectionCore`; here is the waiting.
public final class Connection: EndOfTickHook {
  public typealias Observer = (ConnectionEvent, Deadline) -> Void

  private let confined: Confined<ConnectionCore>
  private var core: ConnectionCore {
    @inline(__always) _read { yield confined.state }
    @inline(__always) _modify { yield &confined.state }
  }

  private var observer: Observer?
  /// Whether `tickWillEnd` is going to be called.
  private var hasPutOffSending = false
  /// How the connection was opened, if somebody took it down.
  var dialRecord: DialRecord?
  private var secured: Secured?
  /// What TLS has agreed on. Nil without TLS.
  public var handshake: Handshake? { secured?.handshake }

  /// Connections without TLS do not hold room for it.
  private final class Secured {
    let handshake: Handshake
    init(_ handshake: Handshake) { self.handshake = handshake }
  }

  /// Takes over a channel that is connected. `observer` is told of everything that happens, soon after it did,
  /// with the time when it did.
  public init(over channel: Channel, limits: Limits = Limits(), observer: Observer? = nil) {
    confined = Confined(ConnectionCore(over: channel, limits: limits, isObserved: observer != nil))
    self.observer = observer
  }

  /// Takes over a tunnel.
  public init(through tunnel: Tunnel, limits: Limits = Limits(), observer: Observer? = nil) {
    confined = Confined(ConnectionCore(through: tunnel, limits: limits, isObserved: observer != nil))
    self.observer = observer
  }

  deinit {
    core.abandon()
  }

  /// Who is at its other end: where it is a proxy, requests have to be for one.
  public internal(set) var recipient: RequestHead.Recipient {
    get { confined.state.recipient }
    set { core.recipient = newValue }
  }

  /// Whether another exchange may begin.
  public var isIdle: Bool { confined.state.isIdle }

  /// The server's address. Nil once the connection is closed.
  public var address: SocketAddress? { core.channel?.address }

  /// Closes the connection. An exchange that is running fails as cancelled.
  public func close() {
    core.abandon()
    tellStory()
    wakeFollowers()
  }

  // MARK: - TLS

  /// Makes the handshake, before anything is sent. What it fails with closes the connection.
  public func secure(by security: Security, as server: ServerName, port: UInt16, deadline: Deadline)
    async throws(TransportError)
  {
    try await cancelledWithTask { () async throws(TransportError) in
      try await makeSecure(by: security, as: server, port: port, deadline: deadline)
    }
  }

  /// The same where the task's cancellation is seen to already.
  func makeSecure(by security: Security, as server: ServerName, port: UInt16, deadline: Deadline)
    async throws(TransportError)
  {
    defer { tellStory() }
    observer?(.securing(server), core.loop.kernel.now())
    core.channel?.setDeadline(deadline)
    do throws(TransportError) {
      core.secure(try security.engine(for: server, port: port, date: core.loop.kernel.date()))
      while try await !makeHandshake(by: security, deadline: deadline) {}
      if core.hasUnsentFlight { putOffSending() }
    } catch {
      core.abandon()
      throw error
    }
  }

  /// Sends what has been put off: the last flight of a handshake that no request has taken along, and pipelined requests,
  /// which leave together.
  func tickWillEnd() {
    hasPutOffSending = false
    core.sendLastFlight()
    if !core.flush() { core.channel?.wantWriting() }
    wakeFollowers()
  }

  /// One step of the handshake. True: it is done.
  private func makeHandshake(by security: Security, deadline: Deadline) async throws(TransportError) -> Bool {
    let step = try pollHandshake(telling: security.context)
    switch step {
    case .done(let handshake):
      secured = Secured(handshake)
      return true
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
    switch await Answer.asking(until: deadline, on: core.loop, ask) {
    case .answered(let value): return value
    case .timedOut: throw .tls(TLSError(.handshakeTimedOut))
    case .cancelled: throw .cancelled
    }
  }

  /// Runs `operation`, and cancels what goes on at the connection when the task is cancelled meanwhile. One
  /// handler serves any number of exchanges: installing one costs as much as a third of an exchange.
  public func cancelledWithTask<T, E: Error>(_ operation: () async throws(E) -> T) async throws(E) -> T {
    guard core.loop.isCurrent, let channel = core.channel else { return try await operation() }
    return try await channel.cancelledWithTask(operation)
  }

  /// Sends a request and returns when the response's head is there. `deadline` is for the whole exchange.
  public func send(
    _ request: RequestHead, body: [UInt8] = [], deadline: Deadline = .never
  ) async throws(TransportError) -> Exchange {
    try await head(of: begin(request, body: body, deadline: deadline))
  }

  /// Begins an exchange, or puts it behind those that are not answered yet: the caller has to know that it may follow them
  /// (RFC 9112 9.3.2), and to let go of it. Nothing is waited for.
  func begin(
    _ request: RequestHead, body: [UInt8], deadline: Deadline, isPipelined: Bool = false
  ) throws(TransportError) -> UInt64 {
    guard isPipelined, !core.isIdle else {
      defer { tellStory() }
      let number = try core.begin(request, body: body, deadline: deadline)
      if isPipelined { core.hold() }
      return number
    }
    let number = try core.enqueue(request, body: body, deadline: deadline)
    if core.shouldFlush { putOffSending() }
    return number
  }

  func begin(
    _ request: RequestHead, body: RequestBody, timeouts: Timeouts, deadline: Deadline
  ) throws(TransportError) -> UInt64 {
    defer { tellStory() }
    return try core.begin(request, body: body, timeouts: timeouts, deadline: deadline)
  }

  private func putOffSending() {
    guard !hasPutOffSending else { return }
    hasPutOffSending = true
    core.loop.callAtEndOfTick(self)
  }

  /// Waits until an exchange has been begun that was put behind others.
  @inline(__always)
  func turn(of number: UInt64, deadline: Deadline) async throws(TransportError) {
    if core.isBehind(number) { try await waitForTurn(of: number, deadline: deadline) }
  }

  /// Waits for the head of an exchange that has been begun.
  @inline(__always)
  func head(of number: UInt64) async throws(TransportError) -> Exchange {
    defer { tellStory() }
    while true {
      guard case .wait(let channel, let reading, let writing) = try core.pollHead() else {
        return Exchange(connection: self, number: number)
      }
      try await wait(for: channel, reading: reading, writing: writing)
    }
  }

  /// The same if it is there. Nil: it has to be waited for, and `work` is done when it is worth asking again.
  func head(of number: UInt64, for work: any LoopCallback) throws(TransportError) -> Exchange? {
    defer { tellStory() }
    while true {
      // Most often this comes right behind the request, and there is nothing else to be done.
      if core.waitsForInput(), let channel = core.channel, try subscribe(work, to: channel, writing: false) {
        return nil
      }
      guard case .wait(let channel, let reading, let writing) = try core.pollHead() else {
        return Exchange(connection: self, number: number)
      }
      if try subscribe(work, to: channel, reading: reading, writing: writing) { return nil }
    }
  }

  /// Subscribes a callback to a channel.
  ///
  /// - Returns: `false` if there is nothing to wait for.
  @inline(__always)
  private func subscribe(
    _ callback: any LoopCallback, to channel: Channel, reading: Bool = true, writing: Bool
  ) throws(TransportError) -> Bool {
    do throws(Channel.Interruption) {
      return try channel.wait(reading: reading, writing: writing, with: callback)
    } catch {
      throw core.interrupted(error)
    }
  }

  /// Sends a request with a body of any kind, and returns when the response's head is there.
  ///
  /// After a final response of 300 or more the rest of the body is not sent, and the connection serves no other exchange.
  /// After any other it goes on while somebody asks for the response.
  public func send(
    _ request: RequestHead, body: RequestBody, timeouts: Timeouts = Timeouts(), deadline: Deadline = .never
  ) async throws(TransportError) -> Exchange {
    let number = try begin(request, body: body, timeouts: timeouts, deadline: deadline)
    return try await head(of: number)
  }

  /// Limits how many bytes a second go each way, from now on. Nil: as many as the network takes.
  public func limit(sendingTo sending: Int? = nil, receivingTo receiving: Int? = nil) {
    core.limit(sending: sending, receiving: receiving)
  }

  /// Lends the next piece of the body to `consume`, if it is there. Nil: it has to be waited for.
  @inline(__always)
  func takePiece(_ consume: (Span<UInt8>) -> Void) throws(TransportError) -> Bool? {
    defer { tellStory() }
    switch try pollPiece(consume) {
    case .ready: return true
    case .end: return false
    case .wait: return nil
    }
  }

  /// Lends the next piece of the body to `consume`, if it is there.
  ///
  /// - Returns: `false` if the body is complete, or `nil` if `callback` will be performed when it is worth asking again.
  func takePiece(
    for callback: any LoopCallback, _ consume: (Span<UInt8>) -> Void
  ) throws(TransportError) -> Bool? {
    defer { tellStory() }
    while true {
      switch try pollPiece(consume) {
      case .ready: return true
      case .end: return false
      case .wait(let channel, let reading, let writing):
        if try subscribe(callback, to: channel, reading: reading, writing: writing) { return nil }
      }
    }
  }

  @inline(__always)
  private func pollPiece(_ consume: (Span<UInt8>) -> Void) throws(TransportError) -> ConnectionCore.Step {
    var chunk = Chunk()
    var range = 0..<0
    let step = try core.pollBody(lending: &chunk, at: &range)
    if case .ready = step {
      chunk.lend(range, to: consume)
      core.restore(&chunk)
    }
    return step
  }

  /// Lends the next piece of the body to `consume`. False: there is none, the response is complete.
  @inline(__always)
  func receivePiece(_ consume: (Span<UInt8>) -> Void) async throws(TransportError) -> Bool {
    defer { tellStory() }
    while true {
      switch try pollPiece(consume) {
      case .ready: return true
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

  /// The same for what has come. 0: the response is complete. Nil: it has to be waited for.
  func takePiece(into file: OpenFile) throws(TransportError) -> Int? {
    defer { tellStory() }
    var count = 0
    switch try core.pollBody(into: file, count: &count) {
    case .ready: return count
    case .end: return 0
    case .wait: return nil
    }
  }

  private func waitForTurn(of number: UInt64, deadline: Deadline) async throws(TransportError) {
    var isLate = false
    let timer =
      deadline == .never
      ? nil
      : core.loop.startTimer(deadline) { [self] in
        isLate = true
        abandon(number)
      }
    await Waiter.suspend { core.keep($0, of: number) }
    if let timer { core.loop.stopTimer(timer) }
    if isLate { throw .timedOut(.queueing) }
    // Whoever was before it has taken the connection along.
    guard core.exchangeNumber == number else { throw .connectionClosed }
  }

  /// Whether an exchange waits for those before it.
  func isBehind(_ number: UInt64) -> Bool { core.isBehind(number) }

  /// The exchange is not used any more.
  func letGo(_ number: UInt64) { core.letGo(number) }

  /// Nobody waits for the answer any more.
  private func abandon(_ number: UInt64) { core.abandon(number)?.wake() }

  /// Ends an exchange, on the loop's thread.
  func cancel(_ number: UInt64) {
    if core.isBehind(number) { abandon(number) } else { core.channel?.cancelled(.exchange(number)) }
  }

  /// Holds back what is left of a request.
  func holdBack(_ number: UInt64) { core.holdBack(number) }

  /// Lets go what is held back.
  func goOn(_ number: UInt64) { if core.goOn(number) { core.channel?.becameReady() } }

  /// Begins the next exchange of those that have been put behind one another, if the one before is over. If the connection
  /// is closed, all of them learn of it.
  func wakeFollowers() {
    guard core.hasFollowers else { return }
    while let waiter = core.advance() { waiter.wake() }
    if core.shouldFlush { putOffSending() }
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

  /// Tells `observer` from now on, and nobody else.
  func observe(_ observer: @escaping Observer) {
    self.observer = observer
    core.isObserved = true
  }

  var isObserved: Bool { observer != nil }

  /// Nobody wants to know any more.
  func stopObserving() {
    observer = nil
    core.isObserved = false
  }

  /// What is known in numbers of an exchange; nil when another one has begun since.
  func metrics(of number: UInt64, requested: Deadline? = nil) -> ExchangeMetrics? {
    guard core.exchangeNumber == number else { return nil }
    var metrics = core.record.metrics(requested: requested)
    metrics.isReused = number > 1
    metrics.opening = dialRecord?.finished(localAddress: core.channel?.localAddress)
    return metrics
  }

  private func tellStory(to observer: Observer) {
    for (event, time) in core.takeStory() { observer(event, time) }
  }

  /// After a 101, or a 2xx to CONNECT: what the connection has become. Nil at any other time, and the second time.
  public func takeTunnel() -> Tunnel? { core.takeTunnel() }

  // MARK: - The response

  /// Whether something of the response, or of its failure, is still to be received.
  var isReceiving: Bool { confined.state.isReceiving }
  var exchangeNumber: UInt64 { confined.state.exchangeNumber }

  var wasKeptUnused: Bool {
    get { confined.state.wasKeptUnused }
    set { core.wasKeptUnused = newValue }
  }
  var status: Int { confined.state.head.status }
  func canceller(of exchange: UInt64) -> Canceller? { confined.state.channel?.canceller(of: .exchange(exchange)) }
  var minorVersion: Int { confined.state.head.minorVersion }
  var fields: FieldTable { confined.state.head.fields }
  var head: ResponseHead { confined.state.head }
  var headBytes: [UInt8] { confined.state.headBytes }
  /// When the latest exchange was over.
  var exchangeEnded: Deadline { confined.state.record.ended }
  /// Whether the present exchange is over, and the connection good for others.
  var hasEndedWell: Bool { confined.state.machine.isIdle }
  /// Lets go of the latest response, which nobody wants to look at any more: a connection that is idle for long holds half as
  /// much memory then.
  public func forgetResponse() { confined.state.forgetResponse() }
  /// Nil once the connection is closed.
  var channel: Channel? { confined.state.channel }
  var isOpen: Bool { confined.state.channel != nil }
  /// Whether nothing of the present request's body has left, because it waited for `100 Continue`.
  var holdsBody: Bool { confined.state.holdsBody }
  /// Of the latest request's body.
  var sentBodyBytes: Int { confined.state.record.requestBodyBytes }
  /// Whether anything of the present response has come.
  var hasReceived: Bool { confined.state.record.hasFirstByte }

  /// Notices that the server has closed an idle connection.
  func lookForEnd() {
    core.lookForEnd()
    tellStory()
  }
  var trailers: FieldTable { confined.state.trailers }
  var trailerBytes: [UInt8] { confined.state.trailerBytes }
}
