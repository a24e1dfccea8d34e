import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// A connection to a server, which serves one exchange after another.
///
/// A connection belongs to its loop's thread: use it inside `loop.run`. `ConnectionCore` has the steps that need no
/// waiting; this class waits for the channel and repeats them.
public final class Connection: EndOfTickHook {
  public typealias Observer = (ConnectionEvent, Deadline) -> Void

  private let loopBound: LoopBound<ConnectionCore>
  private var core: ConnectionCore {
    @inline(__always) _read { yield loopBound.state }
    @inline(__always) _modify { yield &loopBound.state }
  }

  private var observer: Observer?
  /// Whether `tickWillEnd` will be called at the end of this tick.
  private var hasPutOffSending = false
  /// The record of how the connection was opened. Only a pool keeps one.
  var dialRecord: DialRecord?
  /// Whether the connection leads past the route's proxy, which could not be reached.
  var hasLeftProxy = false
  private var secured: Secured?
  /// The result of the TLS handshake, or `nil` without TLS.
  public var handshake: Handshake? { secured?.handshake }

  /// Performance: boxed, so that connections without TLS reserve no memory for it.
  private final class Secured {
    let handshake: Handshake
    init(_ handshake: Handshake) { self.handshake = handshake }
  }

  /// Creates a connection over a connected channel.
  ///
  /// - Parameter observer: Called on the loop for each event, soon after it, with the time of the event.
  public init(over channel: Channel, limits: Limits = Limits(), observer: Observer? = nil) {
    loopBound = LoopBound(ConnectionCore(over: channel, limits: limits, isObserved: observer != nil))
    self.observer = observer
  }

  /// Creates a connection through a tunnel.
  ///
  /// - Parameter observer: Called on the loop for each event, soon after it, with the time of the event.
  public init(through tunnel: Tunnel, limits: Limits = Limits(), observer: Observer? = nil) {
    loopBound = LoopBound(ConnectionCore(through: tunnel, limits: limits, isObserved: observer != nil))
    self.observer = observer
  }

  deinit {
    core.abandon()
  }

  /// The kind of peer: an origin server or a proxy. Requests must be made for this kind of recipient.
  public internal(set) var recipient: RequestHead.Recipient {
    get { loopBound.state.recipient }
    set { core.recipient = newValue }
  }

  /// Whether the connection is open and has no exchange in progress.
  public var isIdle: Bool { loopBound.state.isIdle }

  /// The address of the peer (the proxy's, if there is one), or `nil` once the connection is closed.
  public var address: SocketAddress? { core.channel?.address }

  /// Closes the connection. A running exchange fails with `TransportError.cancelled`.
  public func close() {
    core.abandon()
    writeLog()
    wakeFollowers()
  }

  // MARK: - TLS

  /// Makes the TLS handshake, before anything is sent. An error closes the connection. A cancellation of the task ends
  /// the handshake.
  public func secure(by security: Security, as server: ServerName, port: UInt16, deadline: Deadline)
    async throws(TransportError)
  {
    try await cancelledWithTask { () async throws(TransportError) in
      try await makeSecure(by: security, as: server, port: port, deadline: deadline)
    }
  }

  /// Makes the TLS handshake like `secure`, for callers that cancel the channel's waits themselves.
  func makeSecure(by security: Security, as server: ServerName, port: UInt16, deadline: Deadline)
    async throws(TransportError)
  {
    defer { writeLog() }
    observer?(.securing(server), core.loop.kernel.now())
    core.channel?.setDeadline(deadline)
    do throws(TransportError) {
      if let look = security.renewal?.look(at: core.loop.now) { try await answer(until: deadline) { await look.value } }
      core.secure(try security.engine(for: server, port: port, date: core.loop.kernel.date()))
      while try await !makeHandshake(by: security, deadline: deadline) {}
      if core.hasUnsentFlight { putOffSending() }
    } catch {
      core.abandon()
      throw error
    }
  }

  /// Sends deferred output: the last flight of a handshake, if no request has included it, and pipelined requests,
  /// which leave together.
  func tickWillEnd() {
    hasPutOffSending = false
    core.sendLastFlight()
    if !core.flush() { core.channel?.addWriteInterest() }
    wakeFollowers()
  }

  /// Makes one step of the handshake.
  ///
  /// - Returns: `true` if the handshake is complete.
  private func makeHandshake(by security: Security, deadline: Deadline) async throws(TransportError) -> Bool {
    let step = try pollHandshake(reportingTo: security.context)
    switch step {
    case .done(let handshake):
      secured = Secured(handshake)
      return true
    case .wait(let channel, let reading, let writing):
      writeLog()
      do throws(Channel.Interruption) {
        try await channel.wait(reading: reading, writing: writing)
      } catch {
        switch error {
        case .timedOut: throw .tls(TLSError(.handshakeTimedOut))
        case .cancelled: throw .cancelled
        case .busy: throw .localMisuse(.exchangeRunning)
        }
      }
    case .needsTrust(let trust):
      guard let decideTrust = security.decideTrust else { throw .internalInconsistency }
      core.decide(try await answer(until: deadline) { await decideTrust(trust) })
    case .needsIdentity(let issuers):
      guard let provideIdentity = security.provideIdentity else { throw .internalInconsistency }
      try core.identify(try await answer(until: deadline) { await provideIdentity(issuers) })
    }
    return false
  }

  /// Advances the handshake. Pin mismatches are reported after the step, because the callback is user code.
  private func pollHandshake(reportingTo context: TLSContext) throws(TransportError) -> ConnectionCore.HandshakeStep {
    defer { for mismatch in core.takePinMismatches() { context.pinMismatched?(mismatch) } }
    return try core.pollHandshake()
  }

  /// Runs `ask` on another thread. The handshake waits for the result, and the loop does not.
  private func answer<T: Sendable>(
    until deadline: Deadline, _ ask: @escaping @Sendable () async -> T
  ) async throws(TransportError) -> T {
    switch await LoopPromise.run(until: deadline, on: core.loop, ask) {
    case .fulfilled(let value): return value
    case .timedOut: throw .tls(TLSError(.handshakeTimedOut))
    case .cancelled: throw .cancelled
    }
  }

  /// Runs `operation`, and cancels the connection's waits if the task is cancelled before it returns. One call can
  /// cover any number of exchanges.
  ///
  /// Performance: installing a cancellation handler costs as much as a third of an exchange.
  public func cancelledWithTask<T, E: Error>(_ operation: () async throws(E) -> T) async throws(E) -> T {
    guard core.loop.isCurrent, let channel = core.channel else { return try await operation() }
    return try await channel.cancelledWithTask(operation)
  }

  /// Sends a request, and returns when the response's head has arrived.
  ///
  /// - Parameter deadline: The deadline of the whole exchange.
  public func send(
    _ request: RequestHead, body: [UInt8] = [], deadline: Deadline = .never
  ) async throws(TransportError) -> Exchange {
    try await head(of: start(request, body: body, deadline: deadline))
  }

  /// Starts an exchange, or queues its request behind those that are not answered yet. Waits for nothing.
  ///
  /// - Parameter isPipelined: Whether the request may follow others (RFC 9112 9.3.2). The caller has to call `vacate`
  ///   when it no longer uses the exchange.
  /// - Returns: The number of the exchange.
  func start(
    _ request: RequestHead, body: [UInt8], deadline: Deadline, isPipelined: Bool = false
  ) throws(TransportError) -> UInt64 {
    guard isPipelined, !core.isIdle else {
      defer { writeLog() }
      let number = try core.start(request, body: body, deadline: deadline)
      if isPipelined { core.occupy() }
      return number
    }
    let number = try core.enqueue(request, body: body, deadline: deadline)
    if core.shouldFlush { putOffSending() }
    return number
  }

  func start(
    _ request: RequestHead, body: RequestBody, timeouts: Timeouts, deadline: Deadline
  ) throws(TransportError) -> UInt64 {
    defer { writeLog() }
    return try core.start(request, body: body, timeouts: timeouts, deadline: deadline)
  }

  private func putOffSending() {
    guard !hasPutOffSending else { return }
    hasPutOffSending = true
    core.loop.callAtEndOfTick(self)
  }

  /// Waits until an exchange that was queued behind others has begun.
  @inline(__always)
  func waitForTurn(of number: UInt64, deadline: Deadline) async throws(TransportError) {
    if core.isBehind(number) { try await suspendUntilTurn(of: number, deadline: deadline) }
  }

  /// Waits for the response's head of an exchange that has begun.
  @inline(__always)
  func head(of number: UInt64) async throws(TransportError) -> Exchange {
    defer { writeLog() }
    while true {
      guard case .wait(let channel, let reading, let writing) = try core.pollHead() else {
        return Exchange(connection: self, number: number)
      }
      try await wait(for: channel, reading: reading, writing: writing)
    }
  }

  /// Returns the exchange if the response's head has arrived.
  ///
  /// - Returns: The exchange, or `nil` if the head has not arrived. `work` then runs when another call may succeed.
  func head(of number: UInt64, for work: any LoopCallback) throws(TransportError) -> Exchange? {
    defer { writeLog() }
    while true {
      // Performance: this call most often comes right after the request, when there is nothing to do but wait.
      if core.waitsForInput(), let channel = core.channel, try subscribe(work, to: channel, writing: false) {
        return nil
      }
      guard case .wait(let channel, let reading, let writing) = try core.pollHead() else {
        return Exchange(connection: self, number: number)
      }
      if try subscribe(work, to: channel, reading: reading, writing: writing) { return nil }
    }
  }

  /// Subscribes a callback, if there is one, to a channel.
  ///
  /// - Returns: `false` if there is nothing to wait for.
  @inline(__always)
  private func subscribe(
    _ callback: (any LoopCallback)?, to channel: Channel, reading: Bool = true, writing: Bool
  ) throws(TransportError) -> Bool {
    guard let callback else { return true }
    do throws(Channel.Interruption) {
      return try channel.wait(reading: reading, writing: writing, with: callback)
    } catch {
      throw core.interrupted(error)
    }
  }

  /// Sends a request with a body of any kind, and returns when the response's head is there.
  ///
  /// If the final response has a status of 300 or more, or comes while the body waits for `100 Continue`, the rest of
  /// the body is not sent and the connection serves no other exchange. Otherwise the body continues to be sent while
  /// the caller receives the response.
  ///
  /// - Parameter deadline: The deadline of the whole exchange.
  public func send(
    _ request: RequestHead, body: RequestBody, timeouts: Timeouts = Timeouts(), deadline: Deadline = .never
  ) async throws(TransportError) -> Exchange {
    let number = try start(request, body: body, timeouts: timeouts, deadline: deadline)
    return try await head(of: number)
  }

  /// Limits the rate in each direction, in bytes a second, from now on. `nil` removes the limit of a direction.
  public func limit(sendingTo sending: Int? = nil, receivingTo receiving: Int? = nil) {
    limit(by: sending == nil && receiving == nil ? [] : [ByteRates(sending, receiving, core.loop.now)])
  }

  /// Limits the rate by buckets that other connections share, from now on.
  func limit(by rates: [ByteRates]) {
    core.limit(by: rates)
  }

  /// Lends the next piece of the body to `consume`, if it is there. See `Exchange.takeData`.
  @inline(__always)
  func takeData(
    for callback: (any LoopCallback)?, _ consume: (Span<UInt8>) -> Void
  ) throws(TransportError) -> Bool? {
    defer { writeLog() }
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
        if try subscribe(callback, to: channel, reading: reading, writing: writing) { return nil }
      }
    }
  }

  /// Moves the next piece of the body into the file, if it is there. See `Exchange.takeData`.
  func takeData(into file: OpenFile, for callback: (any LoopCallback)?) throws(TransportError) -> Int? {
    defer { writeLog() }
    var count = 0
    while true {
      switch try core.pollBody(into: file, count: &count) {
      case .ready: return count
      case .end: return 0
      case .wait(let channel, let reading, let writing):
        if try subscribe(callback, to: channel, reading: reading, writing: writing) { return nil }
      }
    }
  }

  private func suspendUntilTurn(of number: UInt64, deadline: Deadline) async throws(TransportError) {
    var isLate = false
    let timer =
      deadline == .never
      ? nil
      : core.loop.startTimer(deadline) { [self] in
        isLate = true
        abandon(number)
      }
    await TaskContinuation.suspend { core.keep($0, of: number) }
    if let timer { core.loop.stopTimer(timer) }
    if isLate { throw .timedOut(.queueing) }
    // An earlier exchange has closed the connection.
    guard core.exchangeNumber == number else { throw .connectionClosed }
  }

  /// The part of the current exchange that is in progress.
  var phase: TransportError.Phase { core.phase }

  /// Whether the connection is open and the exchange has not begun yet, because others are before it.
  func isBehind(_ number: UInt64) -> Bool { core.isBehind(number) }

  /// Marks the exchange as no longer used by its owner.
  func vacate(_ number: UInt64) { core.vacate(number) }

  /// Marks a queued exchange as unwanted, and resumes the task that waits for its turn.
  private func abandon(_ number: UInt64) { core.abandon(number)?.resume() }

  /// Cancels an exchange. Call it on the loop's thread.
  func cancel(_ number: UInt64) {
    if core.isBehind(number) { abandon(number) } else { core.channel?.cancelled(.exchange(number)) }
  }

  /// Suspends the sending of the rest of a request.
  func suspendSending(_ number: UInt64) { core.suspendSending(number) }

  /// Resumes the sending that `suspendSending` suspended.
  func resumeSending(_ number: UInt64) { if core.resumeSending(number) { core.channel?.becameReady() } }

  /// Starts the next queued exchange if the one before is over, and resumes its task. If the connection is closed,
  /// resumes all queued tasks.
  func wakeFollowers() {
    guard core.hasFollowers else { return }
    while let continuation = core.advance() { continuation.resume() }
    if core.shouldFlush { putOffSending() }
  }

  @inline(__always)
  private func wait(for channel: Channel, reading: Bool, writing: Bool) async throws(TransportError) {
    writeLog()
    do throws(Channel.Interruption) {
      try await channel.wait(reading: reading, writing: writing)
    } catch {
      throw core.interrupted(error)
    }
  }

  @inline(__always)
  private func writeLog() {
    if let observer { writeLog(to: observer) }
  }

  /// Replaces the observer, or removes it if `observer` is `nil`.
  ///
  /// - Parameter bodyBytesMax: The number of bytes of each body that the observer gets.
  func observe(by observer: Observer?, bodyBytesMax: Int = 0) {
    self.observer = observer
    core.isObserved = observer != nil
    core.copies.bytesMax = bodyBytesMax
  }

  var isObserved: Bool { observer != nil }

  /// Returns the metrics of an exchange, or `nil` if another exchange has begun since.
  func metrics(of number: UInt64, requested: Deadline? = nil) -> ExchangeMetrics? {
    guard core.exchangeNumber == number else { return nil }
    var metrics = core.record.metrics(requested: requested)
    metrics.isReused = number > 1
    metrics.opening = dialRecord?.finished(core.channel)
    return metrics
  }

  private func writeLog(to observer: Observer) {
    for (event, time) in core.takeEvents() { observer(event, time) }
  }

  /// Returns the connection as a tunnel after a 101, or after a 2xx to CONNECT.
  ///
  /// - Returns: The tunnel, or `nil` if there is none or it has been taken already.
  public func takeTunnel() -> Tunnel? { core.takeTunnel() }

  /// Returns the connection as a tunnel without a switch of protocols. Possible while the connection is idle, and once
  /// the current request has been sent and its response's head received.
  ///
  /// - Returns: The tunnel, or `nil` in another state.
  public func takeStream() -> Tunnel? { core.takeStream() }

  // MARK: - The response

  /// Whether part of the response, or its error, has not been received yet.
  var isReceiving: Bool { loopBound.state.isReceiving }
  var exchangeNumber: UInt64 { loopBound.state.exchangeNumber }

  var wasKeptUnused: Bool {
    get { loopBound.state.wasKeptUnused }
    set { core.wasKeptUnused = newValue }
  }
  var status: Int { loopBound.state.head.status }
  func canceller(of exchange: UInt64) -> Canceller? { loopBound.state.channel?.canceller(of: .exchange(exchange)) }
  var minorVersion: Int { loopBound.state.head.minorVersion }
  var fields: FieldTable { loopBound.state.head.fields }
  var head: ResponseHead { loopBound.state.head }
  var headBytes: [UInt8] { loopBound.state.headBytes }
  /// The time at which the latest response was complete.
  var exchangeEnded: Deadline { loopBound.state.record.ended }
  /// Whether the latest exchange is over and the connection can serve another exchange.
  var hasEndedWell: Bool { loopBound.state.machine.isIdle }
  /// Releases the memory of the latest response, if the connection is idle. This halves the memory of a connection that
  /// stays idle for long.
  public func forgetResponse() { loopBound.state.forgetResponse() }
  /// The channel, or `nil` once the connection is closed.
  var channel: Channel? { loopBound.state.channel }
  var isOpen: Bool { loopBound.state.channel != nil }
  /// Whether the current request's body waited for `100 Continue` and no byte of it has been sent.
  var holdsBody: Bool { loopBound.state.holdsBody }
  /// The number of bytes of the latest request's body that have been sent.
  var sentBodyBytes: Int { loopBound.state.record.requestBodyBytes }
  /// Whether any byte of the current response has arrived.
  var hasReceived: Bool { loopBound.state.record.hasFirstByte }

  /// Closes the connection if the server has closed it, or sent unsolicited bytes, while it is idle.
  func lookForEnd() {
    core.lookForEnd()
    writeLog()
  }
  var trailers: FieldTable { loopBound.state.trailers }
  var trailerBytes: [UInt8] { loopBound.state.trailerBytes }
}
