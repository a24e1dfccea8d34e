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
    /// The response is complete, and so is the request.
    case end
    /// The kernel has nothing: wait for the channel.
    case wait(Channel, reading: Bool, writing: Bool)
  }

  let loop: ClientLoop
  /// Nil once the connection is closed: with its last owner the descriptor goes.
  var channel: Channel?
  /// What is between HTTP and the channel.
  var layers = Layers.plain
  /// Whose requests it takes: a proxy's, with the proxy's authorization, never go to an origin.
  var recipient = RequestHead.Recipient.origin
  var parser: ResponseParser
  var machine = ExchangeMachine()
  var output = ByteQueue()
  var input = Chunk()
  /// How much of `input` the parser is done with.
  var consumed = 0
  /// How much to receive at once. It doubles while receives fill it.
  var receiveBytes = ChunkPool.smallest
  static let receiveBytesMax = 256 * 1024

  /// Counts the exchanges, so that an `Exchange` that is over can tell.
  var exchangeNumber: UInt64 = 0
  /// Whether it was kept before its first request: the server may have closed it meanwhile.
  var wasKeptUnused = false
  /// How far the present exchange has come.
  var phase = TransportError.Phase.sending
  var failure: TransportError?
  /// What the kernel or TLS had to say.
  var lastFailure: TLSLayer.Failure?
  /// What is left to be sent.
  var sender = RequestSender.done

  // What most requests do without.

  var upload = Upload.none
  /// Whether the present request's body had to wait for `100 Continue`.
  var expects100Continue = false
  /// Whether the request's owner has suspended the sending of what is left.
  var isSuspended = false
  var bodyFailure: BodyFailure?
  var canSplice = true
  var pace = Pace()
  /// Whether the pace counts in this exchange.
  var isTimed = false

  /// What is known of the present or latest exchange in numbers.
  var record = ExchangeRecord()

  // The present or latest response. The storage is used again for the next one.
  var head = ResponseHead()
  var headBytes: [UInt8] = []
  var trailers = FieldTable()
  var trailerBytes: [UInt8] = []
  /// Whether that storage has been given back.
  var hasForgotten = false

  /// Requests behind the present one, which have been queued for sending or have left.
  var pipeline = Pipeline()
  /// Number of requests that have been queued since the last `flush`.
  var unsentCount = 0
  /// Whether sending waits for `flush`: pipelined requests leave together.
  var putsOffSending: Bool { unsentCount > 0 }
  /// With so many requests on their way the server has enough to do.
  static let requestsOnTheirWay = 8

  /// Whether somebody wants to know what happens, and what has happened since they were last told.
  var isObserved: Bool
  var story: [(ConnectionEvent, Deadline)] = []

  init(over channel: Channel, limits: Limits, isObserved: Bool) {
    self.channel = channel
    self.isObserved = isObserved
    loop = channel.loop
    parser = ResponseParser(limits: limits)
  }

  /// Goes on where a tunnel has begun.
  init(through tunnel: Tunnel, limits: Limits, isObserved: Bool) {
    self.init(over: tunnel.channel, limits: limits, isObserved: isObserved)
    layers = tunnel.handOver()
    let received = tunnel.received
    if !received.isEmpty {
      input = loop.takeChunk(atLeast: received.count)
      _ = input.append(received.span)
    }
  }

  // MARK: - Steps

  /// Gives back what the latest response is kept in: it is as large as all the rest of an idle connection.
  mutating func forgetResponse() {
    guard isIdle, !hasForgotten else { return }
    hasForgotten = true
    var storage = ResponseStorage()
    swap(&storage.head, &head)
    swap(&storage.next, &parser.head)
    swap(&storage.bytes, &headBytes)
    storage.head.forget()
    // The parser begins a response before it is lent this table, and does not look into it.
    storage.next.forget()
    storage.bytes.removeAll(keepingCapacity: true)
    trailers = FieldTable()
    trailerBytes = []
    loop.recycle(storage)
  }

  private mutating func takeResponseStorage() {
    hasForgotten = false
    var storage = loop.takeResponseStorage()
    swap(&storage.head, &head)
    swap(&storage.next, &parser.head)
    swap(&storage.bytes, &headBytes)
  }

  /// Makes the books ready for an exchange.
  mutating func prepare() {
    if hasForgotten { takeResponseStorage() }
    phase = .sending
    failure = nil
    record = ExchangeRecord()
    record.started = loop.now
    if !trailerBytes.isEmpty {
      trailers = FieldTable()
      trailerBytes.removeAll(keepingCapacity: true)
    }
  }

  /// Goes on to the final response's head.
  mutating func pollHead() throws(TransportError) -> Step {
    while true {
      switch try poll() {
      case .event(.interim):
        keepHead()
        note(.interimReceived(status: head.status, bytes: headBytes, fields: head.fields))
        if head.status == 100 { endExpectation() }
      case .event(.head):
        keepHead()
        phase = .receivingBody
        note(.headReceived(status: head.status, bytes: head.byteCount))
        if head.framing == .tunnel {
          guard sender == .done else {
            bodyFailed(.notWaitedFor)
            throw failure ?? .internalInconsistency
          }
          decide { $0.tunnelBegan(into: &$1) }
        } else {
          let (status, isPersistent, holdsBody) = (head.status, head.isPersistent, sender == .awaiting100Continue)
          decide { $0.headReceived(status: status, isPersistent: isPersistent, holdsBody: holdsBody, into: &$1) }
        }
        settle()
        return .ready
      case .event: continue
      case .wait(let channel, let reading, let writing):
        return .wait(channel, reading: reading, writing: writing)
      }
    }
  }

  /// Goes on to the next piece of the body, and swaps the chunk that holds it into `lent`. The caller has to
  /// bring it back by `restore`, whatever happens.
  mutating func pollBody(lending lent: inout Chunk, at range: inout Range<Int>) throws(TransportError) -> Step {
    let step = try pollBody(at: &range)
    if case .ready = step { swap(&input, &lent) }
    return step
  }

  /// Goes on to the next piece of the body, which is then that range of `input`.
  @inline(__always)
  mutating func pollBody(at range: inout Range<Int>) throws(TransportError) -> Step {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    if isTimed { pace.asked(at: loop.now) }
    while true {
      if let failure { throw failure }
      guard case .active = machine.state else { return .end }
      if machine.isSendingOnly { return try pollSending() }
      switch try poll() {
      case .event(.body(let piece)):
        note(.bodyReceived(bytes: piece.count))
        if isTimed { pace.answered() }
        range = piece
        return .ready
      case .event(.end(let base)):
        endResponse(trailersAt: base)
      case .event: continue
      case .wait(let channel, let reading, let writing):
        return .wait(channel, reading: reading, writing: writing)
      }
    }
  }

  /// Goes on with a request whose response is complete. Whatever the server says now ends it.
  private mutating func pollSending() throws(TransportError) -> Step {
    guard let channel else { throw .connectionClosed }
    if channel.isWritable { flush(to: channel) }
    if machine.isSendingOnly, channel.mayReceive ? true : layers.hasInput { lookForEnd(of: channel) }
    if let failure { throw failure }
    guard machine.isSendingOnly else { return .end }
    let writing = hasOutput()
    return .wait(channel, reading: isTimed ? prepareWait(for: channel, writing: writing) : true, writing: writing)
  }

  /// Whether nothing but a byte from the server can make a difference.
  mutating func waitsForInput() -> Bool {
    !isTimed && sender == .done && layers.isPlain && input.count == 0 && !parser.isComplete() && failure == nil
      && channel?.mayReceive == false
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
  mutating func settle() {
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
    if loop.isCurrent { return release() }
    channel?.abandon()
    if case .produced(let writer) = upload { writer.abandon() }
  }

  /// After a switch of protocols: gives the channel away, with the bytes that have been received behind the head.
  mutating func takeTunnel() -> Tunnel? {
    guard loop.isCurrent, machine.state == .tunnel, let channel else { return nil }
    var bytes: [UInt8] = []
    input.lend(consumed..<input.count) { bytes.append(copying: $0) }
    releaseInput()
    self.channel = nil
    return Tunnel(channel: channel, layers: layers.take(), received: bytes)
  }

  /// What has happened since the last call.
  mutating func takeStory() -> [(ConnectionEvent, Deadline)] {
    let events = story
    story.removeAll()
    return events
  }

  // MARK: - Progress

  enum Progress {
    case event(ResponseParser.Event)
    case wait(Channel, reading: Bool, writing: Bool)
  }

  mutating func poll() throws(TransportError) -> Progress {
    if let failure { throw failure }
    guard let channel else { throw .connectionClosed }
    if isTimed { checkExpectation() }
    while true {
      if consumed > 0 { dropConsumed() }
      if input.count > 0 || parser.isComplete() {
        do throws(ResponseError) {
          let event = try Self.parse(input, by: &parser, consumed: &consumed)
          guard case .needMore = event else { return .event(event) }
        } catch {
          throw fail { $0.responseFailed(error, into: &$1) }
        }
      }
      if sender != .done ? !putsOffSending : layers.isPlain ? false : hasOutput(), channel.isWritable {
        flush(to: channel)
        if let failure { throw failure }
      }
      guard channel.mayReceive ? true : layers.hasInput else { break }
      if isTimed, pace.receivingPause(at: loop.now) != nil { break }
      if try receive(from: channel) { return .event(.end(trailerBase: consumed)) }
    }
    if input.count == consumed { releaseInput() }
    let writing = hasOutput()
    return .wait(channel, reading: isTimed ? prepareWait(for: channel, writing: writing) : true, writing: writing)
  }
}

/// What a response's head is kept in, and what the next one is parsed into.
struct ResponseStorage {
  var head = ResponseHead()
  var next = ResponseHead()
  var bytes: [UInt8] = []
}
