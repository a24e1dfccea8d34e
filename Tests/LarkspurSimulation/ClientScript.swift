import LarkspurHTTP
import LarkspurTransport

/// One task of a user: a few requests in sequence, and perhaps a cancellation.
struct ClientScript {
  struct Plan {
    let number: Int
    let endpoint: Int
    let method: String
    let fields: FieldList
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
    case parts(Int)
    /// Pauses after each piece.
    case slowly(UInt64)
    case nothing
    case abandon(TransportError)
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
  /// Whether the script uses a connection of its own, to one of several addresses, instead of the pool.
  let isPrivate: Bool

  /// - Parameter heads: The writer of the requests' heads.
  init(
    endpoints: Int, within span: UInt64, _ faults: FaultProfile, _ oracle: Oracle, heads: ScriptHeads,
    _ random: inout SeededRandom
  ) throws {
    start = random.time(0...span)
    isPrivate = random.chance(1, of: 8)
    way = isPrivate ? random.pick([.task, .inlineTask]) : random.pick([.task, .inlineTask, .submitted, .submitted])
    cancelledAfter =
      !faults.isCalm && random.chance(1, of: 6) ? random.time(0...random.pick([0, milliseconds(3), seconds(3)])) : nil
    plans = try (0..<random.number(1...3)).map { _ in
      try Plan(endpoint: random.number(0...endpoints - 1), faults, oracle, heads: heads, &random)
    }
  }
}

extension ClientScript.Plan {
  init(
    endpoint: Int, _ faults: FaultProfile, _ oracle: Oracle, heads: ScriptHeads, _ random: inout SeededRandom
  ) throws {
    let number = oracle.requests.count
    let method = random.pick(["GET", "GET", "GET", "HEAD", "PUT", "DELETE", "POST", "POST"])
    let hasBody = method == "PUT" || method == "POST"
    let count =
      hasBody ? random.pick([0, random.number(1...100), random.number(1...2_000), random.number(1...20_000)]) : 0
    let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 13 &+ number) }
    self.method = method
    var fields = random.chance(1, of: 30) ? [Field("Connection", "close")] : []
    let hasKey = heads.users == .retryingClient && method == "POST" && random.chance(1, of: 2)
    if hasKey { fields.append(Field("Idempotency-Key", "\(number)")) }
    self.fields = fields
    head = try heads.head(method, number, fields, hasBody ? .length(UInt(count)) : .none, endpoint)
    self.number = number
    self.endpoint = endpoint
    self.body = body
    priority = random.pick([128, 128, 128, 0, 255])
    let timeMax =
      !faults.isCalm && random.chance(1, of: 5) ? random.time(0...random.pick([milliseconds(5), seconds(5)])) : nil
    self.timeMax = heads.users == .pool ? timeMax : heads.timeMax
    reading = random.chance(2, of: 3) ? .all : Self.reading(&random)
    _ = oracle.add(
      Oracle.Request(method: method, bytes: head.bytes + body, headBytes: head.bytes.count, hasKey: hasKey))
  }

  private static func reading(_ random: inout SeededRandom) -> ClientScript.Reading {
    switch random.number(0...7) {
    case 0: .all
    case 1: .collect(bytesMax: random.number(0...2_000))
    case 2: .parts(random.number(0...3))
    case 3: .slowly(random.time(0...milliseconds(300)))
    case 4: .nothing
    case 5: .abandon(random.pick([.cancelled, .connectionClosed, .connectionLost(.sending, nil)]))
    case 6: .closeConnection
    default: .cancel
    }
  }
}
