import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// Runs a whole connection in memory. The input decides the actions of the peer, the kernel and the caller.
///
/// The rules:
/// - The loop comes to rest after a bounded number of ticks, whatever happens.
/// - Every exchange ends exactly once, and a connection is closed at most once.
/// - A response that the peer has sent correctly is delivered as a prefix of what it sent, to its own exchange.
/// - The peer receives a prefix of what the caller asked to send, wherever the body comes from.
/// - Bytes behind a complete response end the connection: no further exchange begins on it.
/// - The caller does not sleep while there is something to receive.
/// - The number of bytes that are received and not handed on stays below a bound.
/// - After the caller has finished, no socket and no slot is left; the deadline ends every wait that would last for
///   ever.
///
/// - Returns: The broken rules; empty if there are none.
package func runConnectionSession(_ bytes: [UInt8]) -> [String] {
  guard let world = try? ScriptedWorld() else { return ["the world could not be made"] }
  let session = Session(world, ScriptBytes(bytes))
  return session.run()
}

/// Reads the input byte by byte; after the end of the input it reads zeros.
struct ScriptBytes {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  var isAtEnd: Bool { position >= bytes.count }

  mutating func next() -> Int {
    guard position < bytes.count else { return 0 }
    position += 1
    return Int(bytes[position - 1])
  }

  mutating func next(below limit: Int) -> Int { next() % limit }

  mutating func chance(_ part: Int, of whole: Int) -> Bool { next() % whole >= whole - part }

  mutating func take(_ count: Int) -> [UInt8] {
    let end = min(position + count, bytes.count)
    defer { position = end }
    return Array(bytes[min(position, end)..<end])
  }
}

private final class Session: @unchecked Sendable {
  private let world: ScriptedWorld
  private let kernel: ScriptedKernel
  private let peer: ScriptedPeer
  private var script: ScriptBytes
  private var complaints: [String] = []

  private var exchangesBegun = 0
  private var exchangesEnded = 0
  private var closes = 0
  /// Whether the client has received only what a correct server would have sent.
  private var isFaithful = true
  /// Whether the peer has closed behind an answer. That end may come in the middle of the next answer.
  private var hasClosed = false
  /// Whether bytes stand behind the latest answer, in the same piece as its end.
  private var hasStrayBytes = false
  private var isWaiting: () -> Bool = { false }
  /// All bytes that the peer may have received so far.
  private var asked: [UInt8] = []
  private static let exchangesMax = 5
  private static let unreadMax = 1 << 20

  init(_ world: ScriptedWorld, _ script: ScriptBytes) {
    self.world = world
    self.script = script
    kernel = world.kernel
    peer = kernel.peer()
  }

  func run() -> [String] {
    prepareKernel()
    let running = world.start { [self] in try await callerRuns() }
    isWaiting = { !running.isOver }
    arrangeCancellation(of: running)
    rest()
    // The peer continues where the caller waits.
    for _ in 0..<8 where !running.isOver {
      disturb()
      rest()
    }
    if script.chance(1, of: 2), !running.isOver {
      peer.close()
      rest()
    }
    if script.chance(1, of: 3) { running.cancel() }
    rest()
    // Every remaining wait has a deadline.
    world.kernel.advance(by: .seconds(1000))
    rest()
    kernel.beforeCalls(nil)
    check(running.isOver, "the caller's task is not over after its deadline")
    if let error = running.error, !(error is TransportError) { complain("an error of another kind: \(error)") }
    check(exchangesBegun == exchangesEnded, "\(exchangesBegun) exchanges began, \(exchangesEnded) ended")
    check(closes <= 1, "\(closes) closes of one connection")
    check(asked.starts(with: peer.received), "what was sent is not what was asked for")
    complaints += world.leftovers
    return complaints
  }

  private func rest() {
    check(world.settle(), "the loop does not come to rest")
    // The caller waits for nothing but the connection.
    check(!(isWaiting() && peer.isReadable), "the caller sleeps, and there is something to receive")
  }

  private func check(_ isFine: Bool, _ message: @autoclosure () -> String) {
    if !isFine { complain(message()) }
  }

  private func complain(_ message: String) { complaints.append(message) }

  // MARK: - The kernel

  private func prepareKernel() {
    switch script.next(below: 8) {
    case 0: kernel.willConnect(.atOnce)
    case 1: kernel.willConnect(.interrupted)
    case 2: kernel.willConnect(.later(.connectionRefused))
    case 3: kernel.willConnect(.never)
    default: break
    }
    if script.chance(1, of: 16) { kernel.willFailToOpenSocket(.tooManyDescriptors) }
    if script.chance(1, of: 16) { kernel.willFailToWatch(.noMemory) }
    if script.chance(1, of: 3) { peer.setSendBytesMax(1 + script.next()) }
    if script.chance(1, of: 4) { peer.setSendRoom(script.next()) }
    if script.chance(1, of: 3) { peer.willFailToSend(sendError()) }
    if script.chance(1, of: 3) { peer.willFailToReceive(receiveError(), receiveError()) }
  }

  private func sendError() -> Errno {
    [.interrupted, .wouldBlock, .brokenPipe, .connectionReset][script.next(below: 4)]
  }

  private func receiveError() -> Errno {
    let errors: [Errno] = [.interrupted, .wouldBlock, .interrupted, .wouldBlock, .connectionReset, .timedOut]
    return errors[script.next(below: errors.count)]
  }

  /// Makes something happen while the loop rests.
  private func disturb() {
    switch script.next(below: 8) {
    case 0: peer.setSendRoom(1 + script.next())
    case 1: peer.setSendRoom(.max)
    case 2: peer.arrive([.nothing])
    case 3:
      let token = peer.token
      kernel.report(
        PollerEvent(
          slot: token?.slot ?? UInt32(script.next(below: 4)),
          registration: UInt32(script.next(below: 3)), isReadable: true, isWritable: true, isHungUp: true))
    case 4: kernel.willFailToWait(.interrupted)
    case 5: peer.willFailToReceive(receiveError())
    case 6: world.kernel.advance(by: .seconds(script.next()))
    default:
      isFaithful = false
      peer.send(script.take(1 + script.next(below: 32)))
    }
  }

  private func arrangeCancellation(of running: Running<Void>) {
    guard script.chance(1, of: 3) else { return }
    let number = script.next()
    kernel.beforeCalls { call in if call == number { running.cancel() } }
  }

  // MARK: - The caller

  private func callerRuns() async throws {
    let deadline = world.loop.now.advanced(by: .seconds(900))
    let connection = try await Connection.open(
      to: [.loopback(port: 80)], on: world.loop, deadline: deadline
    ) { [self] event, _ in note(event) }
    try await connection.cancelledWithTask { [self] in
      for number in 0..<Self.exchangesMax where !script.isAtEnd || number == 0 {
        guard try await exchange(number, over: connection, deadline) else { break }
      }
    }
    connection.close()
  }

  private func note(_ event: ConnectionEvent) {
    switch event {
    case .requestStarted: exchangesBegun += 1
    case .completed, .failed, .handedOver: exchangesEnded += 1
    case .closed: closes += 1
    default: break
    }
    if peer.received.count > 1 << 20 { complain("more was sent than asked") }
  }

  /// Performs one exchange.
  ///
  /// - Returns: Whether the caller wants another one.
  private func exchange(_ number: Int, over connection: Connection, _ deadline: Deadline) async throws -> Bool {
    let isHead = script.chance(1, of: 5)
    let body = script.chance(1, of: 3) ? Array(repeating: UInt8(number), count: script.next() * 16) : []
    let isUpgrade = script.chance(1, of: 16)
    let method = isHead ? "HEAD" : body.isEmpty ? "GET" : "POST"
    let until = script.chance(1, of: 6) ? world.loop.now.advanced(by: .seconds(script.next())) : deadline
    // The answer arrives at the next wait, after the request has been sent.
    let hadStrayBytes = hasStrayBytes
    hasStrayBytes = false
    if hasClosed { isFaithful = false }
    let sent = answer(number, isHead: isHead)
    let wasFaithful = isFaithful
    let mustNotBegin = hadStrayBytes
    let exchange = try await send(body, by: method, isUpgrade, over: connection, until)
    check(!mustNotBegin, "exchange \(number) began behind stray bytes")
    if script.chance(1, of: 10) { return false }
    if script.chance(1, of: 10) { exchange.canceller?.cancel() }
    let closesInside = script.chance(1, of: 10)
    let stopsAfter = script.chance(1, of: 8) ? script.next(below: 4) : Int.max
    if script.chance(1, of: 5) {
      try await receiveIntoFile(exchange, wasFaithful ? sent : nil, isHead: isHead)
      return true
    }
    var delivered: [UInt8] = []
    var pieces = 0
    while pieces < stopsAfter {
      let isMore = try await exchange.receiveData { piece in
        for index in piece.indices { delivered.append(piece[index]) }
        if closesInside { connection.close() }
      }
      if wasFaithful, isFaithful, let sent {
        check(sent.starts(with: delivered), "exchange \(number): what was delivered is not what was sent")
        if !isMore, exchange.status == 200 {
          check(delivered == sent || isHead, "exchange \(number): complete, but bytes are missing")
        }
      }
      let unread = peer.unfetched
      check(unread < Self.unreadMax, "\(unread) bytes wait")
      guard isMore else { break }
      pieces += 1
    }
    return stopsAfter == .max
  }

  /// Sends the body from the source that the input selects.
  private func send(
    _ body: [UInt8], by method: String, _ isUpgrade: Bool, over connection: Connection, _ until: Deadline
  ) async throws -> Exchange {
    let kind = script.next(below: 8)
    guard !body.isEmpty, kind > 3 else {
      let head = request(method, body: body.isEmpty ? nil : body.count, upgrade: isUpgrade)
      asked += head.bytes + body
      return try await connection.send(head, body: body, deadline: until)
    }
    var writer = try RequestWriter(method: method, target: "/", host: "a.example")
    if script.chance(1, of: 3) { try writer.field("Expect", "100-continue") }
    if script.chance(1, of: 4) { connection.limit(sendingTo: 1 + script.next() * 8) }
    var timeouts = Timeouts()
    if script.chance(1, of: 4) { timeouts.send = .seconds(script.next()) }
    if script.chance(1, of: 4) { timeouts.idle = .seconds(script.next()) }
    let head = writer.finish(body: kind == 4 ? .chunked : .length(UInt(body.count)))
    asked += head.bytes
    asked += kind == 4 ? ChunkedEncoder.start(ofChunk: body.count) + body + Array("\r\n0\r\n\r\n".utf8) : body
    let source: RequestBody
    switch kind {
    case 4:
      source = .produced(length: nil) { writer in
        try await writer.write(body)
        try await writer.write([])
      }
    case 5:
      let pieceBytes = 1 + script.next()
      // Sometimes one byte too few or too many.
      let last = body.count + (script.chance(1, of: 4) ? script.next(below: 3) - 1 : 0)
      source = .produced(length: body.count) { writer in
        for start in stride(from: 0, to: last, by: pieceBytes) {
          try await writer.write(Array(repeating: body[0], count: min(pieceBytes, last - start)))
        }
      }
    default:
      let file = kernel.makeFile(body)
      if kind == 6 { file.refuseSplices() }
      if script.chance(1, of: 4) {
        file.willBecome(script.chance(1, of: 2) ? Array(body.dropLast()) : body + body, after: script.next(below: 6))
      }
      source = .file(file.openFile, offset: 0, length: body.count)
    }
    return try await connection.send(head, body: source, timeouts: timeouts, deadline: until)
  }

  private func receiveIntoFile(_ exchange: Exchange, _ sent: [UInt8]?, isHead: Bool) async throws {
    let file = kernel.makeFile()
    if script.chance(1, of: 4) { file.refuseSplices() }
    if script.chance(1, of: 4) { file.setBytesMax(script.next()) }
    if script.chance(1, of: 4) { kernel.setPipeBytesMax(1 + script.next()) }
    let result: Result<Int, any Error>
    do {
      result = .success(try await exchange.receiveBody(into: file.openFile))
    } catch {
      result = .failure(error)
    }
    if let sent, isFaithful {
      check(sent.starts(with: file.contents), "what is in the file is not what was sent")
      if case .success(let count) = result, exchange.status == 200 {
        check(count == sent.count && file.contents == sent || isHead, "the file is complete, but bytes are missing")
      }
    }
    _ = try result.get()
  }

  // MARK: - The peer

  /// Queues an answer.
  ///
  /// - Returns: The answer's body, or `nil` if the answer may be malformed.
  private func answer(_ number: Int, isHead: Bool) -> [UInt8]? {
    let kind = script.next(below: 8)
    guard kind < 7 else {
      // Sends raw bytes of the input.
      isFaithful = false
      peer.arrive(cut(script.take(script.next())))
      if script.chance(1, of: 2) { peer.close() }
      return nil
    }
    let body = (0..<script.next(below: 100) * (1 + script.next(below: 8))).map {
      UInt8(truncatingIfNeeded: $0 * 7 + number * 31)
    }
    var bytes: [UInt8] = []
    if script.chance(1, of: 4) { bytes += "HTTP/1.1 100 Continue\r\n\r\n".utf8 }
    if script.chance(1, of: 4) { bytes += "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".utf8 }
    var mustClose = false
    bytes += "HTTP/1.1 200 OK\r\n".utf8
    switch kind {
    case 0...2:
      bytes += "Content-Length: \(body.count)\r\n\r\n".utf8
      if !isHead { bytes += body }
    case 3...5:
      bytes += "Transfer-Encoding: chunked\r\n\r\n".utf8
      if !isHead { bytes += chunked(body) }
    default:
      bytes += "\r\n".utf8
      if !isHead { bytes += body }
      mustClose = true
    }
    let isCut = script.chance(1, of: 8)
    if isCut { bytes.removeLast(min(bytes.count, script.next())) }
    // Bytes behind the answer: its own exchange succeeds, and no further exchange may begin.
    let stray = script.chance(1, of: 10) ? script.take(1 + script.next(below: 40)) : []
    var arrivals = cut(bytes)
    // Stray bytes can be told from the next answer only if they come with this answer's end.
    if !stray.isEmpty, case .bytes(let last)? = arrivals.last {
      arrivals[arrivals.count - 1] = .bytes(last + stray)
      hasStrayBytes = !isCut && !mustClose
    }
    if mustClose, script.chance(1, of: 2), case .bytes(let last)? = arrivals.last {
      arrivals[arrivals.count - 1] = .bytesThenEnd(last)
    }
    peer.arrive(arrivals)
    if mustClose {
      // The end of such a body cannot be told from a cut.
      if isCut || !stray.isEmpty { isFaithful = false }
      peer.close()
      hasClosed = true
    } else if isCut {
      script.chance(1, of: 2) ? peer.close() : peer.reset()
    }
    if !stray.isEmpty { isFaithful = false }
    return isHead ? [] : body
  }

  private func chunked(_ body: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    var start = 0
    while start < body.count {
      let count = min(1 + script.next(), body.count - start)
      bytes += ChunkedEncoder.start(ofChunk: count) + body[start..<start + count] + ChunkedEncoder.endOfChunk
      start += count
    }
    return bytes + Array("0\r\n".utf8) + (script.chance(1, of: 3) ? Array("X: y\r\n\r\n".utf8) : Array("\r\n".utf8))
  }

  private func cut(_ bytes: [UInt8]) -> [ScriptedKernel.Arrival] {
    guard !bytes.isEmpty else { return [] }
    var arrivals: [ScriptedKernel.Arrival] = []
    var start = 0
    var cuts = script.next(below: 6)
    while start < bytes.count {
      let count = cuts == 0 ? bytes.count - start : min(1 + script.next(), bytes.count - start)
      cuts = max(cuts - 1, 0)
      arrivals.append(.bytes(Array(bytes[start..<start + count])))
      start += count
      if script.chance(1, of: 8) { arrivals.append(.nothing) }
    }
    return arrivals
  }
}
