import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// The state of a connection, and each step of it that needs no waiting.
///
/// Theory of operation. A task asks for the next part of a response. The core parses what is there, receives
/// when nothing is, and answers `wait` when the kernel has nothing either; the task waits and asks again.
/// Bytes are therefore received only when somebody wants them: demand flows back to the server by itself.
/// Whether the connection lives on is for the `ExchangeMachine` to say.
///
/// It is a value inside `Connection`, held by `Confined`. While a step runs, nobody else's code is called: pieces
/// of a body and the observer's events are handed out after it.
struct ConnectionCore: ~Copyable {
  enum Step {
    /// What was asked for is there.
    case ready
    /// The response is complete.
    case end
    /// The kernel has nothing: wait for the channel.
    case wait(Channel, writing: Bool)
  }

  let loop: ClientLoop
  /// Nil once the connection is closed: with its last owner the descriptor goes.
  private(set) var channel: Channel?
  /// TLS, once its handshake has begun. Most of what is done per request needs to know only whether it is there.
  private var tls: TLSLayer?
  private var isSecured = false
  private var parser: ResponseParser
  private(set) var machine = ExchangeMachine()
  private var output = ByteQueue()
  private var input = Chunk()
  /// How much of `input` the parser is done with.
  private var consumed = 0
  /// How much to receive at once. It doubles while receives fill it.
  private var receiveBytes = ChunkPool.smallest
  private static let receiveBytesMax = 256 * 1024

  /// Counts the exchanges, so that an `Exchange` that is over can tell.
  private(set) var exchangeNumber: UInt64 = 0
  /// How far the present exchange has come.
  private var phase = TransportError.Phase.sending
  private var failure: TransportError?
  /// What the kernel or TLS had to say.
  private var lastFailure: TLSLayer.Failure?
  /// Whether anything of the response has come.
  private(set) var hasReceived = false
  /// Whether the request has not left yet.
  private var isSending = false

  // The present or latest response. The storage is used again for the next one.
  private(set) var head = ResponseHead()
  private(set) var headBytes: [UInt8] = []
  private(set) var trailers = FieldTable()
  private(set) var trailerBytes: [UInt8] = []

  /// Requests behind the present one, which have been queued for sending or have left.
  private var pipeline = Pipeline()
  /// What there is to send leaves at the end of the turn.
  private var putsOffSending = false

  /// Whether somebody wants to know what happens, and what has happened since they were last told.
  private let isObserved: Bool
  private var story: [(ConnectionEvent, Deadline)] = []

  init(over channel: Channel, limits: Limits, isObserved: Bool) {
    self.channel = channel
    self.isObserved = isObserved
    loop = channel.loop
    parser = ResponseParser(limits: limits)
  }

  // MARK: - Handshake

  enum HandshakeStep {
    case done(Handshake)
    case wait(Channel, reading: Bool, writing: Bool)
    case wantsTrust(Trust)
    case wantsIdentity(issuers: [String])
  }

  /// Puts TLS between the connection and its channel.
  mutating func secure(_ engine: consuming TLSEngine) {
    tls = TLSLayer(engine, on: loop)
    isSecured = true
  }

  mutating func pollHandshake() throws(TransportError) -> HandshakeStep {
    guard let channel else { throw .connectionClosed }
    do throws(TLSLayer.Failure) {
      switch try tls?.handshake(over: channel) {
      case .done(let handshake):
        note(.secured(handshake))
        return .done(handshake)
      case .wait(let reading, let writing): return .wait(channel, reading: reading, writing: writing)
      case .wantsTrust(let trust): return .wantsTrust(trust)
      case .wantsIdentity(let issuers): return .wantsIdentity(issuers: issuers)
      case nil: throw TLSLayer.Failure.tls(TLSError(.connectionLost))
      }
    } catch {
      switch error {
      case .tls(let error): throw .tls(error)
      case .kernel(let error): throw .connectionLost(.securing, error)
      }
    }
  }

  /// Whether the handshake has something left to send.
  var hasUnsentFlight: Bool { mutating get { tls?.sendingState.hasOutput ?? false } }

  /// What cannot leave now leaves with the first request. What goes wrong is noticed there.
  mutating func sendLastFlight() {
    if let channel, exchangeNumber == 0, output.isEmpty { _ = try? tls?.send(&output, to: channel) }
  }

  mutating func decide(_ decision: TrustDecision) { tls?.decide(decision) }

  mutating func takePinMismatches() -> [PinMismatch] { tls?.takePinMismatches() ?? [] }

  mutating func identify(_ identity: ClientIdentity?) throws(TransportError) {
    do throws(TLSError) {
      try tls?.identify(identity)
    } catch {
      throw .tls(error)
    }
  }

  // MARK: - Pipeline

  /// Whether a request would be the only one.
  var isIdle: Bool { machine.isIdle && pipeline.isEmpty && !pipeline.isHeld }

  mutating func hold() { pipeline.isHeld = true }
  mutating func letGo(_ number: UInt64) { if number == exchangeNumber { pipeline.isHeld = false } }

  /// Queues a request behind those that are not answered yet. It leaves by `flush`, and is begun by `advance`.
  mutating func enqueue(
    _ request: RequestHead, body: [UInt8], deadline: Deadline
  ) throws(TransportError) -> UInt64 {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    guard channel != nil else { throw .connectionClosed }
    guard request.allows(bodyBytes: body.count) else { throw .localMisuse(.bodyLengthWrong) }
    let number = exchangeNumber &+ 1 &+ UInt64(pipeline.count)
    let byteCount = request.bytes.count + body.count
    pipeline.append(
      Pipeline.Follower(number: number, byteCount: byteCount, context: request.context, deadline: deadline))
    output.append(request.bytes)
    if !body.isEmpty { output.append(body) }
    isSending = true
    putsOffSending = true
    return number
  }

  /// Sends what has been queued. False: something is left.
  mutating func flush() -> Bool {
    putsOffSending = false
    if isSending, let channel { flush(to: channel) }
    return output.isEmpty
  }

  /// Whether the exchange has begun, or never will.
  func isBehind(_ number: UInt64) -> Bool { channel != nil && number > exchangeNumber }

  mutating func keep(_ waiter: Waiter, of number: UInt64) { pipeline.keep(waiter, of: number) }

  /// The request is not wanted any more. Its answer will come all the same: then the connection ends.
  mutating func abandon(_ number: UInt64) -> Waiter? { pipeline.abandon(number) }

  /// Who waits for an exchange that has just begun, or will never be begun. To be called until there is nobody.
  mutating func advance() -> Waiter? {
    if channel != nil, pipeline.isHeld { return nil }
    // Nothing of the next one has left yet: what is there already does not answer it.
    if let channel, machine.isIdle, !pipeline.isEmpty, output.byteCount >= pipeline.byteCount {
      if input.count > 0 || channel.isReadable ? true : hasPlaintext() { lookForEnd(of: channel) }
    }
    while let channel, machine.isIdle, let follower = pipeline.takeFirst() {
      guard !follower.isAbandoned, machine.begin(), parser.begin(follower.context) else {
        release()
        continue
      }
      exchangeNumber = follower.number
      hold()
      prepare()
      channel.begin(exchange: exchangeNumber, deadline: follower.deadline)
      // What is left belongs to those behind it.
      if output.byteCount <= pipeline.byteCount {
        phase = .awaitingHead
        decide { $0.requestSent(into: &$1) }
      }
      return follower.waiter
    }
    while channel == nil, let follower = pipeline.takeFirst() {
      if let waiter = follower.waiter { return waiter }
    }
    return nil
  }

  /// Makes the books ready for an exchange.
  private mutating func prepare() {
    phase = .sending
    failure = nil
    lastFailure = nil
    hasReceived = false
    if !trailerBytes.isEmpty {
      trailers = FieldTable()
      trailerBytes.removeAll(keepingCapacity: true)
    }
  }

  // MARK: - Steps

  /// Queues a request and sends what the kernel takes of it.
  mutating func begin(
    _ request: RequestHead, body: [UInt8], deadline: Deadline
  ) throws(TransportError) -> UInt64 {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    guard let channel else { throw .connectionClosed }
    guard request.allows(bodyBytes: body.count) else { throw .localMisuse(.bodyLengthWrong) }
    // On a new connection an overloaded server may answer at once, before it has read anything. That answer is
    // good: there is no earlier exchange whose rest it could be.
    if exchangeNumber > 0, machine.isIdle, channel.isReadable ? true : hasPlaintext() {
      lookForEnd(of: channel)
      if !machine.isIdle { throw .connectionClosed }
    }
    guard machine.begin(), parser.begin(request.context) else { throw .localMisuse(.exchangeRunning) }
    exchangeNumber &+= 1
    prepare()
    isSending = true
    output.append(request.bytes)
    if !body.isEmpty { output.append(body) }
    channel.begin(exchange: exchangeNumber, deadline: deadline)
    if isObserved { note(.requestStarted(bytes: output.byteCount)) }
    flush(to: channel)
    return exchangeNumber
  }

  /// Goes on to the final response's head.
  mutating func pollHead() throws(TransportError) -> Step {
    while true {
      switch try poll() {
      case .event(.interim):
        keepHead()
        note(.interimReceived(status: head.status))
      case .event(.head):
        keepHead()
        phase = .receivingBody
        note(.headReceived(status: head.status, bytes: head.byteCount))
        if head.framing == .tunnel {
          decide { $0.tunnelBegan(into: &$1) }
        } else {
          let isPersistent = head.isPersistent
          decide { $0.headReceived(isPersistent: isPersistent, into: &$1) }
        }
        settle()
        return .ready
      case .event: continue
      case .wait(let channel, let writing): return .wait(channel, writing: writing)
      }
    }
  }

  /// Goes on to the next piece of the body, and swaps the chunk that holds it into `lent`. The caller has to
  /// bring it back by `restore`, whatever happens.
  mutating func pollBody(lending lent: inout Chunk, at range: inout Range<Int>) throws(TransportError) -> Step {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    while true {
      if let failure { throw failure }
      guard case .active = machine.state else { return .end }
      switch try poll() {
      case .event(.body(let piece)):
        note(.bodyReceived(bytes: piece.count))
        range = piece
        swap(&input, &lent)
        return .ready
      case .event(.end(let base)):
        endResponse(trailersAt: base)
        return .end
      case .event: continue
      case .wait(let channel, let writing): return .wait(channel, writing: writing)
      }
    }
  }

  var isReceiving: Bool {
    if case .active = machine.state { true } else { failure != nil }
  }

  /// Takes the lent chunk back.
  mutating func restore(_ lent: inout Chunk) {
    swap(&input, &lent)
    if channel == nil { releaseInput() } else { settle() }
  }

  /// Ends the exchange if nothing of the response is missing, without waiting to be asked: the connection is
  /// free for the next one at once.
  private mutating func settle() {
    if parser.finish() { endResponse(trailersAt: consumed) }
  }

  /// A wait ended early.
  mutating func interrupted(_ interruption: Channel.Interruption) -> TransportError {
    switch interruption {
    case .timedOut: fail { $0.timedOut(into: &$1) }
    case .cancelled: fail { $0.cancelled(into: &$1) }
    case .busy: .localMisuse(.exchangeRunning)
    }
  }

  /// The owner lets go of the connection.
  mutating func release() {
    decide { $0.released(into: &$1) }
  }

  /// The owner is gone, on whatever thread.
  mutating func abandon() {
    if loop.isCurrent { release() } else { channel?.abandon() }
  }

  /// After a switch of protocols: gives the channel away, with the bytes that have been received behind the head.
  mutating func takeTunnel() -> Tunnel? {
    guard loop.isCurrent, machine.state == .tunnel, let channel else { return nil }
    var bytes: [UInt8] = []
    input.lend(consumed..<input.count) { bytes.append(copying: $0) }
    releaseInput()
    self.channel = nil
    var layer: TLSLayer?
    swap(&layer, &tls)
    return Tunnel(channel: channel, tls: layer, received: bytes)
  }

  /// What has happened since the last call.
  mutating func takeStory() -> [(ConnectionEvent, Deadline)] {
    let events = story
    story.removeAll()
    return events
  }

  // MARK: - Progress

  private enum Progress {
    case event(ResponseParser.Event)
    case wait(Channel, writing: Bool)
  }

  private mutating func poll() throws(TransportError) -> Progress {
    if let failure { throw failure }
    guard let channel else { throw .connectionClosed }
    while true {
      if consumed > 0 {
        input.drop(consumed)
        consumed = 0
      }
      if input.count > 0 || parser.isComplete {
        do throws(ResponseError) {
          let event = try Self.parse(input, by: &parser, consumed: &consumed)
          guard case .needMore = event else { return .event(event) }
        } catch {
          throw fail { $0.responseFailed(error, into: &$1) }
        }
      }
      if isSending ? !putsOffSending : isSecured ? hasOutput() : false, channel.isWritable { flush(to: channel) }
      guard channel.mayReceive ? true : hasPlaintext() else { break }
      if try receive(from: channel) { return .event(.end(trailerBase: consumed)) }
    }
    if input.count == consumed { releaseInput() }
    return .wait(channel, writing: hasOutput())
  }

  /// Whether sending may come to something.
  private mutating func hasOutput() -> Bool {
    let hasRequest = !output.isEmpty && !putsOffSending
    guard isSecured, let state = tls?.sendingState else { return hasRequest }
    return state.hasOutput || hasRequest && !state.waitsForInput
  }

  /// Whether something may be read without a receive.
  private mutating func hasPlaintext() -> Bool {
    guard isSecured, let hasInput = tls?.hasInput else { return false }
    return hasInput
  }

  private static func parse(
    _ input: borrowing Chunk, by parser: inout ResponseParser, consumed: inout Int
  ) throws(ResponseError) -> ResponseParser.Event {
    try parser.next(in: input.bytes, consumed: &consumed)
  }

  /// Receives once. True: the stream has ended, and the response with it.
  private mutating func receive(from channel: Channel) throws(TransportError) -> Bool {
    makeRoom()
    let received: ClientSocket.Received
    do throws(TLSLayer.Failure) {
      received = try receiveOnce(from: channel)
    } catch {
      lastFailure = error
      throw fail { $0.connectionLost(into: &$1) }
    }
    switch received {
    case .bytes(_, let drained):
      hasReceived = true
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

  private mutating func receiveOnce(from channel: Channel) throws(TLSLayer.Failure) -> ClientSocket.Received {
    if isSecured { return try receiveSecured(from: channel) }
    do throws(Errno) {
      return try channel.receive(into: &input)
    } catch {
      throw .kernel(error)
    }
  }

  /// A stream that ends without `close_notify` may have been cut by anybody. Where the framing tells the end of the
  /// response, that does no harm; where the end of the stream is the end of the body, it is an error.
  private mutating func receiveSecured(from channel: Channel) throws(TLSLayer.Failure) -> ClientSocket.Received {
    do throws(TLSLayer.Failure) {
      // What was secured never goes on without TLS.
      guard let received = try tls?.receive(from: channel, into: &input) else {
        throw TLSLayer.Failure.kernel(.notConnected)
      }
      return received
    } catch {
      guard case .tls(let error) = error, error.problem == .truncated else { throw error }
      guard phase == .receivingBody, head.framing == .untilClose else { return .endOfStream }
      throw .tls(error)
    }
  }

  private mutating func send(to channel: Channel) throws(TLSLayer.Failure) -> Bool {
    if isSecured {
      guard let sentAll = try tls?.send(&output, to: channel) else { throw .kernel(.notConnected) }
      return sentAll
    }
    do throws(Errno) {
      return try channel.send(&output)
    } catch {
      throw .kernel(error)
    }
  }

  /// Hands the kernel what is queued of the request.
  private mutating func flush(to channel: Channel) {
    do throws(TLSLayer.Failure) {
      // Of TLS alone something may be left to send, when the request has left.
      guard try send(to: channel), isSending else { return }
      isSending = false
      if phase == .sending { phase = .awaitingHead }
      note(.requestSent)
      decide { $0.requestSent(into: &$1) }
    } catch {
      lastFailure = error
      decide { $0.sendingFailed(into: &$1) }
    }
  }

  private mutating func endResponse(trailersAt base: Int) {
    if parser.trailers.count > 0 {
      trailers = parser.trailers
      trailerBytes.removeAll(keepingCapacity: true)
      input.lend(base..<consumed) { trailerBytes.append(copying: $0) }
    }
    input.drop(consumed)
    consumed = 0
    decide { $0.responseEnded(into: &$1) }
    // They answer the next request if one is on its way.
    guard input.count > 0 else { return releaseInput() }
    if pipeline.isEmpty {
      decide { $0.unsolicitedBytes(into: &$1) }
      releaseInput()
    }
  }

  /// Makes sure that the connection is still good: a server may close an idle connection at any time, and
  /// whatever bytes it sends there answer nothing.
  private mutating func lookForEnd(of channel: Channel) {
    if input.count > 0 { return decide { $0.unsolicitedBytes(into: &$1) } }
    makeRoom()
    do throws(TLSLayer.Failure) {
      switch try receiveOnce(from: channel) {
      case .wouldBlock: break
      case .bytes: decide { $0.unsolicitedBytes(into: &$1) }
      case .endOfStream: decide { $0.peerClosed(into: &$1) }
      }
    } catch {
      decide { $0.connectionLost(into: &$1) }
    }
    releaseInput()
  }

  /// The same for an owner who is not about to send anything.
  mutating func lookForEnd() {
    if isIdle, let channel, channel.isReadable ? true : hasPlaintext() { lookForEnd(of: channel) }
  }

  // MARK: - Decisions

  private mutating func decide(_ fact: (inout ExchangeMachine, inout ExchangeMachine.Actions) -> Void) {
    var actions = ExchangeMachine.Actions()
    fact(&machine, &actions)
    if let action = actions.first { perform(action) }
    if let action = actions.second { perform(action) }
  }

  /// Reports a fact that ends the exchange, and returns the error that it ended with.
  private mutating func fail(
    _ fact: (inout ExchangeMachine, inout ExchangeMachine.Actions) -> Void
  ) -> TransportError {
    decide(fact)
    return failure ?? .connectionClosed
  }

  private mutating func perform(_ action: ExchangeMachine.Action) {
    switch action {
    case .complete: note(.completed)
    case .handOver: note(.handedOver)
    case .stopSending:
      isSending = false
      output.removeAll()
      tls?.stopSending()
    case .fail(let reason):
      let error = transportError(reason)
      failure = error
      note(.failed(error))
    case .close(let reason):
      output.removeAll()
      releaseInput()
      if let channel { tls?.close(over: channel, inOrder: reason != .exchangeFailed && reason != .requestUnfinished) }
      tls = nil
      channel?.close()
      channel = nil
      note(.closed(reason))
    }
  }

  private func transportError(_ failure: ExchangeMachine.Failure) -> TransportError {
    switch failure {
    case .response(let error): .badResponse(error)
    case .connectionLost:
      switch lastFailure {
      case .tls(let error)?: .tls(error)
      case .kernel(let error)?: .connectionLost(phase, error)
      case nil: .connectionLost(phase, nil)
      }
    case .internalInconsistency: .internalInconsistency
    case .timedOut: .timedOut(phase)
    case .cancelled: .cancelled
    }
  }

  private mutating func note(_ event: ConnectionEvent) {
    if isObserved { story.append((event, loop.kernel.now())) }
  }

  // MARK: - Storage

  /// Keeps the head's bytes: the chunk will be overwritten, and strings are made only when somebody asks.
  private mutating func keepHead() {
    swap(&head, &parser.head)
    headBytes.removeAll(keepingCapacity: true)
    input.lend((consumed - head.byteCount)..<consumed) { headBytes.append(copying: $0) }
  }

  /// Sees to it that there is room to receive into.
  private mutating func makeRoom() {
    if input.capacity == 0 {
      input = loop.takeChunk(atLeast: receiveBytes)
      return
    }
    guard input.spareCapacity == 0 || input.count == 0 && input.capacity < receiveBytes else { return }
    // What is left is an incomplete head or trailer section, or nothing. A larger chunk takes it over.
    input.compact()
    guard input.spareCapacity == 0 || input.count == 0 else { return }
    var larger = loop.takeChunk(atLeast: max(receiveBytes, input.count * 2))
    _ = larger.append(input.bytes)
    swap(&input, &larger)
    loop.recycle(larger)
  }

  /// Gives the chunk back: a connection that waits holds no memory.
  private mutating func releaseInput() {
    guard input.capacity > 0 else { return }
    consumed = 0
    var empty = Chunk()
    swap(&input, &empty)
    loop.recycle(empty)
  }
}
