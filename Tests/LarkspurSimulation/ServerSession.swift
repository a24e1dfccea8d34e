/// A server that a world's clients can connect to.
final class Host {
  let faults: FaultProfile
  unowned let oracle: Oracle
  unowned let kernel: SimulatedKernel

  init(_ faults: FaultProfile, _ oracle: Oracle, on kernel: SimulatedKernel) {
    self.faults = faults
    self.oracle = oracle
    self.kernel = kernel
  }
}

/// The server's side of one connection: reads requests and answers them in order, with faults.
///
/// A queue of steps holds what the session will do. Answers append their steps; each step begins when the one before it
/// is done.
///
/// ```
///  open --endReceived, ended, close, reset--> over
///    \--end (its own side only)--> open, but sends nothing more
/// ```
final class ServerSession {
  private enum Step {
    case began(answer: Int)
    case send(ArraySlice<UInt8>)
    case wait(UInt64)
    case end
    case close
    case reset
  }

  private let host: Host
  private unowned let link: SimulatedLink
  private var random: SeededRandom
  private(set) var isOpen = true

  private var inbox: [UInt8] = []
  private var unread = 0
  private var isDeaf = false
  /// The request that is being read, and its answer.
  private var request: (number: Int, answer: ServerAnswer)?
  private var takesRequests = true

  private var steps: [Step] = []
  private var isWaiting = false
  private var bytesSent = 0
  /// Counts actions, so that a timer can tell whether the connection has been idle.
  private var progress = 0

  init(_ host: Host, over link: SimulatedLink, random: SeededRandom) {
    self.host = host
    self.link = link
    self.random = random
  }

  func began() {
    guard random.chance(host.faults.idleFaults, of: 300) else { return watchRest() }
    // An overloaded server responds before there is a request.
    answerUnasked(status: 503)
    steps.append(random.pick([.close, .reset, .end]))
    go()
  }

  // MARK: - From the link

  func received(_ bytes: [UInt8]) {
    inbox += bytes
    unread += bytes.count
    progress += 1
    if !isDeaf { read() }
  }

  func endReceived() { ended() }

  /// Ends the session: the connection is gone.
  func ended() {
    isOpen = false
    steps = []
    inbox = []
  }

  func roomWasMade() { go() }

  // MARK: - Requests

  private func read() {
    if unread > 0 {
      link.acknowledge(unread)
      unread = 0
    }
    while isOpen, takesRequests, !inbox.isEmpty, readPart() {}
  }

  /// Reads the next part of a request.
  ///
  /// - Returns: Whether a part was read; `false` if more bytes are needed.
  private func readPart() -> Bool {
    guard let (number, answer) = request else { return readHead() }
    let bytes = host.oracle.requests[number].bytes
    guard inbox.count >= bytes.count else { return false }
    host.oracle.check(inbox.starts(with: bytes), "request \(number) arrived as something else")
    host.kernel.note("request", link.number, number)
    inbox.removeFirst(bytes.count)
    request = nil
    if !answer.isEarly { self.answer(number, answer) }
    return true
  }

  private func readHead() -> Bool {
    // The head's first line names the request, whose bytes the oracle knows.
    guard inbox.contains(UInt8(ascii: "\n")) else { return false }
    guard let number = host.oracle.request(in: inbox) else {
      host.oracle.complain("connection \(link.number): no request arrived")
      ended()
      return false
    }
    let known = host.oracle.requests[number]
    guard inbox.count >= known.headBytes else { return false }
    let answer = ServerAnswer(host.faults, &random)
    request = (number, answer)
    if answer.fault == .deaf, known.bytes.count > inbox.count {
      isDeaf = true
      host.kernel.after(seconds(random.time(1...100))) { [self] in
        isDeaf = false
        if isOpen { read() }
      }
    }
    if answer.isEarly { self.answer(number, answer) }
    return !isDeaf
  }

  // MARK: - Answers

  private func answer(_ number: Int, _ answer: ServerAnswer) {
    let isHead = host.oracle.requests[number].method == "HEAD"
    if answer.delay > 0 { steps.append(.wait(answer.delay)) }
    for _ in 0..<answer.interims { steps.append(.send(ArraySlice("HTTP/1.1 103 Early\r\nX-Hint: h\r\n\r\n".utf8))) }
    let count = answer.fault == .twice || answer.fault == .twiceLater ? 2 : 1
    for repetition in 0..<count {
      if repetition > 0, answer.fault == .twiceLater { steps.append(.wait(random.time(0...seconds(3)))) }
      append(answer, to: repetition == 0 ? number : nil, isHead: isHead)
    }
    switch answer.fault {
    case .closed, .earlyThenClosed: steps.append(.close)
    case .halfClosed: steps.append(.end)
    default: break
    }
    if answer.endsConnection(isHead: isHead) {
      takesRequests = false
      if random.chance(1, of: 4) { steps.append(.wait(random.time(0...seconds(10)))) }
      // In a calm world the server lingers, so that bytes in transit to it do not reset the connection.
      steps.append(host.faults.isCalm ? .end : .close)
    }
    go()
  }

  private func append(_ answer: ServerAnswer, to number: Int?, isHead: Bool) {
    var known = Oracle.Answer(
      request: number, link: link, body: answer.body, framing: answer.framing, bodySent: answer.body)
    let serial = host.oracle.answers.count
    var head = answer.head(serial: serial)
    let body = isHead ? [] : answer.framedBody(serial: serial, &random)
    if answer.fault == .garbled {
      known.isGarbled = true
      garble(&head)
    }
    let bytes = head + body
    var cut = bytes.count
    switch answer.fault {
    case .cut, .reset, .pause, .stall: cut = random.number(0...bytes.count)
    default: break
    }
    if answer.fault == .cut || answer.fault == .reset || answer.fault == .stall {
      known.bodySent = min(max(cut - head.count, 0), answer.body)
    }
    steps.append(.began(answer: host.oracle.add(known)))
    if answer.fault == .garbage {
      steps.append(.send(ArraySlice((0..<random.number(1...500)).map { _ in random.byte() })))
      return steps.append(.close)
    }
    steps.append(.send(bytes[..<cut]))
    switch answer.fault {
    case .cut: steps.append(.close)
    case .reset: steps.append(.reset)
    case .pause: steps += [.wait(random.time(0...seconds(70))), .send(bytes[cut...])]
    case .stall: steps += [.wait(seconds(random.time(60...2_000))), .reset]
    default: break
    }
  }

  /// Alters one byte of the head, outside the line that names the answer.
  private func garble(_ head: inout [UInt8]) {
    let lines = head.indices.filter { head[$0] == UInt8(ascii: "\n") }
    let spared = lines[1] - lines[0]
    var index = random.number(0...head.count - 1 - spared)
    if index > lines[0] { index += spared }
    head[index] = random.byte()
  }

  private func answerUnasked(status: Int) {
    var answer = ServerAnswer(host.faults, &random)
    answer.fault = nil
    answer.status = status
    answer.framing = .length
    append(answer, to: nil, isHead: false)
  }

  // MARK: - Idle connections

  /// Closes a connection that stays idle for some time, or misuses it. Every server closes at last, because a
  /// client that waits for the rest of a garbled response would wait for ever.
  private func watchRest() {
    let isFaulty = random.chance(host.faults.idleFaults, of: 100)
    let most = isFaulty ? random.pick([milliseconds(100), seconds(3), seconds(100)]) : seconds(2_000)
    watchRest(for: isFaulty ? random.time(0...most) : most, since: progress, isFaulty)
  }

  private func watchRest(for time: UInt64, since before: Int, _ isFaulty: Bool) {
    host.kernel.after(time) { [self] in
      guard isOpen else { return }
      guard progress == before, steps.isEmpty else {
        return watchRest(for: max(time, milliseconds(1)), since: progress, isFaulty)
      }
      // A fault would answer the request that is being received. The rest of that request may never come, if the client
      // has taken an early response for the final one.
      guard request == nil || !isFaulty else { return watchRest(for: seconds(2_000), since: progress, false) }
      switch isFaulty ? random.number(0...5) : 0 {
      case 0, 1: steps.append(.close)
      case 2: steps.append(.reset)
      case 3: steps.append(.end)
      case 4:
        answerUnasked(status: 408)
        steps.append(.close)
      default: answerUnasked(status: 200)
      }
      go()
      watchRest(for: seconds(2_000), since: progress, false)
    }
  }

  // MARK: - Steps

  /// Performs the steps that can be performed now.
  private func go() {
    while isOpen, !isWaiting, !steps.isEmpty {
      progress += 1
      let step = steps.removeFirst()
      switch step {
      case .began(let answer): host.oracle.began(answer, at: bytesSent)
      case .send(let bytes):
        guard send(bytes) else { return }
      case .wait(let time): wait(time)
      case .end: link.endToClient()
      case .close:
        // Closing with unread bytes resets the connection.
        unread > 0 ? link.resetToClient() : link.endToClient()
        isOpen = false
      case .reset:
        link.resetToClient()
        isOpen = false
      }
    }
  }

  /// Sends one segment, and puts the rest back into the queue.
  ///
  /// - Returns: `false` if there is no room.
  private func send(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard !link.hasSentEnd, !bytes.isEmpty else { return true }
    let count = min(bytes.count, link.roomToClient, link.segmentBytes())
    guard count > 0 else {
      steps.insert(.send(bytes), at: 0)
      return false
    }
    bytesSent += count
    link.sendToClient(Array(bytes.prefix(count)))
    guard count < bytes.count else { return true }
    steps.insert(.send(bytes.dropFirst(count)), at: 0)
    // Sometimes the rest is delayed.
    if random.chance(1, of: 50) { wait(random.time(0...milliseconds(500))) }
    return true
  }

  private func wait(_ time: UInt64) {
    isWaiting = true
    host.kernel.after(time) { [self] in
      isWaiting = false
      go()
    }
  }
}
