import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// The state of a connection, and its steps that need no waiting.
///
/// Theory of operation. A caller polls for the next part of a response. The core parses what it has received, receives
/// more when there is nothing to parse, and returns `wait` when the kernel has nothing either. The caller waits for the
/// channel and polls again. Bytes are therefore received only on demand, and TCP's flow control passes the demand on to
/// the server. `ExchangeMachine` decides whether the connection stays open.
///
/// The core is a value inside `Connection`, held by `LoopBound`. No user code runs during a step: the observer's
/// events, and the pieces of a body, are handed out after the step.
struct ConnectionCore: ~Copyable {
  enum Step {
    /// The requested part is there.
    case ready
    /// The response is complete, and so is the request.
    case end
    /// The kernel has nothing: the caller has to wait for the channel.
    case wait(Channel, reading: Bool, writing: Bool)
  }

  let loop: ClientLoop
  /// The channel, or `nil` once the connection is closed. The descriptor is closed with the last reference to the
  /// channel.
  var channel: Channel?
  /// The layers between HTTP and the channel.
  var layers = Layers.plain
  /// The kind of peer. A request made for a proxy, which may carry the proxy's authorization, is never sent to an
  /// origin.
  var recipient = RequestHead.Recipient.origin
  var parser: ResponseParser
  var machine = ExchangeMachine()
  var output = ByteQueue()
  var input = Chunk()
  /// The number of bytes of `input` that the parser has consumed.
  var consumed = 0
  /// The number of bytes to receive at once. Doubled each time a receive fills the buffer.
  var receiveBytes = ChunkPool.smallest
  static let receiveBytesMax = 256 * 1024

  /// The number of the latest exchange, by which an `Exchange` recognises that it is over.
  var exchangeNumber: UInt64 = 0
  /// Whether the connection was idle before its first request. The server may have closed it in that time.
  var wasKeptUnused = false
  /// The part of the current exchange that is in progress.
  var phase = TransportError.Phase.sending
  var failure: TransportError?
  /// The latest error of the kernel or of TLS.
  var lastFailure: TLSLayer.Failure?
  /// The state of sending.
  var sender = RequestSender.done

  // State that most requests do not use.

  var upload = Upload.none
  /// Whether the current request's body had to wait for `100 Continue`.
  var expects100Continue = false
  /// Whether the request's owner has suspended the sending of the rest.
  var isSuspended = false
  var bodyFailure: BodyFailure?
  var canSplice = true
  var pace = Pace()
  /// Whether time limits or rates apply to the current exchange, so that `pace` is consulted.
  var isTimed = false

  /// The times and byte counts of the current or latest exchange.
  var record = ExchangeRecord()

  // The current or latest response. Its storage is reused for the next one.
  var head = ResponseHead()
  var headBytes: [UInt8] = []
  var trailers = FieldTable()
  var trailerBytes: [UInt8] = []
  /// Whether `forgetResponse` has given that storage back to the loop.
  var hasForgotten = false

  /// The requests after the current one, which are queued for sending or have been sent.
  var pipeline = Pipeline()
  /// Whether the kernel has refused requests behind one that had been sent. The connection sends nothing more, and is
  /// closed when a request that has not left would be the next one.
  var hasRefusedQueue = false
  /// The number of requests that have been queued since the last `flush`.
  var unsentCount = 0
  /// Whether sending waits for `flush`, so that pipelined requests leave together.
  var putsOffSending: Bool { unsentCount > 0 }
  /// The number of unanswered requests from which further ones wait in the queue, because the server is busy.
  static let requestsOnTheirWay = 8

  /// Whether there is an observer.
  var isObserved: Bool
  /// The copies of bodies for the observer.
  var copies = BodyCopies()
  /// The events since the last call of `takeEvents`.
  var events: [(ConnectionEvent, Deadline)] = []

  init(over channel: Channel, limits: Limits, isObserved: Bool) {
    self.channel = channel
    self.isObserved = isObserved
    loop = channel.loop
    parser = ResponseParser(limits: limits)
  }

  /// Creates the core of a connection through a tunnel.
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

  /// Gives the latest response's storage back to the loop. Performance: the storage is as large as the rest of an idle
  /// connection.
  mutating func forgetResponse() {
    guard isIdle, !hasForgotten else { return }
    hasForgotten = true
    var storage = ResponseStorage()
    swap(&storage.head, &head)
    swap(&storage.next, &parser.head)
    swap(&storage.bytes, &headBytes)
    storage.head.forget()
    // The parser begins a response before it receives this table, and never reads the old contents.
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

  /// Resets the records for a new exchange.
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

  /// Advances to the final response's head.
  mutating func pollHead() throws(TransportError) -> Step {
    while true {
      switch try poll() {
      case .event(.interim):
        keepHead()
        note(.interimReceived(status: head.status, bytes: headBytes, fields: head.fields))
        parser.requestContentSent(bytes: record.requestBodyBytes)
        if head.status == 100 { endExpectation() }
      case .event(.head):
        keepHead()
        phase = .receivingBody
        if isObserved { note(.headReceived(status: head.status, bytes: headBytes)) }
        if head.framing == .tunnel {
          guard sender == .done else {
            bodyFailed(.notWaitedFor)
            throw failure ?? .internalInconsistency
          }
          decide { $0.tunnelStarted(into: &$1) }
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

  /// Advances to the next piece of the body, and swaps the chunk that holds the piece into `lent`. If this returns
  /// `ready`, the caller must return the chunk by `restore`, even after an error.
  mutating func pollBody(lending lent: inout Chunk, at range: inout Range<Int>) throws(TransportError) -> Step {
    let step = try pollBody(at: &range)
    if case .ready = step { swap(&input, &lent) }
    return step
  }

  /// Advances to the next piece of the body. If this returns `ready`, the piece is `range` of `input`.
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
        if isObserved { noteBody(piece) }
        if isTimed { pace.answered(at: loop.now) }
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

  /// Advances the sending of a request whose response is complete. Anything that the server sends now ends the
  /// exchange.
  private mutating func pollSending() throws(TransportError) -> Step {
    guard let channel else { throw .connectionClosed }
    if channel.isWritable { flush(to: channel) }
    if machine.isSendingOnly, channel.mayReceive ? true : layers.hasInput { lookForEnd(of: channel) }
    if let failure { throw failure }
    guard machine.isSendingOnly else { return .end }
    let writing = hasOutput()
    return .wait(channel, reading: isTimed ? prepareWait(for: channel, writing: writing) : true, writing: writing)
  }

  /// Whether the only event that can change something is a byte from the server.
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

  /// Ends the exchange as soon as the response is complete, so that the connection is free for the next one without
  /// another poll.
  mutating func settle() {
    if parser.finish() { endResponse(trailersAt: consumed) }
  }

  /// Ends the exchange after an interrupted wait, and returns the error to throw.
  mutating func interrupted(_ interruption: Channel.Interruption) -> TransportError {
    switch interruption {
    case .timedOut: fail { $0.timedOut(into: &$1) }
    case .cancelled: fail { $0.cancelled(into: &$1) }
    case .busy: .localMisuse(.exchangeRunning)
    }
  }

  /// Ends the use of the connection by its owner: fails a running exchange, and closes the connection.
  mutating func release() {
    decide { $0.released(into: &$1) }
  }

  /// Ends the use of the connection by its owner, on any thread.
  mutating func abandon() {
    if loop.isCurrent { return release() }
    channel?.abandon()
    if case .produced(let writer) = upload { writer.abandon() }
  }

  /// Gives away the channel after a switch of protocols, with the bytes that have been received behind the head.
  ///
  /// - Returns: The tunnel, or `nil` if the connection is no tunnel.
  mutating func takeTunnel() -> Tunnel? {
    guard loop.isCurrent, machine.state == .tunnel, let channel else { return nil }
    var bytes: [UInt8] = []
    input.lend(consumed..<input.count) { bytes.append(copying: $0) }
    releaseInput()
    self.channel = nil
    return Tunnel(channel: channel, layers: layers.take(), received: bytes)
  }

  /// Gives away the channel without a switch of protocols, with the bytes that have been received and not consumed. The
  /// connection must be idle, or the current request sent and its response's head received.
  ///
  /// - Returns: The tunnel, or `nil` in another state.
  mutating func takeStream() -> Tunnel? {
    guard loop.isCurrent, channel != nil, pipeline.isEmpty, output.isEmpty, machine.handOver() else { return nil }
    if isTimed {
      channel?.setWakeUpTime(.never)
      isTimed = false
    }
    return takeTunnel()
  }

  /// Returns the events since the last call.
  mutating func takeEvents() -> [(ConnectionEvent, Deadline)] {
    let taken = events
    events.removeAll()
    return taken
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

/// The storage of a response's head, and of the head that is parsed next.
struct ResponseStorage {
  var head = ResponseHead()
  var next = ResponseHead()
  var bytes: [UInt8] = []
}
