import LarkspurHTTP
import LarkspurTransport

/// One task of a user: a few requests in sequence, and perhaps a cancellation.
struct ClientScript {
  struct Plan {
    let number: Int
    let endpoint: Int
    let head: RequestHead
    let body: [UInt8]
    let priority: UInt8
    let timeMax: UInt64?
    let reading: Reading
  }

  /// The way in which the response is read.
  enum Reading {
    case all
    case collect(bytesMax: Int)
    case pieces(Int)
    /// Pauses after each piece.
    case slowly(UInt64)
    case nothing
    case giveUp(TransportError)
    case closeConnection
    case cancel
  }

  /// The way in which the requests reach the loop.
  enum Way {
    /// A task that the loop starts.
    case task
    /// A task whose first job a second thread submits.
    case inlineTask
    /// Callbacks that a second thread submits.
    case submitted
  }

  let start: UInt64
  let way: Way
  let plans: [Plan]
  let cancelledAfter: UInt64?
  /// Whether the visit uses a connection of its own, to one of several addresses, instead of the pool.
  let isPrivate: Bool

  init(endpoints: Int, within span: UInt64, _ weather: FaultProfile, _ ledger: Oracle, _ dice: inout SeededRandom)
    throws
  {
    start = dice.time(0...span)
    isPrivate = dice.chance(1, of: 8)
    way = isPrivate ? dice.pick([.task, .inlineTask]) : dice.pick([.task, .inlineTask, .submitted, .submitted])
    cancelledAfter =
      !weather.isCalm && dice.chance(1, of: 6) ? dice.time(0...dice.pick([0, milliseconds(3), seconds(3)])) : nil
    plans = try (0..<dice.number(1...3)).map { _ in
      try Plan(endpoint: dice.number(0...endpoints - 1), weather, ledger, &dice)
    }
  }
}

extension ClientScript.Plan {
  init(endpoint: Int, _ weather: FaultProfile, _ ledger: Oracle, _ dice: inout SeededRandom) throws {
    let number = ledger.requests.count
    let method = dice.pick(["GET", "GET", "GET", "HEAD", "PUT", "DELETE", "POST", "POST"])
    let hasBody = method == "PUT" || method == "POST"
    let count = hasBody ? dice.pick([0, dice.number(1...100), dice.number(1...2_000), dice.number(1...20_000)]) : 0
    let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ number) }
    var writer = try RequestWriter(method: method, target: "/\(number)", host: "a.example")
    if dice.chance(1, of: 30) { try writer.field("Connection", "close") }
    head = writer.finish(body: hasBody ? .length(UInt(count)) : .none)
    self.number = number
    self.endpoint = endpoint
    self.body = body
    priority = dice.pick([128, 128, 128, 0, 255])
    timeMax = !weather.isCalm && dice.chance(1, of: 5) ? dice.time(0...dice.pick([milliseconds(5), seconds(5)])) : nil
    reading = dice.chance(2, of: 3) ? .all : Self.reading(&dice)
    _ = ledger.add(Oracle.Request(method: method, bytes: head.bytes + body, headBytes: head.bytes.count))
  }

  private static func reading(_ dice: inout SeededRandom) -> ClientScript.Reading {
    switch dice.number(0...7) {
    case 0: .all
    case 1: .collect(bytesMax: dice.number(0...2_000))
    case 2: .pieces(dice.number(0...3))
    case 3: .slowly(dice.time(0...milliseconds(300)))
    case 4: .nothing
    case 5: .giveUp(dice.pick([.cancelled, .connectionClosed, .connectionLost(.sending, nil)]))
    case 6: .closeConnection
    default: .cancel
    }
  }
}
