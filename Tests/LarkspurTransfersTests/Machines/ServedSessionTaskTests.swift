import Testing

@testable import LarkspurTransfers

/// The tasks of a served session and their questions, in more than one step of its machine.
@Suite struct ServedSessionTaskTests {
  typealias Machine = ServedSessionMachine
  typealias Tests = ServedSessionMachineTests

  // MARK: - Tasks

  /// A session without work, or whose tasks all wait for a program, launches it if there is news, and a launch command.
  @Test func launches() {
    let end = Fixture.plain(.completed, events: [.completed])
    for isLaunched in [true, false] {
      var machine = Machine(isLaunched ? Tests.session : Tests.otherSession)
      var actions: Machine.Actions = []
      machine.enter(1, .restore, into: &actions)
      machine.made(1, [end, Fixture.plain(.running, task: 2)], into: &actions)
      machine.leave(1, into: &actions)
      // The launch waits for the last task.
      #expect(actions.map(Tests.words).last == "start(1)")
      actions = []
      machine.received(.question(1, task: 2, .challenge(Fixture.challenge)), from: 1, into: &actions)
      machine.received(.changed(Fixture.plain(.completed, task: 2, events: [.completed])), from: 1, into: &actions)
      #expect(actions.map(Tests.words) == (isLaunched ? ["launch", "log", "close", "launch"] : ["log", "close"]))
    }
  }

  /// A question without an answer is asked again, and one that has its answer is not.
  @Test func theNextProgramIsAsked() {
    var machine = Tests.machine(at: .attached)
    var actions: Machine.Actions = []
    for number in 1...3 as ClosedRange<UInt64> {
      machine.received(.question(number, task: 1, .challenge(Fixture.challenge)), from: 1, into: &actions)
    }
    #expect(machine.commanded(1, .answer(question: 2, .cancel), into: &actions))
    machine.received(.question(4, task: 1, .beginDelayed), from: 1, into: &actions)
    actions = []
    machine.leave(1, into: &actions)
    machine.enter(2, .attach(Tests.session), into: &actions)
    #expect(
      actions.map(Tests.words) == ["default(4)", "launch", "store", "welcome2(1)", "ask2(1)", "ask2(3)", "admit2"])
  }

  @Test func tasksAreLimited() {
    var machine = Machine(Tests.session)
    var actions: Machine.Actions = []
    machine.enter(1, .attach(Tests.session), into: &actions)
    machine.made(1, (1...TransferSession.tasksMax).map { Fixture.plain(.suspended, task: $0) }, into: &actions)
    actions = []
    let new = Fixture.plain(.running, task: TransferSession.tasksMax + 1)
    #expect(!machine.commanded(1, .create(new), into: &actions) && actions.isEmpty)
  }

  // MARK: - Questions

  /// A program with tasks, and the numbers of the questions in the actions.
  private static func asking(_ tasks: Int) -> Machine {
    var machine = Machine(Tests.session)
    var actions: Machine.Actions = []
    machine.enter(1, .attach(Tests.session), into: &actions)
    machine.made(1, (1...tasks).map { Fixture.plain(.running, task: $0) }, into: &actions)
    return machine
  }

  private static func asked(_ actions: Machine.Actions) -> [UInt64] {
    actions.compactMap { if case .notify(_, .question(let number, _, _)) = $0 { number } else { nil } }
  }

  /// A program that reads slowly gets all questions in their order, never more than its sendQueue holds, and none of a task after
  /// its end.
  @Test func aSlowProgramIsAskedEverything() {
    let most = Machine.questionsMax
    var machine = Self.asking(most + 5)
    var actions: Machine.Actions = []
    for task in 1...most + 5 {
      machine.received(.question(UInt64(task), task: task, .challenge(Fixture.challenge)), from: 1, into: &actions)
    }
    #expect(Self.asked(actions) == Array(1...UInt64(most)))
    actions = []
    // A handshake does not wait for the program, and fails by itself.
    machine.received(.question(5_000, task: 1, .trust(Fixture.trust)), from: 1, into: &actions)
    machine.received(
      .changed(Fixture.plain(.completed, task: most + 2, events: [.completed])), from: 1, into: &actions)
    #expect(actions.map(Tests.words) == ["default(5000)", "notify1"])
    actions = []
    for _ in 0..<most { machine.questionTaken(1, into: &actions) }
    #expect(Self.asked(actions) == [1, 3, 4, 5].map { UInt64(most + $0) })
  }

  /// A program that never answers holds no more questions than connections that a task may have.
  @Test(arguments: [TransferQuestion.trust(Fixture.trust), .challenge(Fixture.challenge)])
  func questionsThatAreNeverAnswered(question: TransferQuestion) {
    var machine = Self.asking(1)
    var actions: Machine.Actions = []
    machine.received(.question(1, task: 1, .challenge(Fixture.challenge)), from: 1, into: &actions)
    machine.received(.question(2, task: 1, .trust(Fixture.trust)), from: 1, into: &actions)
    let most = UInt64(Machine.questionsOfTaskMax)
    for number in 3...most + 2 { machine.received(.question(number, task: 1, question), from: 1, into: &actions) }
    // Questions of the other kind stay.
    let cancelled = question.waitsForProgram ? "cancel(1)" : "cancel(2)"
    #expect(actions.map(Tests.words).filter { $0.hasPrefix("cancel") } == [cancelled])
    #expect(machine.questions.count == Int(most) + 1)
  }
}
