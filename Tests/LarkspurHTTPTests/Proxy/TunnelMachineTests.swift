import LarkspurHTTP
import Testing

@Suite struct TunnelMachineTests {
  typealias Action = TunnelMachine.Action

  enum Fact: Hashable, CaseIterable {
    case begin, opened, accepted, refused, challenged, challengedForTheLastTime, closed, drained, drainFailed
    case authorized, notAuthorized

    func apply(to machine: inout TunnelMachine, _ actions: inout [Action]) {
      switch self {
      case .begin: machine.start(into: &actions)
      case .opened: machine.opened(into: &actions)
      case .accepted: machine.answered(.init(status: 204), into: &actions)
      case .refused: machine.answered(.init(status: 403, reason: "No"), into: &actions)
      case .challenged: machine.answered(.init(status: 407, challenges: ["Basic"]), into: &actions)
      case .challengedForTheLastTime:
        machine.answered(.init(status: 407, challenges: ["Basic"], isPersistent: false), into: &actions)
      case .closed: _ = machine.closedUnanswered(into: &actions)
      case .drained: machine.drained(into: &actions)
      case .drainFailed: machine.drainFailed(into: &actions)
      case .authorized: machine.authorized("x", into: &actions)
      case .notAuthorized: machine.authorized(nil, into: &actions)
      }
    }
  }

  static func machine(after facts: [Fact]) -> (machine: TunnelMachine, actions: [Action]) {
    var machine = TunnelMachine(authorization: "first")
    var actions: [Action] = []
    for fact in facts { fact.apply(to: &machine, &actions) }
    return (machine, actions)
  }

  static let drain = Action.drain(bytesMax: TunnelMachine.drainBytesMax)
  static let authorize = Action.authorize(challenges: ["Basic"])
  static let answers: [Fact: [Action]] = [
    .accepted: [.establish], .refused: [.fail(.refused(status: 403, reason: "No"))], .challenged: [drain],
    .challengedForTheLastTime: [authorize],
  ]

  /// Every state, with the actions of each fact. Facts that are not listed have no actions.
  static let table: [(name: String, before: [Fact], answers: [Fact: [Action]])] = [
    ("ready", [], [.begin: [.ask(authorization: "first")]]),
    ("asking", [.begin], answers),
    ("draining", [.begin, .challenged], [.drained: [authorize], .drainFailed: [authorize]]),
    (
      "authorizing", [.begin, .challenged, .drained],
      [.authorized: [.ask(authorization: "x")], .notAuthorized: [.fail(.authenticationRequired)]]
    ),
    (
      "authorizing without a connection", [.begin, .challenged, .drainFailed],
      [.authorized: [.open], .notAuthorized: [.fail(.authenticationRequired)]]
    ),
    (
      "the proxy closes", [.begin, .challengedForTheLastTime],
      [.authorized: [.open], .notAuthorized: [.fail(.authenticationRequired)]]
    ),
    ("opening", [.begin, .challengedForTheLastTime, .authorized], [.opened: [.ask(authorization: "x")]]),
    (
      "asking again", [.begin, .challenged, .drained, .authorized],
      answers.merging([.closed: [.open]]) { $1 }
    ),
    ("asking on a new connection", [.begin, .challengedForTheLastTime, .authorized, .opened], answers),
    ("open", [.begin, .accepted], [:]), ("refused", [.begin, .refused], [:]),
    ("not authorized", [.begin, .challenged, .drained, .notAuthorized], [:]),
  ]

  @Test(arguments: table.indices) func everyStateAndFact(index: Int) {
    let row = Self.table[index]
    for fact in Fact.allCases {
      var machine = Self.machine(after: row.before).machine
      var actions: [Action] = []
      fact.apply(to: &machine, &actions)
      #expect(actions == row.answers[fact] ?? [], "\(row.name), \(fact)")
    }
  }

  /// The limit, and one challenge past it.
  @Test(arguments: [true, false]) func endlessChallenges(isPersistent: Bool) {
    let round: [Fact] =
      isPersistent ? [.challenged, .drained, .authorized] : [.challengedForTheLastTime, .authorized, .opened]
    var facts: [Fact] = [.begin]
    for _ in 1..<TunnelMachine.requestsMax { facts += round }
    #expect(Self.machine(after: facts + [.accepted]).actions.last == .establish)
    let outcome = Self.machine(after: facts + [.challenged])
    #expect(outcome.actions.last == .fail(.tooManyChallenges(limit: TunnelMachine.requestsMax)))
    #expect(outcome.machine.state == .over)
  }

  /// Rounds of a proxy that challenges and closes again and again are counted.
  @Test func endlessCloses() {
    var facts: [Fact] = [.begin]
    for _ in 0..<100 { facts += [.challenged, .drained, .authorized, .closed, .opened] }
    let actions = Self.machine(after: facts).actions
    #expect(actions.count { $0 == .open } == TunnelMachine.requestsMax - 1)
    #expect(actions.last == .fail(.tooManyChallenges(limit: TunnelMachine.requestsMax)))
  }

  @Test func aNewConnectionThatIsClosedIsAnError() {
    var machine = Self.machine(after: [.begin]).machine
    var actions: [Action] = []
    let mayGoOn = machine.closedUnanswered(into: &actions)
    #expect(!mayGoOn)
    #expect(actions.isEmpty)
  }

  @Test(arguments: [100, 199, 300, 302, 400, 401, 404, 500, 502, 999]) func otherStatuses(status: Int) {
    var machine = Self.machine(after: [.begin]).machine
    var actions: [Action] = []
    machine.answered(.init(status: status, reason: "r"), into: &actions)
    #expect(actions == [.fail(.refused(status: status, reason: "r"))])
  }

  // MARK: - The request

  static func text(_ host: String, authorization: String? = nil, userAgent: String? = nil) throws -> String {
    let head = try TunnelMachine.request(host: host, port: 443, authorization: authorization, userAgent: userAgent)
    #expect(head.recipient == .proxy)
    #expect(head.context.method == .connect)
    return String(decoding: head.bytes, as: UTF8.self)
  }

  @Test func requests() throws {
    #expect(try Self.text("fe80::1%lo") == "CONNECT [fe80::1]:443 HTTP/1.1\r\nHost: [fe80::1]:443\r\n\r\n")
    #expect(try Self.text("a.example") == "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n")
    #expect(
      try Self.text("::1", authorization: "Basic eA==", userAgent: "x/1")
        == "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nProxy-Authorization: Basic eA==\r\nUser-Agent: x/1\r\n\r\n"
    )
  }

  @Test func whatWouldBeAnotherField() {
    #expect(throws: RequestError.fieldValueInvalid(name: "Proxy-Authorization")) {
      try Self.text("a.example", authorization: "x\r\nA: b")
    }
    #expect(throws: RequestError.targetInvalid("a b:443")) { try Self.text("a b") }
  }

  /// A request to an origin cannot carry `Proxy-Authorization`, which would disclose the credentials.
  @Test(arguments: ["Proxy-Authorization", "proxy-authorization", "PROXY-AUTHORIZATION"])
  func authorizationIsForProxies(name: String) throws {
    var toOrigin = try RequestWriter(method: "GET", target: "/", host: "a.example")
    #expect(throws: RequestError.fieldForProxies(name: name)) { try toOrigin.field(name, "x") }
    #expect(throws: RequestError.fieldForProxies(name: name)) { try ChunkedEncoder.end(trailers: [Field(name, "x")]) }
    var toProxy = try RequestWriter(method: "GET", target: "http://a.example/", host: "a.example", to: .proxy)
    try toProxy.field(name, "x")
    #expect(String(decoding: toProxy.finish().bytes, as: UTF8.self).contains("\(name): x\r\n"))
  }

  /// CVE-2014-8150: a line end in a URL cannot end the request line.
  @Test(arguments: [
    "/", "*", "a.example:443", "https://a.example/", "http://a.example/\r\nX: y", "http://a.example/ HTTP/1.1\r\nX: y",
    "http://a\r\n.example/", "http://a.example/\0",
  ])
  func otherForms(target: String) {
    #expect(throws: RequestError.targetInvalid(target)) {
      try RequestWriter(method: "GET", target: target, host: "a.example", to: .proxy)
    }
  }
}
