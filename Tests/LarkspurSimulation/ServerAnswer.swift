/// One response of a server's, and what goes wrong with it, drawn when the request comes.
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
    /// It goes on after a long time, or never.
    case pause
    case stall
    /// A byte of the head is another one.
    case garbled
    /// Something else is sent instead.
    case garbage
    /// It comes twice.
    case twice
    case twiceLater
    /// The server closes behind it without having said so.
    case closed
    /// It closes one side only, and goes on reading.
    case halfClosed
    /// It comes before the request is complete.
    case early
    case earlyThenClosed
    /// The server stops reading for a while.
    case deaf
    /// An endless row of interim responses.
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
  var fault: Fault?

  init(_ weather: Weather, _ dice: inout Dice) {
    delay = dice.pick([0, 0, dice.time(0...milliseconds(5)), dice.time(0...seconds(2))])
    status = dice.pick([200, 200, 200, 204, 304, 404, 503])
    framing = status == 204 || status == 304 ? .none : dice.pick([.length, .length, .chunked, .chunked, .untilClose])
    body = dice.pick([0, dice.number(1...50), dice.number(1...3_000), dice.chance(1, of: 20) ? 40_000 : 100])
    interims = dice.chance(1, of: 10) ? dice.number(1...3) : 0
    isOld = dice.chance(1, of: 30)
    // In HTTP/1.0 there is no chunked coding.
    if isOld, framing == .chunked { framing = .untilClose }
    saysClose = dice.chance(1, of: 10)
    if dice.chance(1, of: 10) {
      keepAlive = dice.pick(["timeout=5, max=100", "timeout=1", "max=1", "timeout=0", "max"])
    }
    hasTrailers = dice.chance(1, of: 5)
    if dice.chance(weather.answerFaults, of: 100) { fault = dice.pick(Fault.allCases) }
    if fault == .interims { interims = 40 }
    // What follows would belong to the body.
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
    if saysClose { text += "Connection: close\r\n" }
    if let keepAlive { text += "Keep-Alive: \(keepAlive)\r\n" }
    return Array((text + "\r\n").utf8)
  }

  /// The body in its framing.
  func framedBody(serial: Int, _ dice: inout Dice) -> [UInt8] {
    let bytes = (0..<body).map { Ledger.byte($0, of: serial) }
    guard framing == .chunked else { return framing == .none ? [] : bytes }
    var framed: [UInt8] = []
    var start = 0
    while start < body {
      let count = min(dice.number(1...1_000), body - start)
      framed += Array((String(count, radix: 16) + "\r\n").utf8) + bytes[start..<start + count] + Array("\r\n".utf8)
      start += count
    }
    return framed + Array((hasTrailers ? "0\r\nX-Trailer: t\r\n\r\n" : "0\r\n\r\n").utf8)
  }
}
