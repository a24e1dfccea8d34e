import LarkspurHTTP
import TestKit
import Testing

@Suite struct SOCKSMachineTests {
  typealias Action = SOCKSMachine.Action

  static let login = UserInfo(user: Array("me".utf8), password: Array("pw".utf8))
  static let greeting: [UInt8] = [5, 1, 0]
  static let greetingWithLogin: [UInt8] = [5, 2, 0, 2]
  static let loginBytes: [UInt8] = [1, 2] + Array("me".utf8) + [2] + Array("pw".utf8)
  static let request: [UInt8] = [5, 1, 0, 3, 1] + Array("a".utf8) + [0x01, 0xbb]
  static let granted: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 4, 56]
  static let granted4: [UInt8] = [0, 90, 0, 0, 0, 0, 0, 0]

  static func machine(_ kind: Proxy.Kind = .socks5h, login: Bool = false) -> SOCKSMachine {
    SOCKSMachine(kind, credentials: login ? Self.login : nil, target: .name("a"), port: 443)
  }

  /// Gives answers to a machine in pieces.
  ///
  /// - Returns: The machine's actions, and the bytes that it leaves for the tunnel.
  static func run(
    _ machine: SOCKSMachine, _ answers: [UInt8], inPiecesOf size: Int = .max, thenEnds: Bool = false
  ) -> (actions: [Action], rest: [UInt8]) {
    var machine = machine
    var actions: [Action] = []
    machine.start(into: &actions)
    var rest = answers
    var start = 0
    while start < rest.count {
      let piece = Array(rest[start..<min(rest.count, size == .max ? rest.count : start + size)])
      let taken = machine.received(piece.span, into: &actions)
      start += taken
      if taken < piece.count { break }
    }
    rest.removeFirst(start)
    if thenEnds { machine.peerClosed(into: &actions) }
    return (actions, rest)
  }

  // MARK: - Transcripts

  static let transcripts: [(name: String, machine: SOCKSMachine, answers: [UInt8], actions: [Action])] = [
    ("no login", machine(), [5, 0] + granted, [.send(greeting), .send(request), .establish]),
    (
      "login", machine(login: true), [5, 2, 1, 0] + granted,
      [.send(greetingWithLogin), .send(loginBytes), .send(request), .establish]
    ),
    (
      "login not wanted", machine(login: true), [5, 0] + granted,
      [.send(greetingWithLogin), .send(request), .establish]
    ),
    (
      "login refused", machine(login: true), [5, 2, 1, 1],
      [.send(greetingWithLogin), .send(loginBytes), .fail(.credentialsRefused)]
    ),
    (
      "login of another version", machine(login: true), [5, 2, 5],
      [.send(greetingWithLogin), .send(loginBytes), .fail(.versionInvalid(5))]
    ),
    ("no method", machine(), [5, 255], [.send(greeting), .fail(.noMethodAccepted)]),
    ("a method that was not offered", machine(), [5, 2], [.send(greeting), .fail(.methodInvalid(2))]),
    ("a method that nobody has", machine(login: true), [5, 1], [.send(greetingWithLogin), .fail(.methodInvalid(1))]),
    ("not SOCKS", machine(), Array("H".utf8), [.send(greeting), .fail(.versionInvalid(0x48))]),
    (
      "another version in the reply", machine(), [5, 0, 4],
      [.send(greeting), .send(request), .fail(.versionInvalid(4))]
    ),
    (
      "another type of address", machine(), [5, 0, 5, 0, 0, 2],
      [.send(greeting), .send(request), .fail(.addressTypeInvalid(2))]
    ),
    (
      "an IPv6 address", machine(), [5, 0, 5, 0, 0, 4] + [UInt8](repeating: 9, count: 18),
      [.send(greeting), .send(request), .establish]
    ),
    ("an empty name", machine(), [5, 0, 5, 0, 0, 3, 0, 1, 2], [.send(greeting), .send(request), .establish]),
    (
      "the longest name", machine(), [5, 0, 5, 0, 0, 3, 255] + [UInt8](repeating: 97, count: 257),
      [.send(greeting), .send(request), .establish]
    ),
    ("SOCKS4a", machine(.socks4a), granted4, [.send([4, 1, 1, 0xbb, 0, 0, 0, 1, 0, 97, 0]), .establish]),
    (
      "SOCKS4a with a user", machine(.socks4a, login: true), granted4,
      [.send([4, 1, 1, 0xbb, 0, 0, 0, 1] + Array("me".utf8) + [0, 97, 0]), .establish]
    ),
    (
      "another version in SOCKS4's reply", machine(.socks4a), [4],
      [.send([4, 1, 1, 0xbb, 0, 0, 0, 1, 0, 97, 0]), .fail(.versionInvalid(4))]
    ),
  ]

  /// The machine takes no bytes behind the answers, whatever the pieces.
  @Test(arguments: transcripts.indices, [1, 2, 3, Int.max]) func transcript(index: Int, size: Int) {
    let row = Self.transcripts[index]
    let tunnel: [UInt8] = [22, 3, 1, 5, 0]
    let outcome = Self.run(row.machine, row.answers + tunnel, inPiecesOf: size)
    #expect(outcome.actions == row.actions, "\(row.name)")
    #expect(outcome.rest == tunnel, "\(row.name)")
  }

  /// The stream ends before the last byte of an answer.
  @Test(arguments: transcripts.indices) func cutAtEveryByte(index: Int) {
    let row = Self.transcripts[index]
    for count in row.answers.indices {
      let outcome = Self.run(row.machine, Array(row.answers[..<count]), thenEnds: true)
      #expect(outcome.actions.last == .fail(.truncated), "\(row.name), \(count)")
      #expect(outcome.actions.dropLast().elementsEqual(row.actions.prefix(outcome.actions.count - 1)), "\(row.name)")
    }
    let whole = Self.run(row.machine, row.answers, thenEnds: true)
    #expect(whole.actions == row.actions, "\(row.name)")
  }

  // MARK: - Refusals

  static let refusals: [(code: UInt8, refusal: SOCKSError.Refusal)] = [
    (1, .generalFailure), (2, .notAllowed), (3, .networkUnreachable), (4, .hostUnreachable), (5, .connectionRefused),
    (6, .timeToLiveExpired), (7, .commandUnsupported), (8, .addressTypeUnsupported),
  ]

  @Test func everyReplyCode() {
    for code in UInt8(1)...255 {
      let expected = Self.refusals.first { $0.code == code }?.refusal ?? .unknown(code)
      // Two bytes are enough: some proxies send no more.
      let outcome = Self.run(Self.machine(), [5, 0, 5, code])
      #expect(outcome.actions.last == .fail(.refused(expected)))
    }
  }

  @Test func everyReplyCodeOfSOCKS4() {
    let known: [UInt8: SOCKSError.Refusal] = [91: .rejected, 92: .noIdentity, 93: .wrongIdentity]
    for code in UInt8(0)...255 where code != 90 {
      let outcome = Self.run(Self.machine(.socks4a), [0, code])
      #expect(outcome.actions.last == .fail(.refused(known[code] ?? .unknown(code))))
    }
  }

  @Test func reasonsAreDistinct() {
    let messages = Self.refusals.map { "\(SOCKSError.refused($0.refusal))" }
    #expect(Set(messages).count == messages.count)
  }

  // MARK: - Targets and limits

  static let targets: [(kind: Proxy.Kind, target: SOCKSMachine.Target, request: [UInt8])] = [
    (.socks5, .address(.ipv4(0xc000_0201)), [5, 1, 0, 1, 192, 0, 2, 1, 0, 80]),
    (
      .socks5, .address(.ipv6(high: 0x2001_0db8_0000_0000, low: 1)),
      [5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80]
    ),
    (.socks4, .address(.ipv4(0xc000_0201)), [4, 1, 0, 80, 192, 0, 2, 1, 0]),
  ]

  @Test(arguments: targets) func addresses(row: (kind: Proxy.Kind, target: SOCKSMachine.Target, request: [UInt8])) {
    let machine = SOCKSMachine(row.kind, credentials: nil, target: row.target, port: 80)
    let outcome = Self.run(machine, row.kind == .socks4 ? Self.granted4 : [5, 0] + Self.granted)
    #expect(outcome.actions.suffix(2) == [.send(row.request), .establish])
  }

  static func obstacle(
    _ kind: Proxy.Kind, user: Int = 0, password: Int = 0, _ target: SOCKSMachine.Target = .name("a")
  ) -> SOCKSError? {
    let login = UserInfo(
      user: .init(repeating: 1, count: user), password: .init(repeating: 1, count: password))
    let machine = SOCKSMachine(kind, credentials: login, target: target, port: 80)
    guard case .fail(let error)? = run(machine, []).actions.first else { return nil }
    return error
  }

  @Test func limits() {
    #expect(Self.obstacle(.socks5h, user: 255, password: 255) == nil)
    #expect(Self.obstacle(.socks5h, user: 256) == .userTooLong(limit: 255))
    #expect(Self.obstacle(.socks5h, password: 256) == .passwordTooLong(limit: 255))
    for kind in [Proxy.Kind.socks4a, .socks5h] {
      #expect(Self.obstacle(kind, .name(String(repeating: "a", count: 255))) == nil)
      #expect(Self.obstacle(kind, .name(String(repeating: "a", count: 256))) == .hostTooLong(limit: 255))
      #expect(Self.obstacle(kind, .name("")) == .hostInvalid)
      #expect(Self.obstacle(kind, .name("a\0b")) == .hostInvalid)
    }
    #expect(Self.obstacle(.socks4, .address(.ipv6(high: 0, low: 1))) == .noIPv4Address)
    let nul = SOCKSMachine(
      .socks4, credentials: .init(user: [0], password: []), target: .address(.ipv4(1)), port: 80)
    #expect(Self.run(nul, []).actions == [.fail(.userInvalid)])
  }

  // MARK: - Random answers

  /// The pieces make no difference, the machine ends exactly once, and it takes nothing behind its end.
  @Test func randomAnswers() {
    var generator = SeededGenerator(for: "SOCKSMachineTests.randomAnswers")
    let likely: [UInt8] = [0, 1, 2, 3, 4, 5, 90]
    for _ in 0..<2000 {
      let start = Self.machine(
        [.socks4a, .socks5h].randomElement(using: &generator) ?? .socks5h, login: .random(using: &generator))
      let answers = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
        Int.random(in: 0..<8, using: &generator) == 0
          ? UInt8.random(in: 0...255, using: &generator) : likely.randomElement(using: &generator) ?? 0
      }
      let whole = Self.run(start, answers, thenEnds: true)
      let ends = whole.actions.count { if case .send = $0 { false } else { true } }
      #expect(ends == 1)
      for size in 1...3 {
        let cut = Self.run(start, answers, inPiecesOf: size, thenEnds: true)
        #expect(cut.actions == whole.actions && cut.rest == whole.rest)
      }
    }
  }

  // MARK: - Every state and fact

  enum Fact: CaseIterable {
    case begin, granted, closed

    func apply(to machine: inout SOCKSMachine, _ actions: inout [Action]) {
      switch self {
      case .begin: machine.start(into: &actions)
      case .granted: _ = machine.received([5, 0].span, into: &actions)
      case .closed: machine.peerClosed(into: &actions)
      }
    }
  }

  static let states: [(state: SOCKSMachine.State, machine: SOCKSMachine, answers: [UInt8], facts: [Fact: [Action]])] = [
    ("ready", machine(), nil, [.begin: [.send(greeting)]]),
    ("method", machine(), [], [.granted: [.send(request)], .closed: [.fail(.truncated)]]),
    ("login", machine(login: true), [5, 2], [.granted: [.fail(.versionInvalid(5))], .closed: [.fail(.truncated)]]),
    ("reply", machine(), [5, 0], [.closed: [.fail(.truncated)]]),
    ("reply4", machine(.socks4a), [], [.granted: [.fail(.versionInvalid(5))], .closed: [.fail(.truncated)]]),
    ("open", machine(), [5, 0] + granted, [:]), ("failed", machine(), [4], [:]),
  ].map { (name: String, start: SOCKSMachine, answers: [UInt8]?, facts: [Fact: [Action]]) in
    var machine = start
    var actions: [Action] = []
    if let answers {
      machine.start(into: &actions)
      _ = machine.received(answers.span, into: &actions)
    }
    return (machine.state, machine, answers ?? [], facts)
  }

  @Test func everyStateAndFact() {
    let reached = Self.states.map(\.state)
    #expect(reached == [.ready, .method, .login, .reply, .reply4, .open, .failed])
    for row in Self.states {
      for fact in Fact.allCases {
        var machine = row.machine
        var actions: [Action] = []
        fact.apply(to: &machine, &actions)
        #expect(actions == row.facts[fact] ?? [], "\(row.state), \(fact)")
      }
    }
  }
}
