/// One response of a server, and its fault, drawn when the request arrives.
struct ServerAnswer {
  enum Framing {
    case none
    case length
    case chunked
    case untilClose
  }

  enum Fault: CaseIterable {
    /// The stream ends inside the response.
    case cut
    case reset
    /// The response pauses for a long time, or for ever.
    case pause
    case stall
    /// One byte of the head is altered.
    case garbled
    /// Random bytes are sent instead of the response.
    case garbage
    /// The response is sent twice.
    case twice
    case twiceLater
    /// The server closes after the response without announcing it.
    case closed
    /// The server closes only its sending side, and continues to read.
    case halfClosed
    /// The response comes before the request is complete.
    case early
    case earlyThenClosed
    /// The server stops reading for a while.
    case deaf
    /// Too many interim responses come first.
    case interims
  }

  var delay: UInt64
  var status: Int
  var framing: Framing
  var body: Int
  var interims: Int
  var isOld: Bool
  var saysClose: Bool
  var keepAlive: String?
  var hasTrailers: Bool
  /// The value of `Retry-After`, in seconds.
  var retryAfter: Int?
  var fault: Fault?

  init(_ faults: FaultProfile, _ random: inout SeededRandom) {
    delay = random.pick([0, 0, random.time(0...milliseconds(5)), random.time(0...seconds(2))])
    status = random.pick([200, 200, 200, 204, 304, 404, 503])
    if faults.statusFaults > 0, random.chance(faults.statusFaults, of: 100) {
      status = random.pick([408, 429, 500, 503])
      retryAfter = random.pick([nil, nil, 0, 2, 60, 61])
    }
    framing = status == 204 || status == 304 ? .none : random.pick([.length, .length, .chunked, .chunked, .untilClose])
    body = random.pick([0, random.number(1...50), random.number(1...3_000), random.chance(1, of: 20) ? 40_000 : 100])
    interims = random.chance(1, of: 10) ? random.number(1...3) : 0
    isOld = random.chance(1, of: 30)
    // HTTP/1.0 has no chunked coding.
    if isOld, framing == .chunked { framing = .untilClose }
    saysClose = random.chance(1, of: 10)
    if random.chance(1, of: 10) {
      keepAlive = random.pick(["timeout=5, max=100", "timeout=1", "max=1", "timeout=0", "max"])
    }
    hasTrailers = random.chance(1, of: 5)
    if random.chance(faults.answerFaults, of: 100) { fault = random.pick(Fault.allCases) }
    if fault == .interims { interims = 40 }
    // A repetition would be part of a body that ends with the connection.
    if framing == .untilClose, fault == .twice || fault == .twiceLater { fault = nil }
  }

  var isEarly: Bool { fault == .early || fault == .earlyThenClosed }
  func endsConnection(isHead: Bool) -> Bool { isOld || saysClose || framing == .untilClose && !isHead }

  func head(serial: Int) -> [UInt8] {
    var text = "HTTP/1.\(isOld ? 0 : 1) \(status) Words\r\nX-Answer: \(serial)\r\n"
    switch framing {
    case .length: text += "Content-Length: \(body)\r\n"
    case .chunked: text += "Transfer-Encoding: chunked\r\n"
    case .none, .untilClose: break
    }
    if let retryAfter { text += "Retry-After: \(retryAfter)\r\n" }
    if saysClose { text += "Connection: close\r\n" }
    if let keepAlive { text += "Keep-Alive: \(keepAlive)\r\n" }
    return Array((text + "\r\n").utf8)
  }

  /// Returns the body in its framing.
  func framedBody(serial: Int, _ random: inout SeededRandom) -> [UInt8] {
    let bytes = (0..<body).map { Oracle.byte($0, of: serial) }
    guard framing == .chunked else { return framing == .none ? [] : bytes }
    var framed: [UInt8] = []
    var start = 0
    while start < body {
      let count = min(random.number(1...1_000), body - start)
      framed += Array((String(count, radix: 16) + "\r\n").utf8) + bytes[start..<start + count] + Array("\r\n".utf8)
      start += count
    }
    return framed + Array((hasTrailers ? "0\r\nX-Trailer: t\r\n\r\n" : "0\r\n\r\n").utf8)
  }
}
