import Testing

@testable import LarkspurTransfers

/// Tests every state of a task of `SessionLinkMachine`, with and without a runner, with every fact about the task.
@Suite struct SessionLinkTaskTests {
  typealias Actions = SessionLinkMachine.Actions

  /// The facts about task 1.
  enum Fact: Hashable, CaseIterable {
    case suspend, resume, cancel, update
    case changed, continued, completed, progressed, question, answer
    case report, acknowledge, ended, left, leftCancelled, deliverLeft, offerLeft
    case rejected, rejectedForNow

    /// - Returns: The machine's own answer, as text.
    @discardableResult
    func apply(to machine: inout SessionLinkMachine, _ actions: inout Actions) -> String? {
      func receive(_ notice: TransferNotice) {
        machine.received(notice, from: machine.link, into: &actions)
      }
      switch self {
      case .suspend: machine.suspensionChanged(of: 1, isSuspended: true, into: &actions)
      case .resume: machine.suspensionChanged(of: 1, isSuspended: false, into: &actions)
      case .cancel: machine.cancel(1, isKeepingContent: true, into: &actions)
      case .update: machine.update(1, properties, into: &actions)
      case .changed: receive(.changed(.running(1)))
      case .continued: receive(.changed(.running(1, .running, [resumed])))
      case .completed: receive(.changed(.running(1, .completed, [.downloaded, .completed])))
      case .progressed: receive(.progress(task: 1, counts(10)))
      case .question: receive(.question(4, task: 1, .beginDelayed))
      case .answer: machine.answered(4, .cancel, to: machine.link, into: &actions)
      case .report: return machine.report(1).map { "\($0)" }
      case .acknowledge: machine.acknowledgeResumption(of: 1, by: machine.link, into: &actions)
      case .ended: machine.ended(1, into: &actions)
      case .left: return machine.left(1, isCancelled: false, into: &actions) ? "over" : nil
      case .leftCancelled: return machine.left(1, isCancelled: true, into: &actions) ? "over" : nil
      case .deliverLeft: machine.deliverLeft(into: &actions)
      case .offerLeft: return machine.offerLeft().isEmpty ? nil : "offered"
      case .rejected: machine.rejected(1, isReadable: false, into: &actions)
      case .rejectedForNow: machine.rejected(1, isReadable: true, into: &actions)
      }
      return nil
    }
  }

  static let properties = TransferProperties(description: "mine", priority: 1)
  static let resumed = TransferRecord.Event.resumed(offset: 5, expected: 9)

  static func counts(_ received: Int64) -> TransferRecord.Counts {
    var counts = TransferRecord.Counts()
    counts.received = received
    return counts
  }

  struct Row: Sendable {
    var name: String
    /// Whether the runner is found before the facts, and lost after them.
    var isFound = true, isLost = false
    /// Whether the task begins before the first runner is found, or else at the end.
    var beginsLate = false
    var before: [Fact] = []
    /// The state of the task, or `nil` if there is none.
    var phase: TransferTask.Phase?
    var answers: [Fact: Actions]
    /// The phases after facts. A fact that is missing leaves the phase.
    var next: [Fact: TransferTask.Phase] = [:]
    /// The fact, beside `rejected`, that removes the task.
    var last: Fact?
    var values: [Fact: String] = [:]
  }

  private static let acknowledged = Actions.Element.send(
    .acknowledge(task: 1, count: TransferRecord.eventsMax))
  private static let cancelled = Actions.Element.send(.cancel(task: 1, isKeepingContent: true))
  private static let dismissed: Actions = [.send(.cancel(task: 1, isKeepingContent: false)), acknowledged]
  private static let answered: Actions = [.send(.answer(question: 4, .cancel))]
  private static let acknowledgedResumption: Actions = [.send(.acknowledge(task: 1, count: 1))]
  /// The actions that do not depend on the task.
  private static let always: [Fact: Actions] = [.answer: answered, .acknowledge: acknowledgedResumption]
  private static let asked: [Fact: Actions] = [
    .question: [.send(.answer(question: 4, .continueLoading))]
  ]
  private static let commands: [Fact: Actions] = [
    .suspend: [.send(.suspend(task: 1))], .resume: [.send(.resume(task: 1))],
    .update: [.send(.update(task: 1, properties))], .cancel: [cancelled],
  ]
  private static let end: [Fact: Actions] = [.completed: [.call(.end(1))]]
  private static let continued: [Fact: Actions] = [
    .continued: [.call(.resumed(1, offset: 5, expected: 9, link: 1))]
  ]

  private static func all(_ parts: [Fact: Actions]...) -> [Fact: Actions] {
    parts.reduce([:]) { $0.merging($1) { $1 } }
  }

  static let table: [Row] = [
    // An end that comes once more is acknowledged once more: the runner had lost it.
    Row(
      name: "unknown", before: [.completed, .cancel], phase: nil,
      answers: all(always, asked, [.completed: [acknowledged]])),
    Row(
      name: "new", isFound: false, phase: .new, answers: [.cancel: [.refuse(1, .cancelled)]],
      last: .cancel),
    Row(
      name: "new while lost", isLost: true, beginsLate: true, phase: .new,
      answers: [.cancel: [.refuse(1, .cancelled)]],
      last: .cancel),
    Row(
      name: "sent", phase: .sent,
      answers: all(
        always, commands, end, continued,
        [
          .progressed: [.show(1), .call(.progress(1))], .question: [.ask(4, task: 1, .beginDelayed, link: 1)],
          .rejected: dismissed,
        ]),
      next: [.completed: .ending]),
    Row(
      name: "sent, with progress", before: [.progressed], phase: .sent,
      answers: all(
        always, commands, end, continued,
        [.progressed: [.show(1)], .question: [.ask(4, task: 1, .beginDelayed, link: 1)], .rejected: dismissed]),
      next: [.completed: .ending], values: [.report: "10"]),
    Row(
      name: "sent, with reported progress", before: [.progressed, .report], phase: .sent,
      answers: all(
        always, commands, end, continued,
        [.progressed: [.show(1)], .question: [.ask(4, task: 1, .beginDelayed, link: 1)], .rejected: dismissed]),
      next: [.completed: .ending]),
    Row(
      name: "sent, and continued", before: [.continued], phase: .sent,
      answers: all(
        always, commands, end,
        [
          .progressed: [.show(1), .call(.progress(1))], .question: [.ask(4, task: 1, .beginDelayed, link: 1)],
          .rejected: dismissed,
        ]),
      next: [.completed: .ending]),
    Row(
      name: "cancelled", before: [.cancel], phase: .sent,
      answers: all(always, commands, end, continued, [.progressed: [.show(1)], .rejected: dismissed]),
      next: [.completed: .ending]),
    Row(
      name: "sent, lost", isLost: true, phase: .sent, answers: [:]),
    Row(
      name: "ending", before: [.completed], phase: .ending,
      answers: all(
        always,
        [
          .ended: [acknowledged], .leftCancelled: [.call(.left)], .deliverLeft: [.call(.left)], .rejected: dismissed,
        ]),
      next: [.left: .left, .leftCancelled: .left], last: .ended),
    Row(
      name: "ending, cancelled", before: [.completed, .cancel], phase: .ending,
      answers: all(
        always,
        [
          .ended: [acknowledged], .left: [.call(.left)], .leftCancelled: [.call(.left)], .deliverLeft: [.call(.left)],
          .rejected: dismissed,
        ]),
      next: [.left: .left, .leftCancelled: .left], last: .ended),
    Row(
      name: "ending, lost", isLost: true, before: [.completed], phase: .ending,
      answers: [.leftCancelled: [.call(.left)], .deliverLeft: [.call(.left)]],
      next: [.left: .left, .leftCancelled: .left], last: .ended),
    Row(
      name: "left", before: [.completed, .left], phase: .left,
      answers: all(always, [.cancel: [.call(.left)], .deliverLeft: [.call(.left)], .rejected: dismissed]),
      next: [.offerLeft: .ending], values: [.offerLeft: "offered"]),
    Row(
      name: "left, lost", isLost: true, before: [.completed, .left], phase: .left,
      answers: [.cancel: [.call(.left)], .deliverLeft: [.call(.left)]],
      next: [.offerLeft: .ending], values: [.offerLeft: "offered"]),
    Row(
      name: "kept", before: [.rejectedForNow], phase: .kept, answers: all(always, [.rejected: dismissed])),
  ]

  /// The machine in the state of a row. Task 1 of the row "unknown" has another number.
  private static func machine(in row: Row) -> SessionLinkMachine {
    var machine = SessionLinkMachine()
    var actions: Actions = []
    let record = TransferRecord.running(row.phase == nil ? 2 : 1)
    if !row.beginsLate { _ = machine.begin(record, into: &actions) }
    if row.isFound { machine.attached([], into: &actions) }
    for fact in row.before { fact.apply(to: &machine, &actions) }
    if row.isLost { machine.received(.lost(reason: ""), from: 1, into: &actions) }
    if row.beginsLate { _ = machine.begin(record, into: &actions) }
    return machine
  }

  private static func phase(after fact: Fact, in row: Row) -> TransferTask.Phase? {
    if row.phase == nil || fact == .rejected || fact == row.last { return nil }
    return fact == .rejectedForNow ? .kept : row.next[fact] ?? row.phase
  }

  @Test(arguments: table.indices) func everyStateAndFact(index: Int) {
    let row = Self.table[index]
    #expect(Self.machine(in: row).tasks[1]?.phase == row.phase, "\(row.name)")
    for fact in Fact.allCases {
      var machine = Self.machine(in: row)
      var actions: Actions = []
      let value = fact.apply(to: &machine, &actions)
      #expect(actions == row.answers[fact, default: []], "\(row.name), \(fact)")
      #expect(machine.tasks[1]?.phase == Self.phase(after: fact, in: row), "\(row.name), \(fact)")
      #expect(value == row.values[fact], "\(row.name), \(fact)")
    }
  }

  /// A program chooses the identifier of a task before it has the runner. Another process may have had the session
  /// meanwhile: the new task ends, and takes no record of another task for its own.
  @Test(arguments: [false, true]) func theIdentifierOfATaskIsTaken(isLost: Bool) {
    var machine = Self.machine(
      in: Row(name: "", isFound: isLost, isLost: isLost, beginsLate: isLost, phase: .new, answers: [:]))
    var pause: Actions = []
    machine.pauseOver(into: &pause)
    for record in [TransferRecord.running(1), .running(1, .completed, [.downloaded, .completed])] {
      var (machine, actions) = (machine, Actions())
      machine.attached([record], into: &actions)
      let isEnded = record.state == .completed
      #expect(actions.contains(.refuse(1, .link(.inUse))) && actions.contains(.adopt(record)))
      #expect(actions.contains(.call(.end(1))) == isEnded)
      #expect(!actions.contains { if case .send = $0 { true } else if case .create = $0 { true } else { false } })
      #expect(machine.tasks[1]?.phase == (isEnded ? .ending : .sent))
    }
  }

  /// The next runner is sent what the program has made of its tasks.
  @Test func commandsAreSentAgain() {
    for (before, last) in [
      ([Fact.suspend], TransferCommand.suspend(task: 1)), ([.suspend, .resume], .resume(task: 1)),
      ([.cancel], .cancel(task: 1, isKeepingContent: true)),
      ([.suspend, .cancel, .resume], .cancel(task: 1, isKeepingContent: true)),
    ] {
      for isKnown in [true, false] {
        var machine = Self.machine(in: Row(name: "", phase: .sent, answers: [:]))
        var actions: Actions = []
        machine.received(.lost(reason: ""), from: 1, into: &actions)
        for fact in [.update] + before { fact.apply(to: &machine, &actions) }
        machine.pauseOver(into: &actions)
        actions = []
        machine.attached(isKnown ? [.running(1)] : [], into: &actions)
        var record = TransferRecord.running(1)
        record.take(Self.properties)
        let state = last == .resume(task: 1) && !isKnown ? [] : [Actions.Element.send(last)]
        let start: Actions.Element = isKnown ? .send(.update(task: 1, Self.properties)) : .create(record)
        #expect(actions == [.attach, start] + state + [.listen(link: 2), .watch(.seconds(30), link: 2)])
      }
    }
  }

  /// The end that a runner reports after a loss is delivered once, whatever the next runner has of the task.
  @Test(arguments: [TransferRecord.State.completed, .running, nil]) func anEndOutlivesItsRunner(
    state: TransferRecord.State?
  ) {
    var machine = Self.machine(in: Row(name: "", isLost: true, before: [.completed], phase: .ending, answers: [:]))
    var actions: Actions = []
    machine.pauseOver(into: &actions)
    machine.attached(state.map { [.running(1, $0, $0 == .completed ? [.completed] : [])] } ?? [], into: &actions)
    #expect(actions == [.connect, .attach, .listen(link: 2), .watch(.seconds(30), link: 2)])
    actions = []
    machine.ended(1, into: &actions)
    // A runner that has lost the end stops the task.
    #expect(actions == (state == .running ? Self.dismissed : [Self.acknowledged]))
  }

  /// An end that is delivered while there is no runner is acknowledged to the next one.
  @Test func anEndIsAcknowledgedLater() {
    var machine = Self.machine(in: Row(name: "", isLost: true, before: [.completed], phase: .ending, answers: [:]))
    var actions: Actions = []
    machine.ended(1, into: &actions)
    machine.pauseOver(into: &actions)
    #expect(actions == [.connect])
    machine.attached([.running(1, .completed, [.completed])], into: &actions)
    #expect(actions == [.connect, .attach, Self.acknowledged, .listen(link: 2), .watch(.seconds(30), link: 2)])
  }

  /// A file that a session leaves with its end stays in the journal, also if the runner is replaced after that.
  @Test func aKeptFileOutlivesItsRunner() {
    var machine = Self.machine(in: Row(name: "", before: [.completed], phase: .ending, answers: [:]))
    _ = machine.willEnd()
    var actions: Actions = []
    #expect(machine.left(1, isCancelled: false, into: &actions))
    machine.received(.lost(reason: ""), from: 1, into: &actions)
    machine.pauseOver(into: &actions)
    actions = []
    machine.attached([.running(1, .completed, [.downloaded, .completed])], into: &actions)
    #expect(actions == [.attach, .listen(link: 2), .watch(.seconds(30), link: 2)])
  }

  /// The tasks of earlier processes, with what the delegate has not been given.
  @Test func tasksAreAdopted() {
    let records: [TransferRecord] = [
      .running(1), .running(2, .suspended), .running(3, .completed, [Self.resumed, .completed]), .running(4),
    ]
    var machine = SessionLinkMachine()
    var actions: Actions = []
    machine.attached(records, into: &actions)
    let calls: Actions = [.call(.resumed(3, offset: 5, expected: 9, link: 1)), .call(.end(3))]
    #expect(
      actions == [.attach] + records.prefix(3).map(Actions.Element.adopt) + calls
        + [.adopt(records[3]), .call(.finishEvents), .listen(link: 1), .finishOpening])
  }

  /// Notices and answers that belong to a lost runner have no effect on the next one.
  @Test func anRunnerHasItsOwnQuestions() {
    var machine = Self.machine(in: Row(name: "", phase: .sent, answers: [:]))
    var actions: Actions = []
    machine.received(.question(4, task: 1, .beginDelayed), from: 1, into: &actions)
    machine.received(.lost(reason: ""), from: 1, into: &actions)
    machine.pauseOver(into: &actions)
    machine.attached([.running(1)], into: &actions)
    actions = []
    machine.answered(4, .cancel, to: 1, into: &actions)
    machine.acknowledgeResumption(of: 1, by: 1, into: &actions)
    machine.received(.changed(.running(1, .completed, [.completed])), from: 1, into: &actions)
    #expect(actions.isEmpty)
  }

  /// Counts that fall, because an attempt starts over, bring no byte twice.
  @Test func noByteIsReportedTwice() {
    var machine = Self.machine(in: Row(name: "", phase: .sent, answers: [:]))
    var (actions, reports): (Actions, [Int64?]) = ([], [])
    for count: Int64 in [400, 300, 1000, 1000, -1] {
      machine.received(.progress(task: 1, Self.counts(count)), from: 1, into: &actions)
      reports.append(machine.report(1))
    }
    #expect(reports == [400, 0, 600, nil, 0])
  }
}
