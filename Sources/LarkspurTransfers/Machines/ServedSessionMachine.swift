/// Decides what the service does next for one background session: for its runner, its program and its other visits.
///
/// The page TransferService says what a visit is, and has the graphs of the runner, the program and the visits. The
/// machine gets the tasks from the runner's notices and the program's commands. Questions that no program has answered
/// are kept.
///
/// The machine does no input or output, and has no clock. Invariants: each runner that was made is closed once; there
/// are never two runners; each flush completes once, with `isConfirmed` only if the runner has confirmed the flush; a
/// task that has ended has no open question; at most `questionsMax` questions are on their way to a program.
package struct ServedSessionMachine: Sendable {
  /// Maximum number of open questions of a task about handshakes, which fail by themselves in time, and of its other
  /// questions. A server that changes its certificates with each attempt, and a program that never answers, would fill the
  /// memory.
  package static let questionsOfTaskMax = 64
  /// Maximum number of questions that have been sent to a program, and that its connection has not taken.
  static let questionsMax = SendQueue.questionsMax

  enum Runner: Hashable {
    case none
    /// A visit makes the runner, for this session.
    case opening(VisitID, TransferSession)
    case open
    case closing
  }

  struct Visit: Hashable {
    let id: VisitID
    let wish: Wish
    /// Whether the attached program is being probed.
    var isProbing = false
    var wait: Wait?
    /// Whether a runner was closed for the visit's settings.
    var hasReplaced = false
    /// The error that the visit gets when the earlier runner has been made anew.
    var failure: TransferLinkError?
  }

  struct Program: Hashable {
    let id: VisitID
    /// The number of questions that its connection has not taken.
    var onTheirWay = 0
    /// The questions for which there is no room, in their order.
    var held: [UInt64] = []
  }

  struct Question: Hashable {
    let task: Int
    let question: TransferQuestion
  }

  package private(set) var session: TransferSession
  private(set) var runner = Runner.none
  /// Counts the runners. Notices of an earlier one have no effect.
  private(set) var generation = 0
  private(set) var program: Program?
  /// The visits that have not been admitted, in their order. The first one is served.
  private(set) var line: [Visit] = []
  /// The visits that have been admitted, but for the program.
  private(set) var guests: Set<VisitID> = []
  /// The questions that no program has answered.
  private(set) var questions: [UInt64: Question] = [:]
  private(set) var flushes: Set<FlushID> = []
  /// Whether the service ends.
  private(set) var isEnded = false
  private var tasks: [Int: TransferTask] = [:]
  /// Whether the program should be launched: the end of a task has reached no program, or a task waits for a program's
  /// answer. A program that dies seems attached until the end of its connection is read.
  private var hasNews = false

  package init(_ session: TransferSession) { self.session = session }

  package var isAttached: Bool { program != nil }
  package var isOpen: Bool { runner == .open }
  /// The tasks in the order of their identifiers.
  package var records: [TransferRecord] { tasks.values.map(\.record).sorted { $0.task < $1.task } }
  private var hasEnd: Bool { tasks.values.contains { $0.record.hasUnreportedEnd } }

  /// Whether nothing uses the session: no visit, no program, no runner.
  package var isAtRest: Bool { runner == .none && program == nil && line.isEmpty && guests.isEmpty }

  // MARK: - Visits

  package mutating func enter(_ visit: VisitID, _ wish: Wish, into actions: inout Actions) {
    guard !isEnded else { return actions.append(.say(visit, .over)) }
    if isOpen, !wish.isOfProgram { return admit(Visit(id: visit, wish: wish), &actions) }
    line.append(Visit(id: visit, wish: wish))
    serve(&actions)
  }

  /// The visit is over. An attached program's open questions are answered by default, except those that wait for the next
  /// program.
  package mutating func leave(_ visit: VisitID, into actions: inout Actions) {
    if program?.id == visit {
      program = nil
      // A program that has taken its events is not launched for them.
      hasNews = hasEnd || isWaitingForProgram
      for (number, open) in questions.sorted(by: { $0.key < $1.key }) where !open.question.waitsForProgram {
        answer(number, open.question.byDefault, &actions)
      }
    }
    guests.remove(visit)
    // The one that makes a runner reports first.
    if case .opening(visit, _) = runner {} else { line.removeAll { $0.id == visit } }
    serve(&actions)
  }

  /// The program has gone, or has not.
  package mutating func probed(_ program: VisitID, hasGone: Bool, into actions: inout Actions) {
    guard line.first?.isProbing == true, self.program?.id == program else { return }
    line[0].isProbing = false
    if hasGone { wait(for: .program, &actions) } else { refuse(.inUse, &actions) }
  }

  package mutating func waitedTooLong(_ visit: VisitID, into actions: inout Actions) {
    guard let first = line.first, first.id == visit, let wait = first.wait else { return }
    switch wait {
    case .program: refuse(.inUse, &actions)
    case .runner:
      refuse(.unavailable(reason: "an earlier runner of the session has not ended"), &actions)
    }
  }

  /// Serves the first visits, and releases the runner if there is no visit and no task needs it.
  private mutating func serve(_ actions: inout Actions) {
    while let visit = line.first, step(visit, &actions) {}
    settle(&actions)
  }

  /// - Returns: Whether the visit has left the line.
  private mutating func step(_ visit: Visit, _ actions: inout Actions) -> Bool {
    if case .attach = visit.wish, let program {
      guard !visit.isProbing, visit.wait != .program else { return false }
      line[0].isProbing = true
      actions.append(.probe(program.id))
      return false
    }
    if visit.wait == .program { line[0].wait = nil }
    switch runner {
    case .opening: return false
    case .closing:
      if visit.wait != .runner { wait(for: .runner, &actions) }
      return false
    case .none:
      make(visit.wish.session ?? session, &actions)
      return false
    case .open: break
    }
    if case .attach(let new) = visit.wish {
      guard new.identifier == session.identifier else {
        line.removeFirst()
        let reason = "the directory \(new.directory) belongs to another session"
        actions.append(.say(visit.id, .refused(.unavailable(reason: reason))))
        return true
      }
      guard new.settings == session.settings else {
        // A command of the user is carried out first.
        guard guests.isEmpty else { return false }
        line[0].hasReplaced = true
        close(&actions)
        wait(for: .runner, &actions)
        return false
      }
      session = new
      actions.append(.store(new))
    }
    admit(line.removeFirst(), &actions)
    return true
  }

  private mutating func wait(for wait: Wait, _ actions: inout Actions) {
    line[0].wait = wait
    actions.append(.say(line[0].id, .wait(wait)))
  }

  private mutating func refuse(_ error: TransferLinkError, _ actions: inout Actions) {
    actions.append(.say(line.removeFirst().id, .refused(error)))
    serve(&actions)
  }

  private mutating func admit(_ visit: Visit, _ actions: inout Actions) {
    switch visit.wish {
    case .attach:
      program = Program(id: visit.id)
      actions.append(.welcome(visit.id, records))
      for number in questions.keys.sorted() { send(number, &actions) }
    case .open: guests.insert(visit.id)
    case .restore:
      guests.insert(visit.id)
      if program == nil { hasNews = hasEnd }
    }
    actions.append(.say(visit.id, .admitted))
  }

  // MARK: - The runner

  private mutating func make(_ session: TransferSession, _ actions: inout Actions) {
    runner = .opening(line[0].id, session)
    line[0].wait = nil
    actions.append(.say(line[0].id, .make(session)))
  }

  /// A runner has been made.
  package mutating func made(_ visit: VisitID, _ records: [TransferRecord], into actions: inout Actions) {
    guard case .opening(visit, let new) = runner else { return }
    guard let visit = line.first, !isEnded else {
      runner = .none
      return actions.append(.close)
    }
    line.removeFirst()
    runner = .open
    generation += 1
    tasks = Dictionary(records.map { ($0.task, TransferTask($0, isNew: false)) }) { $1 }
    session = new
    actions.append(.store(new))
    if let failure = visit.failure {
      actions.append(.say(visit.id, .refused(failure)))
    } else {
      admit(visit, &actions)
    }
    // The first questions find the program attached.
    actions.append(.start(generation: generation))
    serve(&actions)
  }

  /// No runner could be made.
  package mutating func notMade(_ visit: VisitID, _ error: TransferLinkError, into actions: inout Actions) {
    guard case .opening(visit, _) = runner else { return }
    runner = .none
    guard let visit = line.first, !isEnded else { return }
    guard visit.hasReplaced, visit.failure == nil else { return refuse(visit.failure ?? error, &actions) }
    // Settings that cannot be used do not end the transfers with the earlier ones.
    line[0].failure = error
    make(session, &actions)
  }

  /// The runner has released the session.
  package mutating func closed(into actions: inout Actions) {
    guard runner == .closing else { return }
    runner = .none
    if isEnded { actions.append(.finish) } else { serve(&actions) }
  }

  private mutating func close(_ actions: inout Actions) {
    runner = .closing
    questions = [:]
    for flush in flushes.sorted() { actions.append(.complete(flush, isConfirmed: false)) }
    flushes = []
    actions.append(.close)
  }

  /// Releases the runner if no visit and no task needs it, and launches the program to deliver its events, or if all
  /// tasks wait for its answers.
  private mutating func settle(_ actions: inout Actions) {
    guard !isEnded, program == nil, line.isEmpty, guests.isEmpty else { return }
    if runner == .none { actions.append(.rest) }
    guard isOpen else { return }
    let isWaiting = isWaitingForProgram
    let isIdle = !tasks.values.contains(where: \.isWorking)
    if isIdle {
      actions.append(.log("session \"\(session.identifier)\" has no more tasks to carry out"))
      close(&actions)
    }
    guard isIdle || isWaiting, hasNews, isWaiting || hasEnd, !session.launchCommand.isEmpty else { return }
    hasNews = false
    actions.append(.launch(session))
  }

  /// Whether all running tasks wait for a program's answers.
  private var isWaitingForProgram: Bool {
    let waiting = Set(questions.values.filter(\.question.waitsForProgram).map(\.task))
    return !waiting.isEmpty && tasks.allSatisfy { waiting.contains($0.key) || !$0.value.isWorking }
  }

  // MARK: - Notices

  package mutating func received(_ notice: TransferNotice, from generation: Int, into actions: inout Actions) {
    guard isOpen, generation == self.generation else { return }
    switch notice {
    case .changed(let record): changed(record, &actions)
    case .progress(let task, let counts):
      tasks[task]?.apply(.progressed(counts))
      notify(notice, &actions)
    case .question(let number, let task, let question):
      asked(number, Question(task: task, question: question), &actions)
    case .lost(let reason):
      actions.append(.log("session \"\(session.identifier)\" has lost its runner: \(reason)"))
      if let program { actions.append(.dismiss(program.id)) }
      close(&actions)
    }
  }

  private mutating func changed(_ record: TransferRecord, _ actions: inout Actions) {
    let isCompleted = record.state == .completed
    let isEnd = isCompleted && tasks[record.task].map { $0.record.state != .completed } ?? false
    tasks[record.task]?.apply(.changed(record))
    if isCompleted { forget(of: record.task) }
    notify(.changed(record), &actions)
    guard isEnd else { return }
    hasNews = true
    settle(&actions)
  }

  private func notify(_ notice: TransferNotice, _ actions: inout Actions) {
    if let program { actions.append(.notify(program.id, notice)) }
  }

  // MARK: - Questions

  private mutating func asked(_ number: UInt64, _ question: Question, _ actions: inout Actions) {
    guard let task = tasks[question.task], task.record.state != .completed else {
      return actions.append(.pass(.answer(question: number, .cancel)))
    }
    let hasRoom = program.map { $0.onTheirWay < Self.questionsMax } ?? false
    guard hasRoom || question.question.waitsForProgram else {
      return actions.append(.pass(.answer(question: number, question.question.byDefault)))
    }
    questions[number] = question
    send(number, &actions)
    let open = questions.filter {
      $0.value.task == question.task && $0.value.question.waitsForProgram == question.question.waitsForProgram
    }
    if open.count > Self.questionsOfTaskMax, let oldest = open.keys.min() { answer(oldest, .cancel, &actions) }
    guard program == nil else { return }
    hasNews = true
    settle(&actions)
  }

  /// Sends a question to the program, now or when there is room.
  private mutating func send(_ number: UInt64, _ actions: inout Actions) {
    guard let program, let open = questions[number] else { return }
    if program.onTheirWay < Self.questionsMax {
      self.program?.onTheirWay += 1
      actions.append(.notify(program.id, .question(number, task: open.task, open.question)))
    } else {
      self.program?.held.append(number)
    }
  }

  /// The connection of a program has taken a question.
  package mutating func questionTaken(_ program: VisitID, into actions: inout Actions) {
    guard let present = self.program, present.id == program, present.onTheirWay > 0 else { return }
    self.program?.onTheirWay -= 1
    guard !present.held.isEmpty, let next = self.program?.held.removeFirst() else { return }
    send(next, &actions)
  }

  /// Answers a question in place of a program.
  private mutating func answer(_ number: UInt64, _ answer: TransferAnswer, _ actions: inout Actions) {
    forget(number)
    actions.append(.pass(.answer(question: number, answer)))
  }

  private mutating func forget(_ number: UInt64) {
    questions[number] = nil
    program?.held.removeAll { $0 == number }
  }

  private mutating func forget(of task: Int) {
    for number in questions.filter({ $0.value.task == task }).keys { forget(number) }
  }

  // MARK: - Commands

  /// Carries out a command of the program.
  ///
  /// - Returns: `false` if the program has more tasks than any session may have.
  package mutating func commanded(
    _ program: VisitID, _ command: TransferCommand, into actions: inout Actions
  ) -> Bool {
    guard isOpen, self.program?.id == program else { return true }
    switch command {
    case .create(let record):
      guard tasks.count < TransferSession.tasksMax else { return false }
      if tasks[record.task] == nil { tasks[record.task] = TransferTask(record, isNew: false) }
    case .answer(let question, _): forget(question)
    default: apply(command)
    }
    actions.append(.pass(command))
    return true
  }

  private mutating func apply(_ command: TransferCommand) {
    guard let (task, event) = command.change else { return }
    tasks[task]?.apply(event)
    if tasks[task]?.isOver == true { tasks[task] = nil }
  }

  /// Carries out a command of the user, and notifies the attached program of it.
  ///
  /// - Returns: The number of tasks that it has changed.
  package mutating func administered(
    _ change: TransferAdministration.Change, _ tasks: TransferAdministration.Tasks, into actions: inout Actions
  ) -> Int {
    guard isOpen else { return 0 }
    let numbers =
      switch tasks {
      case .all: self.tasks.keys.sorted()
      case .some(let list): list
      }
    var count = 0
    for number in numbers {
      let before = self.tasks[number]?.record
      let command: TransferCommand =
        switch change {
        case .pause: .suspend(task: number)
        case .resume: .resume(task: number)
        case .cancel: .cancel(task: number, isKeepingContent: false)
        }
      apply(command)
      guard let after = self.tasks[number]?.record, after != before else { continue }
      count += 1
      actions.append(.pass(command))
      notify(.changed(after), &actions)
    }
    return count
  }

  /// Asks for the moment at which all commands so far are on the disk.
  package mutating func flush(_ flush: FlushID, into actions: inout Actions) {
    guard isOpen else { return actions.append(.complete(flush, isConfirmed: false)) }
    flushes.insert(flush)
    actions.append(.flush(flush))
  }

  /// The runner has carried out all commands before a flush, or is gone.
  package mutating func flushed(_ flush: FlushID, isConfirmed: Bool, into actions: inout Actions) {
    guard flushes.remove(flush) != nil else { return }
    actions.append(.complete(flush, isConfirmed: isConfirmed))
  }

  // MARK: - The end

  /// The service ends: the connection of the program and the runner end, and the tasks stay in the journal.
  package mutating func end(into actions: inout Actions) {
    guard !isEnded else { return }
    isEnded = true
    if let program = program.take() { actions.append(.dismiss(program.id)) }
    for visit in line { actions.append(.say(visit.id, .over)) }
    line = []
    guests = []
    if isOpen { close(&actions) }
    // A runner that is being made releases the session when it is there.
    if runner != .closing { actions.append(.finish) }
  }
}

extension ServedSessionMachine.Wish {
  var session: TransferSession? { if case .attach(let session) = self { session } else { nil } }
  var isOfProgram: Bool { session != nil }
}
