import Testing

@testable import LarkspurTransfers

/// Tests every state of `SessionLinkMachine` with every fact about the runner, the flushes and the end.
///
/// `SessionLinkTaskTests` has the states of a task, and `SessionLinkWalkTests` sequences of facts.
@Suite struct SessionLinkMachineTests {
  typealias Actions = SessionLinkMachine.Actions

  enum Fact: Hashable, CaseIterable {
    /// A runner without tasks, and one that has task 1 and a task of an earlier process.
    case attached, attachedWithTasks
    case inUse, unavailable, earlierSession
    case pauseOver, held, lost, lostEarlier
    case willEnd, close, linkClosed
    case flush, confirmed, unconfirmed
    case begin, beginCancelled

    func apply(to machine: inout SessionLinkMachine, _ actions: inout Actions) {
      switch self {
      case .attached: machine.attached([], into: &actions)
      case .attachedWithTasks:
        machine.attached([SessionLinkMachineTests.task1, SessionLinkMachineTests.task7], into: &actions)
      case .inUse: machine.failed(.inUse, hasEarlierSession: false, into: &actions)
      case .unavailable: machine.failed(SessionLinkMachineTests.gone, hasEarlierSession: false, into: &actions)
      case .earlierSession: machine.failed(.inUse, hasEarlierSession: true, into: &actions)
      case .pauseOver: machine.pauseOver(into: &actions)
      case .held: machine.held(machine.link)
      case .lost: machine.received(.lost(reason: "gone"), from: machine.link, into: &actions)
      case .lostEarlier: machine.received(.lost(reason: "gone"), from: machine.link - 1, into: &actions)
      case .willEnd: _ = machine.willEnd()
      case .close:
        _ = machine.willEnd()
        machine.close(into: &actions)
      case .linkClosed: machine.linkClosed(into: &actions)
      case .flush: machine.flush(2, into: &actions)
      case .confirmed: machine.flushed(1, isConfirmed: true, into: &actions)
      case .unconfirmed: machine.flushed(1, isConfirmed: false, into: &actions)
      case .begin: _ = machine.begin(.running(3), into: &actions)
      case .beginCancelled: _ = machine.begin(.running(3, .canceling), into: &actions)
      }
    }
  }

  static let gone = TransferLinkError.unavailable(reason: "gone")
  static let task1 = TransferRecord.running(1)
  static let task7 = TransferRecord.running(7)

  static func machine(after facts: [Fact]) -> SessionLinkMachine {
    var machine = SessionLinkMachine()
    var actions: Actions = []
    for fact in facts { fact.apply(to: &machine, &actions) }
    return machine
  }

  struct Row: Sendable {
    var name: String
    /// The facts that lead to the state. Task 1 is `begin`, with a number of its own.
    var before: [Fact]
    var state: SessionLinkMachine.State
    /// The actions of each fact. A fact that is missing has none.
    var answers: [Fact: Actions]
    /// The states after facts. A fact that is missing leaves the state.
    var next: [Fact: SessionLinkMachine.State]
    /// The reasons for which `begin` and `beginCancelled` are refused.
    var refusals: [SessionLinkMachine.Refusal?] = [nil, .cancelled]
  }

  private static let adopted: Actions = [.adopt(task7)]
  /// No runner has been sent the program's task: the record is of another process.
  private static let taken1: Actions = [.refuse(1, .link(.inUse)), .adopt(task1)]
  private static let create3: Actions = [.create(.running(3))]
  private static let found1: Actions = [
    .send(.update(task: 1, TransferProperties(task1))), .send(.resume(task: 1)),
  ]
  private static let dismissed7: Actions = [
    .send(.cancel(task: 7, isKeepingContent: false)),
    .send(.acknowledge(task: 7, count: TransferRecord.eventsMax)),
  ]

  /// All states of a session with task 1 and flush 1, if they can be open in that state.
  static let table: [Row] = [
    Row(
      name: "searching", before: [], state: .searching,
      answers: [
        .attached: [.attach, .create(task1), .listen(link: 1), .finishOpening, .flush(1)],
        .attachedWithTasks: [.attach] + taken1 + adopted + [.listen(link: 1), .finishOpening, .flush(1)],
        .inUse: [.refuse(1, .link(.inUse)), .confirmFlush(1), .finishOpening],
        .unavailable: [.refuse(1, .link(gone)), .confirmFlush(1), .finishOpening],
        .earlierSession: [.finishOpening, .pause(.zero)],
        .close: [.finishOpening, .confirmFlush(1), .finishClosing], .confirmed: [.confirmFlush(1)],
      ],
      next: [
        .attached: .attached, .attachedWithTasks: .attached, .inUse: .refused(.inUse), .unavailable: .refused(gone),
        .earlierSession: .waiting(.pausing), .close: .closing(.attempt),
      ]),
    Row(
      name: "waiting, pausing", before: [.earlierSession], state: .waiting(.pausing),
      answers: [
        .pauseOver: [.connect], .close: [.confirmFlush(1), .releaseIdentifier, .finishClosing],
        .confirmed: [.confirmFlush(1)],
      ],
      next: [.pauseOver: .waiting(.connecting), .close: .closed]),
    Row(
      name: "waiting, connecting", before: [.earlierSession, .pauseOver], state: .waiting(.connecting),
      answers: [
        .attached: [
          .attach, .create(task1), .listen(link: 1), .watch(.seconds(30), link: 1), .finishOpening, .flush(1),
        ],
        .attachedWithTasks: [.attach] + taken1 + adopted
          + [.listen(link: 1), .watch(.seconds(30), link: 1), .finishOpening, .flush(1)],
        .inUse: [.refuse(1, .link(.inUse)), .confirmFlush(1)],
        .unavailable: [.pause(.milliseconds(40))], .earlierSession: [.pause(.milliseconds(40))],
        .close: [.confirmFlush(1), .finishClosing], .confirmed: [.confirmFlush(1)],
      ],
      next: [
        .attached: .attached, .attachedWithTasks: .attached, .inUse: .refused(.inUse),
        .unavailable: .waiting(.pausing), .earlierSession: .waiting(.pausing), .close: .closing(.attempt),
      ]),
    Row(
      name: "attached", before: [.attached], state: .attached,
      answers: [
        .lost: [.detach, .pause(.zero)], .close: [.closeLink], .flush: [.flush(2)], .confirmed: [.confirmFlush(1)],
        .begin: create3, .beginCancelled: create3 + [.send(.cancel(task: 3, isKeepingContent: false))],
      ],
      next: [.lost: .lost(.pausing), .close: .closing(.link)], refusals: [nil, nil]),
    Row(
      name: "lost, pausing", before: [.attached, .lost], state: .lost(.pausing),
      answers: [
        .pauseOver: [.connect], .close: [.confirmFlush(1), .releaseIdentifier, .finishClosing],
        .confirmed: [.confirmFlush(1)],
      ],
      next: [.pauseOver: .lost(.connecting), .close: .closed]),
    Row(
      name: "lost, connecting", before: [.attached, .lost, .pauseOver], state: .lost(.connecting),
      answers: [
        .attached: [.attach, .create(task1), .listen(link: 2), .watch(.seconds(30), link: 2), .flush(1)],
        .attachedWithTasks: [.attach] + dismissed7 + found1
          + [.listen(link: 2), .watch(.seconds(30), link: 2), .flush(1)],
        .inUse: [.pause(.milliseconds(40))], .unavailable: [.pause(.milliseconds(40))],
        .earlierSession: [.pause(.milliseconds(40))], .close: [.confirmFlush(1), .finishClosing],
        .confirmed: [.confirmFlush(1)],
      ],
      next: [
        .attached: .attached, .attachedWithTasks: .attached, .inUse: .lost(.pausing), .unavailable: .lost(.pausing),
        .earlierSession: .lost(.pausing), .close: .closing(.attempt),
      ]),
    Row(
      name: "refused", before: [.unavailable], state: .refused(gone),
      answers: [.close: [.finishClosing], .flush: [.confirmFlush(2)]],
      next: [.close: .closed], refusals: [.link(gone), .link(gone)]),
    Row(
      name: "closing the runner", before: [.attached, .close], state: .closing(.link),
      answers: [
        .linkClosed: [.confirmFlush(1), .releaseIdentifier, .finishClosing], .flush: [.confirmFlush(2)],
        .confirmed: [.confirmFlush(1)], .unconfirmed: [.confirmFlush(1)],
      ],
      next: [.linkClosed: .closed], refusals: [.cancelled, .cancelled]),
    Row(
      name: "closing, an attempt in flight", before: [.close], state: .closing(.attempt),
      answers: [
        .attached: [.attach, .closeLink], .attachedWithTasks: [.attach, .closeLink], .inUse: [.releaseIdentifier],
        .unavailable: [.releaseIdentifier], .earlierSession: [.releaseIdentifier], .flush: [.confirmFlush(2)],
      ],
      next: [
        .attached: .closing(.late), .attachedWithTasks: .closing(.late), .inUse: .closed, .unavailable: .closed,
        .earlierSession: .closed,
      ], refusals: [.cancelled, .cancelled]),
    Row(
      name: "closing a late runner", before: [.close, .attached], state: .closing(.late),
      answers: [.linkClosed: [.releaseIdentifier], .flush: [.confirmFlush(2)]],
      next: [.linkClosed: .closed], refusals: [.cancelled, .cancelled]),
    Row(
      name: "closed", before: [.attached, .close, .linkClosed], state: .closed,
      answers: [.flush: [.confirmFlush(2)]], next: [:], refusals: [.cancelled, .cancelled]),
  ]

  /// The state of a row, with task 1 and flush 1.
  private static func machine(in row: Row) -> SessionLinkMachine {
    var machine = SessionLinkMachine()
    var actions: Actions = []
    _ = machine.begin(task1, into: &actions)
    machine.flush(1, into: &actions)
    for fact in row.before { fact.apply(to: &machine, &actions) }
    return machine
  }

  @Test(arguments: table.indices) func everyStateAndFact(index: Int) {
    let row = Self.table[index]
    for isEnding in [false, true] {
      for fact in Fact.allCases {
        var machine = Self.machine(in: row)
        if isEnding { _ = machine.willEnd() }
        var actions: Actions = []
        fact.apply(to: &machine, &actions)
        #expect(actions == row.answers[fact, default: []], "\(row.name), \(fact)")
        #expect(machine.state == row.next[fact] ?? row.state, "\(row.name), \(fact)")
      }
    }
  }

  @Test(arguments: table.indices) func tasksAreRefused(index: Int) {
    let row = Self.table[index]
    let states = [TransferRecord.State.running, .canceling]
    for (state, refusal) in zip(states, row.refusals) {
      var machine = Self.machine(in: row)
      var actions: Actions = []
      #expect(machine.begin(.running(3, state), into: &actions) == refusal, "\(row.name), \(state)")
      #expect((machine.tasks[3] == nil) == (refusal != nil))
    }
  }

  /// Each attempt that fails makes the next pause longer. The first loss needs none.
  @Test func thePausesGrow() {
    var machine = SessionLinkMachine()
    var pauses: [Duration] = []
    func note(_ actions: Actions) {
      for case .pause(let pause) in actions { pauses.append(pause) }
    }
    var actions: Actions = []
    machine.attached([], into: &actions)
    machine.received(.lost(reason: ""), from: 1, into: &actions)
    for _ in 0..<60 {
      machine.pauseOver(into: &actions)
      machine.failed(Self.gone, hasEarlierSession: false, into: &actions)
    }
    note(actions)
    #expect(pauses.prefix(4) == [.zero, .milliseconds(40), .milliseconds(80), .milliseconds(160)])
    #expect(pauses.last == .seconds(30) && zip(pauses, pauses.dropFirst()).allSatisfy { $0 <= $1 })
  }

  /// The first loss of a runner that has held for a while needs no pause, however many there were before it.
  @Test(arguments: [false, true]) func aLinkThatHasHeldIsNoLongerWatched(isHeld: Bool) {
    var machine = Self.machine(after: [.attached])
    for loss in 1...20 {
      var actions: Actions = []
      // The watch of an earlier runner, or of one that is gone, is none of this runner.
      machine.held(machine.link - 1)
      if isHeld { machine.held(machine.link) }
      machine.received(.lost(reason: ""), from: machine.link, into: &actions)
      machine.held(machine.link)
      let isFirst = isHeld || loss == 1
      #expect(actions.contains(.pause(.zero)) == isFirst)
      machine.pauseOver(into: &actions)
      machine.attached([], into: &actions)
      #expect(actions.last == .watch(.seconds(30), link: machine.link))
    }
  }

  /// Sessions with the same identifier wait for a session that has it, or may still get it.
  @Test(arguments: table.indices) func anEndIsAwaitedOnce(index: Int) {
    let row = Self.table[index]
    var machine = Self.machine(in: row)
    #expect(machine.willEnd() == (!row.before.contains(.close) && row.state != .refused(Self.gone)), "\(row.name)")
    #expect(!machine.willEnd() && machine.isEnding)
  }

  /// A program that ends waits for the journal unless no runner has been found and no task waits for one.
  @Test(arguments: table.indices) func thereIsNothingToFlush(index: Int) {
    let row = Self.table[index]
    #expect(!Self.machine(in: row).hasNothingToFlush)
    let isWaiting = [.searching, .waiting(.pausing), .waiting(.connecting)].contains(row.state)
    #expect(Self.machine(after: row.before).hasNothingToFlush == isWaiting)
  }

  // MARK: - Products of two states

  /// A session that ends while its runner is lost, and while a flush waits.
  @Test(arguments: [[], [Fact.pauseOver]]) func aLostSessionEnds(before: [Fact]) {
    var machine = Self.machine(after: [.attached, .lost, .willEnd] + before)
    var actions: Actions = []
    machine.flush(5, into: &actions)
    #expect(actions.isEmpty)
    machine.close(into: &actions)
    let isConnecting = !before.isEmpty
    #expect(actions == [.confirmFlush(5)] + (isConnecting ? [.finishClosing] : [.releaseIdentifier, .finishClosing]))
    actions = []
    machine.attached([Self.task7], into: &actions)
    machine.linkClosed(into: &actions)
    #expect(actions == (isConnecting ? [.attach, .closeLink, .releaseIdentifier] : []))
    #expect(machine.state == .closed)
  }

  /// The confirmation of a flush and the loss of the runner cross.
  @Test func aFlushIsConfirmedOnce() {
    for isConfirmed in [false, true] {
      var machine = Self.machine(after: [.attached])
      var actions: Actions = []
      machine.flush(5, into: &actions)
      machine.received(.lost(reason: ""), from: 1, into: &actions)
      machine.flushed(5, isConfirmed: isConfirmed, into: &actions)
      machine.pauseOver(into: &actions)
      machine.attached([], into: &actions)
      machine.flushed(5, isConfirmed: true, into: &actions)
      #expect(actions.count { $0 == .confirmFlush(5) } == 1)
      #expect(actions.count { $0 == .flush(5) } == (isConfirmed ? 1 : 2))
    }
  }

  /// A program that invalidates its session while the first runner is searched for.
  @Test func anEndingSessionFindsItsTasks() {
    var machine = Self.machine(after: [.willEnd])
    var actions: Actions = []
    machine.attached([.running(7)], into: &actions)
    #expect(actions.contains(.adopt(.running(7))) && actions.contains(.finishOpening))
    machine.cancel(7, isKeepingContent: false, into: &actions)
    #expect(actions.last == .send(.cancel(task: 7, isKeepingContent: false)))
  }
}

extension TransferRecord {
  static func running(_ task: Int, _ state: State = .running, _ events: [Event] = []) -> TransferRecord {
    var record = Fixture.plain(task: task)
    record.state = state
    record.events = events
    return record
  }
}
