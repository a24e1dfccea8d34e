import TestKit
import Testing

@testable import LarkspurTransfers

/// The machine of a served session under random facts, compared with simple bookkeeping.
@Suite(.ownThread) struct ServedSessionWalkTests {
  typealias Machine = ServedSessionMachine

  /// All that surrounds the machine: visits, programs and runners that answer at any time, or never.
  struct Books {
    enum Visit: Equatable {
      case waiting
      case making
      case admitted
    }

    var machine = Machine(ServedSessionMachineTests.session)
    var visits: [Int: (state: Visit, isProgram: Bool)] = [:]
    var lastVisit = 0
    /// The program whose state is asked for.
    var probe: Int?
    /// The visits whose wait is limited.
    var limited: Set<Int> = []
    /// The program that has been sent the tasks.
    var program: Int?
    /// The questions in the program's sendQueue.
    var sendQueue: [UInt64] = []
    /// The questions that the program knows and has not answered.
    var asked: Set<UInt64> = []
    /// Whether there is a runner, whether it was started, and whether it gives the session up.
    var (isMade, isStarted, isClosing) = (false, false, false)
    var generation = 0
    /// The tasks of the runner: those that run, and those that have ended with events.
    var (running, ended): (Set<Int>, Set<Int>) = ([], [])
    var lastTask = 0
    /// The questions that the runner has asked and that have no answer, with their tasks.
    var questions: [UInt64: Int] = [:]
    var lastQuestion: UInt64 = 0
    /// The flushes that the runner has been asked for.
    var flushes: Set<Int> = []
    /// The flushes that have not completed.
    var open: Set<Int> = []
    var lastFlush = 0
    var (isEnded, isFinished) = (false, false)

    mutating func apply(_ actions: Machine.Actions) throws {
      for action in actions { try apply(action) }
      try check()
    }

    private mutating func apply(_ action: Machine.Action) throws {
      switch action {
      case .say(let visit, let word):
        let state = try #require(visits[visit]?.state, "a word for a visit that is over")
        limited.remove(visit)
        switch word {
        case .admitted:
          try #require(state != .admitted && isMade && !isClosing)
          visits[visit]?.state = .admitted
        case .wait:
          try #require(state == .waiting)
          limited.insert(visit)
        case .make:
          let isMaking = visits.contains { $0.key != visit && $0.value.state == .making }
          try #require(state != .admitted && !isMade && !isMaking)
          visits[visit]?.state = .making
        case .refused, .over:
          try #require(state != .admitted)
          // The one that makes a runner gets its word when it has reported.
          if !(word == .over && state == .making) { visits[visit] = nil }
        }
      case .probe(let visit):
        try #require(visits[visit]?.state == .admitted && machine.program?.id == visit)
        probe = visit
      case .store: try #require(isMade && !isClosing)
      case .welcome(let visit, _):
        try #require(program == nil, "a program is attached twice")
        program = visit
        (sendQueue, asked) = ([], [])
      case .notify(let visit, let notice):
        try #require(visit == program)
        guard case .question(let number, let task, _) = notice else { return }
        try #require(questions[number] == task && running.contains(task), "a question that is not open")
        let isNew = asked.insert(number).inserted
        try #require(isNew, "a question is sent twice")
        sendQueue.append(number)
      case .dismiss(let visit): try #require(visit == program)
      case .launch: try #require(program == nil && !isEnded)
      case .start(let generation):
        try #require(isMade && !isStarted && !isClosing)
        (isStarted, self.generation) = (true, generation)
      case .pass(let command):
        try #require(isMade && !isClosing, "a command for a runner that is gone")
        perform(command)
      case .flush(let flush):
        let isNew = flushes.insert(flush).inserted
        try #require(isMade && !isClosing && isNew)
      case .close:
        try #require(isMade && !isClosing, "a runner is closed twice")
        isClosing = true
        (questions, running, ended) = ([:], [], [])
      case .complete(let flush, let isConfirmed):
        let wasOpen = open.remove(flush) != nil
        try #require(wasOpen, "a flush completes twice")
        try #require(!isConfirmed || !flushes.contains(flush), "the runner has confirmed nothing")
      case .log: break
      case .rest: try #require(!isMade && !visits.values.contains { $0.state == .admitted })
      case .finish:
        try #require(isEnded && !isFinished)
        isFinished = true
      }
    }

    private mutating func perform(_ command: TransferCommand) {
      switch command {
      case .create(let record): running.insert(record.task)
      case .acknowledge(let task, _): ended.remove(task)
      case .answer(let question, _): questions[question] = nil
      case .cancel, .resume, .suspend, .update: break
      }
    }

    private func check() throws {
      try #require(!machine.isOpen || isMade && !isClosing)
      try #require(Set(machine.questions.keys).isSubset(of: questions.keys), "a question is open that has an answer")
      try #require(machine.questions.values.allSatisfy { running.contains($0.task) })
      try #require(sendQueue.count <= Machine.questionsMax)
      if machine.isOpen, machine.program == nil {
        try #require(
          !machine.questions.values.contains { !$0.question.waitsForProgram }, "a handshake waits for nothing")
        // Without a visit, the runner has something to do.
        try #require(!machine.line.isEmpty || !machine.guests.isEmpty || !running.isEmpty)
      }
      try #require(open == machine.flushes)
    }

    // MARK: - Facts

    mutating func step(_ random: inout SeededGenerator) throws {
      var actions: Machine.Actions = []
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<10: enter(&random, &actions)
      case 10..<15:
        guard let visit = pick(visits.filter { $0.value.state == .admitted }.keys, &random) else { return }
        leave(visit, &actions)
      case 15..<22: try answerProbe(Bool.random(using: &random), &actions)
      case 22..<24:
        guard let visit = pick(limited, &random) else { return }
        machine.waitedTooLong(visit, into: &actions)
      case 24..<34: make(Int.random(in: 0..<4, using: &random) > 0, &random, &actions)
      case 34..<44: closed(&actions)
      case 44..<52:
        guard let task = pick(running, &random), isStarted, !isClosing else { return }
        end(task, &actions)
      case 52..<66:
        guard let task = pick(running, &random), isStarted, !isClosing else { return }
        lastQuestion += 1
        questions[lastQuestion] = task
        let kinds: [TransferQuestion] = [.beginDelayed, .challenge(Fixture.challenge), .trust(Fixture.trust)]
        let kind = kinds[Int.random(in: 0..<3, using: &random)]
        machine.received(.question(lastQuestion, task: task, kind), from: generation, into: &actions)
      case 66..<67:
        guard isStarted, !isClosing else { return }
        machine.received(.lost(reason: "gone"), from: generation, into: &actions)
      case 67..<75: command(&random, &actions)
      case 75..<80:
        lastFlush += 1
        open.insert(lastFlush)
        machine.flush(lastFlush, into: &actions)
      case 80..<88:
        guard let flush = pick(flushes, &random) else { return }
        flushes.remove(flush)
        machine.flushed(flush, isConfirmed: Bool.random(using: &random), into: &actions)
      case 88..<96:
        guard let program, !sendQueue.isEmpty else { return }
        sendQueue.removeFirst()
        machine.questionTaken(program, into: &actions)
      case 96..<98: _ = machine.administered(.pause, .some([]), into: &actions)
      case 98..<99: stray(&random, &actions)
      default:
        guard Int.random(in: 0..<5, using: &random) == 0 else { return }
        finish(&actions)
      }
      try apply(actions)
    }

    private func pick<Value: Comparable>(_ values: some Collection<Value>, _ random: inout SeededGenerator) -> Value? {
      values.sorted().randomElement(using: &random)
    }

    private mutating func enter(_ random: inout SeededGenerator, _ actions: inout Machine.Actions) {
      guard visits.count < 6 else { return }
      typealias Tests = ServedSessionMachineTests
      let wishes: [Machine.Wish] = [
        .attach(Tests.session), .attach(Tests.session), .attach(Tests.otherSession), .attach(Tests.foreignSession),
        .open,
        .restore,
      ]
      let wish = wishes[Int.random(in: 0..<wishes.count, using: &random)]
      lastVisit += 1
      visits[lastVisit] = (.waiting, wish.isOfProgram)
      machine.enter(lastVisit, wish, into: &actions)
    }

    private mutating func leave(_ visit: Int, _ actions: inout Machine.Actions) {
      visits[visit] = nil
      if program == visit { (program, sendQueue, asked) = (nil, [], []) }
      if probe == visit { probe = nil }
      machine.leave(visit, into: &actions)
    }

    private mutating func answerProbe(_ hasGone: Bool, _ actions: inout Machine.Actions) throws {
      guard let visit = probe else { return }
      probe = nil
      machine.probed(visit, hasGone: hasGone, into: &actions)
    }

    private mutating func make(_ isPossible: Bool, _ random: inout SeededGenerator, _ actions: inout Machine.Actions) {
      guard let visit = visits.first(where: { $0.value.state == .making })?.key else { return }
      if isEnded { visits[visit] = nil } else { visits[visit]?.state = .waiting }
      guard isPossible else { return machine.notMade(visit, .unavailable(reason: "no disk"), into: &actions) }
      (isMade, isStarted, isClosing) = (true, false, false)
      let count = Int.random(in: 0..<4, using: &random)
      running = Set((0..<count).map { lastTask + 1 + $0 })
      lastTask += count
      ended = []
      machine.made(visit, running.sorted().map { Fixture.plain(.running, task: $0) }, into: &actions)
    }

    private mutating func closed(_ actions: inout Machine.Actions) {
      guard isClosing else { return }
      (isMade, isClosing) = (false, false)
      machine.closed(into: &actions)
    }

    private mutating func end(_ task: Int, _ actions: inout Machine.Actions) {
      running.remove(task)
      ended.insert(task)
      questions = questions.filter { $0.value != task }
      machine.received(
        .changed(Fixture.plain(.completed, task: task, events: [.completed])), from: generation, into: &actions)
    }

    private mutating func command(_ random: inout SeededGenerator, _ actions: inout Machine.Actions) {
      guard let program else { return }
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        lastTask += 1
        _ = machine.commanded(program, .create(Fixture.plain(.running, task: lastTask)), into: &actions)
      case 1:
        guard let question = pick(asked, &random) else { return }
        _ = machine.commanded(program, .answer(question: question, .cancel), into: &actions)
      default:
        guard let task = pick(ended, &random) else { return }
        _ = machine.commanded(program, .acknowledge(task: task, count: 1), into: &actions)
      }
    }

    /// Facts that come late, or twice.
    private mutating func stray(_ random: inout SeededGenerator, _ actions: inout Machine.Actions) {
      let visit = lastVisit + 1
      machine.leave(visit, into: &actions)
      machine.probed(visit, hasGone: true, into: &actions)
      machine.waitedTooLong(visit, into: &actions)
      machine.made(visit, [], into: &actions)
      machine.notMade(visit, .inUse, into: &actions)
      machine.received(.lost(reason: "late"), from: generation - 1, into: &actions)
      machine.questionTaken(visit, into: &actions)
      machine.flushed(lastFlush + 1, isConfirmed: true, into: &actions)
      if !isClosing { machine.closed(into: &actions) }
    }

    private mutating func finish(_ actions: inout Machine.Actions) {
      isEnded = true
      machine.end(into: &actions)
    }

    /// When all that is in progress has ended, nothing is open.
    mutating func rest(_ random: inout SeededGenerator) throws {
      for _ in 0..<1_000 {
        var actions: Machine.Actions = []
        if visits.values.contains(where: { $0.state == .making }) {
          make(false, &random, &actions)
        } else if isClosing {
          closed(&actions)
        } else if probe != nil {
          try answerProbe(true, &actions)
        } else if let flush = flushes.min() {
          flushes.remove(flush)
          machine.flushed(flush, isConfirmed: true, into: &actions)
        } else if let task = running.min(), isStarted {
          end(task, &actions)
        } else if let visit = visits.filter({ $0.value.state == .admitted }).keys.min() {
          leave(visit, &actions)
        } else {
          break
        }
        try apply(actions)
      }
      try #require(visits.isEmpty, "a visit waits for nothing")
      try #require(open.isEmpty, "a flush does not complete")
      try #require(machine.questions.isEmpty && !isMade)
      try #require(isEnded || machine.isAtRest)
      try #require(isEnded == isFinished)
    }
  }

  @Test func randomFacts() throws {
    for seed in 0..<300 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      var books = Books()
      for _ in 0..<400 { try books.step(&random) }
      try books.rest(&random)
    }
  }
}
