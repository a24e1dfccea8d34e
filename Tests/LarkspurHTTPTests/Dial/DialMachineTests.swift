import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct DialMachineTests {
  enum Fact: CaseIterable {
    case begin, firstFailed, secondFailed, firstSucceeded, secondSucceeded, early, due, ended

    func apply(to machine: inout DialMachine, _ actions: inout DialMachine.Actions) {
      switch self {
      case .begin: machine.start(now: start, into: &actions)
      case .firstFailed: machine.attemptFailed(0, now: start, into: &actions)
      case .secondFailed: machine.attemptFailed(1, now: start, into: &actions)
      case .firstSucceeded: machine.attemptSucceeded(0, into: &actions)
      case .secondSucceeded: machine.attemptSucceeded(1, into: &actions)
      case .early: machine.timerFired(now: start.advanced(by: .milliseconds(249)), into: &actions)
      case .due: machine.timerFired(now: start.advanced(by: .milliseconds(250)), into: &actions)
      case .ended: machine.ended(into: &actions)
      }
    }
  }

  static let start = Deadline(nanoseconds: 1_000_000_000)

  static func machine(_ count: Int, after facts: [Fact]) -> DialMachine {
    var machine = DialMachine(count: count)
    var actions: DialMachine.Actions = []
    for fact in facts { fact.apply(to: &machine, &actions) }
    return machine
  }

  /// Every state of a race between two addresses, with the actions of each fact. Facts that are not listed have no
  /// actions.
  static let table: [(name: String, before: [Fact], answers: [Fact: DialMachine.Actions])] = [
    ("ready", [], [.begin: [.start(0)]]),
    (
      "the first is tried", [.begin],
      [.firstFailed: [.start(1)], .firstSucceeded: [.succeed(0)], .due: [.start(1)], .ended: [.abandon(0)]]
    ),
    (
      "both are tried", [.begin, .due],
      [
        .firstSucceeded: [.abandon(1), .succeed(0)], .secondSucceeded: [.abandon(0), .succeed(1)],
        .ended: [.abandon(0), .abandon(1)],
      ]
    ),
    (
      "the first has failed", [.begin, .firstFailed],
      [.secondFailed: [.fail], .secondSucceeded: [.succeed(1)], .ended: [.abandon(1)]]
    ),
    (
      "the second has failed", [.begin, .due, .secondFailed],
      [.firstFailed: [.fail], .firstSucceeded: [.succeed(0)], .ended: [.abandon(0)]]
    ),
    ("won", [.begin, .firstSucceeded], [:]),
    ("lost", [.begin, .firstFailed, .secondFailed], [:]),
    ("ended", [.begin, .ended], [:]),
  ]

  @Test(arguments: table.indices) func everyStateAndFact(index: Int) {
    let row = Self.table[index]
    for fact in Fact.allCases {
      var machine = Self.machine(2, after: row.before)
      var actions: DialMachine.Actions = []
      fact.apply(to: &machine, &actions)
      #expect(actions == row.answers[fact, default: []], "\(row.name), \(fact)")
      if actions.contains(.fail) || actions.contains(where: { if case .succeed = $0 { true } else { false } }) {
        #expect(machine.state == .over)
        #expect(machine.timer == .never)
      }
    }
  }

  @Test func theTimer() {
    #expect(Self.machine(1, after: [.begin]).timer == .never)
    #expect(Self.machine(2, after: [.begin]).timer == Self.start.advanced(by: .milliseconds(250)))
    #expect(Self.machine(2, after: [.begin, .due]).timer == .never)
    #expect(Self.machine(3, after: [.begin, .due]).timer == Self.start.advanced(by: .milliseconds(500)))
    #expect(Self.machine(3, after: [.begin, .firstFailed]).timer == Self.start.advanced(by: .milliseconds(250)))
  }

  @Test func noAddressAtAll() {
    var machine = DialMachine(count: 0)
    var actions: DialMachine.Actions = []
    machine.start(now: Self.start, into: &actions)
    #expect(actions == [.fail])
  }

  @Test(
    arguments: [
      ("", "", []), ("4", ".", [0]), ("444", "...", [0, 1, 2]), ("6644", "....", [0, 2, 1, 3]),
      ("4466", "....", [0, 2, 1, 3]), ("66664", ".....", [0, 4, 1, 2, 3]), ("6464", "....", [0, 1, 2, 3]),
      ("664", "x..", [1, 2, 0]), ("664", "xxx", [0, 2, 1]), ("6644", "x.x.", [1, 3, 0, 2]),
    ] as [(String, String, [Int])])
  func order(families: String, failed: String, order: [Int]) {
    #expect(DialOrder.interleaved(isIPv6: families.map { $0 == "6" }, hasFailed: failed.map { $0 == "x" }) == order)
  }
}
