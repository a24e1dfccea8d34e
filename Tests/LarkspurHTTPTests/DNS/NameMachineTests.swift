import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct NameMachineTests {
  typealias Machine = NameMachine<[Int]>

  static let start = Deadline(nanoseconds: 1_000_000_000)
  static let found = NameAnswer.found([1])
  static let unknown = NameAnswer<[Int]>.noSuchName(reason: "unknown")
  static let failed = NameAnswer<[Int]>.failed(reason: "out of order")

  static func name(_ text: String) -> HostName {
    do {
      return try HostName(text)
    } catch {
      preconditionFailure("\(error)")
    }
  }

  static let a = name("a")
  static let b = name("b")

  /// Facts about the name `a`. Its first lookup is number 1, or number 2 after one for another name.
  enum Fact: Hashable, CaseIterable {
    case requested, requestedLate, otherRequested, firstAbandons, secondAbandons
    case found, unknown, failed, cancelled, otherFound

    func apply(to machine: inout Machine, _ actions: inout Machine.Actions) {
      switch self {
      case .requested: machine.requested(a, by: machine.waiterCount == 0 ? 1 : 2, now: start, into: &actions)
      case .requestedLate: machine.requested(a, by: 3, now: start.advanced(by: .seconds(2)), into: &actions)
      case .otherRequested: machine.requested(b, by: 9, now: start, into: &actions)
      case .firstAbandons: machine.abandoned(by: 1, into: &actions)
      case .secondAbandons: machine.abandoned(by: 2, into: &actions)
      case .found: machine.answered(1, NameMachineTests.found, now: start, into: &actions)
      case .unknown: machine.answered(1, NameMachineTests.unknown, now: start, into: &actions)
      case .failed: machine.answered(1, NameMachineTests.failed, now: start, into: &actions)
      case .cancelled: machine.cancelled(1, into: &actions)
      case .otherFound: machine.answered(2, NameMachineTests.found, now: start, into: &actions)
      }
    }
  }

  /// Returns a machine that allows one lookup at a time, after the given facts.
  static func machine(after facts: [Fact]) -> Machine {
    var limits = NameLimits()
    limits.lookUpsMax = 1
    var machine = Machine(limits: limits)
    var actions: Machine.Actions = []
    for fact in facts { fact.apply(to: &machine, &actions) }
    return machine
  }

  /// Every state, with the actions of each fact. Facts that are not listed have no actions.
  static let table: [(name: String, before: [Fact], answers: [Fact: Machine.Actions])] = [
    ("unknown", [], [.requested: [.start(1, a)], .requestedLate: [.start(1, a)], .otherRequested: [.start(1, b)]]),
    (
      "running, one waits", [.requested],
      [
        .firstAbandons: [.cancel(1, a)], .found: [.answer(1, found)], .unknown: [.answer(1, unknown)],
        .failed: [.answer(1, failed)], .cancelled: [.start(2, a)],
      ]
    ),
    (
      "running, two wait", [.requested, .requested],
      [
        .found: [.answer(1, found), .answer(2, found)], .unknown: [.answer(1, unknown), .answer(2, unknown)],
        .failed: [.answer(1, failed), .answer(2, failed)], .cancelled: [.start(2, a)],
      ]
    ),
    ("running, nobody waits", [.requested, .firstAbandons], [:]),
    (
      "running, one has come since it was cancelled", [.requested, .firstAbandons, .requestedLate],
      [
        .found: [.answer(3, found)], .unknown: [.answer(3, unknown)], .failed: [.answer(3, failed)],
        .cancelled: [.start(2, a)],
      ]
    ),
    (
      "running, another name is queued", [.requested, .otherRequested],
      [
        .firstAbandons: [.cancel(1, a)], .found: [.answer(1, found), .start(2, b)],
        .unknown: [.answer(1, unknown), .start(2, b)], .failed: [.answer(1, failed), .start(2, b)],
        .cancelled: [.start(2, a)],
      ]
    ),
    (
      "queued behind another name", [.otherRequested, .requested],
      [
        .found: [.answer(9, found), .start(2, a)], .unknown: [.answer(9, unknown), .start(2, a)],
        .failed: [.answer(9, failed), .start(2, a)], .cancelled: [.start(2, b)],
      ]
    ),
    (
      "its turn has come", [.otherRequested, .requested, .found],
      [.otherFound: [.answer(2, found)], .secondAbandons: [.cancel(2, a)], .otherRequested: [.answer(9, found)]]
    ),
    (
      "dropped from the queue", [.otherRequested, .requested, .secondAbandons],
      [
        .found: [.answer(9, found)], .unknown: [.answer(9, unknown)], .failed: [.answer(9, failed)],
        .cancelled: [.start(2, b)],
      ]
    ),
    (
      "remembered", [.requested, .found],
      [.requested: [.answer(1, found)], .requestedLate: [.answer(3, found)], .otherRequested: [.start(2, b)]]
    ),
    (
      "remembered although nobody waited", [.requested, .firstAbandons, .found],
      [.requested: [.answer(1, found)], .requestedLate: [.answer(3, found)], .otherRequested: [.start(2, b)]]
    ),
    (
      "remembered to be unknown", [.requested, .unknown],
      [.requested: [.answer(1, unknown)], .requestedLate: [.start(2, a)], .otherRequested: [.start(2, b)]]
    ),
    (
      "a failure is not remembered", [.requested, .failed],
      [.requested: [.start(2, a)], .requestedLate: [.start(2, a)], .otherRequested: [.start(2, b)]]
    ),
    (
      "cancelled", [.requested, .firstAbandons, .cancelled],
      [.requested: [.start(2, a)], .requestedLate: [.start(2, a)], .otherRequested: [.start(2, b)]]
    ),
  ]

  @Test(arguments: table.indices) func everyStateAndFact(index: Int) {
    let row = Self.table[index]
    for fact in Fact.allCases {
      var machine = Self.machine(after: row.before)
      var actions: Machine.Actions = []
      fact.apply(to: &machine, &actions)
      #expect(actions == row.answers[fact, default: []], "\(row.name), \(fact)")
    }
  }

  @Test func lifetimes() {
    for (answer, lifetime) in [(Self.found, Duration.seconds(30)), (Self.unknown, .seconds(2))] {
      var machine = Machine()
      var actions: Machine.Actions = []
      machine.requested(Self.a, by: 1, now: Self.start, into: &actions)
      machine.answered(1, answer, now: Self.start, into: &actions)
      actions = []
      machine.requested(Self.a, by: 2, now: Self.start.advanced(by: lifetime - .nanoseconds(1)), into: &actions)
      #expect(actions == [.answer(2, answer)])
      actions = []
      machine.requested(Self.a, by: 3, now: Self.start.advanced(by: lifetime), into: &actions)
      #expect(actions == [.start(2, Self.a)])
    }
  }

  // MARK: - Limits

  /// Returns a machine with `count` callers, each for a name of its own or all for one name.
  static func crowd(_ count: Int, _ limits: NameLimits, sameName: Bool = false) -> (Machine, Machine.Actions) {
    var machine = Machine(limits: limits)
    var actions: Machine.Actions = []
    for number in 1...count {
      machine.requested(name(sameName ? "a" : "n\(number)x"), by: UInt64(number), now: start, into: &actions)
    }
    return (machine, actions)
  }

  static func refused(_ actions: Machine.Actions) -> [UInt64] {
    actions.compactMap { if case .refuse(let waiter) = $0 { waiter } else { nil } }
  }

  @Test func theDefaults() {
    let limits = NameLimits()
    #expect(limits.lookUpsMax == 4 && limits.queuedNamesMax == 1000)
    #expect(limits.waitersMax == 10_000 && limits.entriesMax == 1000)
    #expect(limits.abandonedLookUpsMax == 28)
  }

  /// Lookups that have been abandoned do not block others, up to a limit: `getaddrinfo` cannot be stopped when servers
  /// do not answer.
  @Test func abandonedLookUpsBlockNoOther() {
    var limits = NameLimits()
    limits.lookUpsMax = 2
    limits.abandonedLookUpsMax = 3
    var (machine, actions) = Self.crowd(6, limits)
    #expect(machine.runningCount == 2 && machine.queuedCount == 4)
    for number: UInt64 in 1...3 {
      actions = []
      machine.abandoned(by: number, into: &actions)
      machine.wentOn(number, into: &actions)
      #expect(actions == [.cancel(number, Self.name("n\(number)x")), .start(number + 2, Self.name("n\(number + 2)x"))])
    }
    // A fourth abandoned lookup would exceed the limit.
    actions = []
    machine.abandoned(by: 4, into: &actions)
    machine.wentOn(4, into: &actions)
    #expect(actions == [.cancel(4, Self.name("n4x"))])
    #expect(machine.runningCount == 5 && machine.queuedCount == 1)
    // An answer frees a slot, even if all its waiters are gone, and is remembered.
    actions = []
    machine.answered(1, Self.found, now: Self.start, into: &actions)
    #expect(actions == [.start(6, Self.name("n6x"))])
    machine.wentOn(1, into: &actions)
    #expect(actions.count == 1 && machine.runningCount == 5)
  }

  @Test func limitsOfZero() {
    var limits = NameLimits()
    (limits.lookUpsMax, limits.queuedNamesMax, limits.entriesMax) = (0, 0, 0)
    var (machine, actions) = Self.crowd(2, limits)
    machine.answered(1, Self.found, now: Self.start, into: &actions)
    #expect(actions == [.start(1, Self.name("n1x")), .refuse(2), .answer(1, Self.found)])
    #expect(machine.entryCount == 0)
  }

  @Test func runningLookUps() {
    let (machine, actions) = Self.crowd(5, NameLimits())
    #expect(actions == (1...4).map { .start($0, Self.name("n\($0)x")) })
    #expect(machine.runningCount == 4 && machine.queuedCount == 1)
  }

  @Test func queuedNames() {
    var limits = NameLimits()
    limits.queuedNamesMax = 3
    #expect(Self.refused(Self.crowd(7, limits).1) == [])
    var (machine, actions) = Self.crowd(8, limits)
    #expect(Self.refused(actions) == [8])
    // A caller for a name that is already queued needs no room in the queue.
    actions = []
    machine.requested(Self.name("n7x"), by: 9, now: Self.start, into: &actions)
    #expect(actions == [])
  }

  @Test func waiters() {
    var limits = NameLimits()
    limits.waitersMax = 3
    #expect(Self.refused(Self.crowd(3, limits, sameName: true).1) == [])
    var (machine, actions) = Self.crowd(4, limits, sameName: true)
    #expect(Self.refused(actions) == [4])
    actions = []
    machine.abandoned(by: 2, into: &actions)
    machine.requested(Self.a, by: 5, now: Self.start, into: &actions)
    machine.answered(1, Self.found, now: Self.start, into: &actions)
    #expect(actions == [.answer(1, Self.found), .answer(3, Self.found), .answer(5, Self.found)])
    #expect(machine.waiterCount == 0)
  }

  @Test func entries() {
    var limits = NameLimits()
    limits.entriesMax = 2
    var machine = Machine(limits: limits)
    var actions: Machine.Actions = []
    for (number, text) in ["a", "b", "c"].enumerated() {
      #expect(machine.entryCount == number)
      let now = Self.start.advanced(by: .seconds(number))
      machine.requested(Self.name(text), by: 1, now: now, into: &actions)
      // The second entry expires first.
      machine.answered(UInt64(number + 1), text == "b" ? Self.unknown : Self.found, now: now, into: &actions)
    }
    #expect(machine.entryCount == 2)
    actions = []
    for (waiter, text) in ["a", "c", "b"].enumerated() {
      machine.requested(Self.name(text), by: UInt64(waiter), now: Self.start.advanced(by: .seconds(2)), into: &actions)
    }
    #expect(actions == [.answer(0, Self.found), .answer(1, Self.found), .start(4, Self.b)])
  }
}
