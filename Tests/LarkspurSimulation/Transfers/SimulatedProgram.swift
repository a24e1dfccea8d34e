import LarkspurTransfers

/// A program's process: `SessionLinkMachine`, its delegate, and the connection to the service, or a runner of the process
/// itself.
final class SimulatedProgram {
  private enum Due {
    case pause, connect, linkClosed
    case held(Int)
  }

  private struct Question {
    let number: UInt64
    let task: Int
    let question: TransferQuestion
    let link: Int
  }

  private let world: TransferWorld
  private var machine = SessionLinkMachine()
  private var actions: SessionLinkMachine.Actions = []
  private var calls: [SessionLinkMachine.Call] = []
  private var due: [Due] = [.connect]
  private var questions: [Question] = []
  private var connecting: SimulatedConnection?
  /// The connection that was opened last, until the action `attach`.
  private var found: SimulatedConnection?
  private var connection: SimulatedConnection?
  private(set) var runner: SimulatedRunner?
  private var isListening = false
  /// The tasks of this process that have no end, and whether they are suspended.
  private var live: [Int: Bool] = [:]
  private var cancelled: Set<Int> = []
  private var ended: Set<Int> = []
  /// The tasks that had begun before a flush.
  private var flushes: [Int: [Int]] = [:]
  private var lastFlush = 0
  private(set) var isFinished = false

  init(_ world: TransferWorld) { self.world = world }

  var isRefused: Bool { if case .refused = machine.state { true } else { false } }
  var isAtRest: Bool {
    machine.state == .attached && live.isEmpty && actions.isEmpty && calls.isEmpty && questions.isEmpty
      && flushes.isEmpty && (world.isOneProcess ? runner?.isEmpty : connection?.isAtRest) ?? false
  }

  /// The process is killed. Of the commands on their way some arrive.
  func kill() {
    for connection in [connecting, found, connection] {
      guard let connection else { continue }
      connection.requests = Array(connection.requests.prefix(world.draw.number(0...connection.requests.count)))
      connection.isProgramGone = true
    }
  }

  // MARK: - Steps

  private enum Step { case act, call, happen, answer, receive, execute }

  /// Does one step.
  ///
  /// - Returns: `false` if there is nothing to do but the loads and the program's own wishes.
  func step() -> Bool {
    var steps: [Step] = []
    if !actions.isEmpty { steps.append(.act) }
    if !calls.isEmpty { steps.append(.call) }
    if !due.isEmpty { steps.append(.happen) }
    if !questions.isEmpty { steps.append(.answer) }
    if hasMessages { steps.append(.receive) }
    if runner?.inputs.isEmpty == false { steps.append(.execute) }
    guard !steps.isEmpty else { return false }
    switch world.draw.pick(steps) {
    case .act: perform(actions.removeFirst())
    case .call: make(calls.removeFirst())
    case .happen: happen(due.removeFirst())
    case .answer: answer(questions.removeFirst())
    case .receive: receive()
    case .execute: runner?.performNext()
    }
    return true
  }

  private func happen(_ due: Due) {
    switch due {
    case .pause: machine.pauseOver(into: &actions)
    case .connect: connect()
    case .linkClosed: machine.linkClosed(into: &actions)
    case .held(let link): machine.held(link)
    }
  }

  private func connect() {
    guard world.isOneProcess else {
      let connection = SimulatedConnection()
      connecting = connection
      return world.startedService.connect(connection)
    }
    do throws(TransferLinkError) {
      let runner = try SimulatedRunner(world)
      self.runner = runner
      machine.attached(runner.records, into: &actions)
    } catch {
      machine.failed(error, hasEarlierSession: false, into: &actions)
    }
  }

  private var hasMessages: Bool {
    if let connecting { return !connecting.answers.isEmpty || connecting.isServiceGone }
    if let runner { return isListening && !runner.outputs.isEmpty }
    guard let connection, isListening else { return false }
    return !connection.answers.isEmpty || connection.isServiceGone
  }

  private func receive() {
    if let connecting { return open(connecting) }
    if let runner {
      switch runner.takeOutput() {
      case .notice(let notice): machine.received(notice, from: machine.link, into: &actions)
      case .flushed(let flush): machine.flushed(flush, isConfirmed: true, into: &actions)
      case .closed:
        self.runner = nil
        due.append(.linkClosed)
      case nil: break
      }
      return
    }
    guard let connection else { return }
    guard !connection.answers.isEmpty else { return lose() }
    switch connection.answers.removeFirst() {
    case .notice(let notice): machine.received(notice, from: machine.link, into: &actions)
    case .flushed(let flush): machine.flushed(flush, isConfirmed: true, into: &actions)
    case .opened, .refused: world.ledger.complain("an open connection is opened again")
    }
  }

  private func lose() {
    isListening = false
    if case .closing = machine.state { return due.append(.linkClosed) }
    machine.received(.lost(reason: "killed"), from: machine.link, into: &actions)
  }

  private func open(_ connection: SimulatedConnection) {
    connecting = nil
    guard !connection.answers.isEmpty else { return due.append(.connect) }
    switch connection.answers.removeFirst() {
    case .opened(let records):
      found = connection
      machine.attached(records, into: &actions)
    case .refused(let error):
      machine.failed(error, hasEarlierSession: false, into: &actions)
    case .notice, .flushed: world.ledger.complain("a connection has answers before it is open")
    }
  }

  // MARK: - Actions

  private func send(_ command: TransferCommand) {
    runner?.inputs.append(.command(command))
    connection?.requests.append(.command(command))
  }

  private func perform(_ action: SessionLinkMachine.Action) {
    world.note("program: \(Self.short(action))")
    switch action {
    case .pause: due.append(.pause)
    case .watch(_, let link): due.append(.held(link))
    case .connect: due.append(.connect)
    case .attach: connection = found.take()
    case .detach: connection = nil
    case .listen:
      isListening = true
      runner?.start()
    case .closeLink:
      runner?.inputs.append(.close)
      connection?.isProgramGone = true
    case .send(let command): send(command)
    case .create(let record): send(.create(record))
    case .flush(let number):
      runner?.inputs.append(.flush(number))
      connection?.requests.append(.flush(number))
    case .adopt(let record): live[record.task] = record.state == .suspended
    case .call(let call): calls.append(call)
    case .ask(let number, let task, let question, let link):
      questions.append(Question(number: number, task: task, question: question, link: link))
    case .refuse(let task, _):
      live[task] = nil
      world.ledger.refused(task)
    case .confirmFlush(let number):
      guard let tasks = flushes.removeValue(forKey: number) else {
        return world.ledger.complain("flush \(number) is confirmed twice")
      }
      for task in tasks { world.ledger.confirm(task) }
    case .finishClosing: isFinished = true
    case .show, .finishOpening, .releaseIdentifier: break
    }
  }

  private static func short(_ action: SessionLinkMachine.Action) -> String {
    switch action {
    case .create(let record): "create \(record.short)"
    case .adopt(let record): "adopt \(record.short)"
    default: "\(action)"
    }
  }

  private func answer(_ question: Question) {
    let declines = world.draw.chance(1, of: 6) && question.question.byDefault != .cancel
    if declines { world.ledger.excuse(question.task) }
    machine.answered(
      question.number, declines ? .cancel : question.question.byDefault, to: question.link, into: &actions)
  }

  // MARK: - Delegate calls

  private func make(_ call: SessionLinkMachine.Call) {
    switch call {
    case .resumed(let task, _, _, let link): machine.acknowledgeResumption(of: task, by: link, into: &actions)
    case .progress(let task): _ = machine.report(task)
    case .end(let task): makeLastCalls(task)
    case .left: for task in machine.offerLeft() where !world.isProgramKilled { makeLastCalls(task) }
    case .finishEvents: break
    }
  }

  private func makeLastCalls(_ task: Int) {
    guard let entry = machine.tasks[task], entry.phase == .ending else { return }
    let isCancelled = cancelled.contains(task)
    world.note("program: end of \(entry.record.short)")
    for event in entry.record.events {
      if event == .downloaded, !isCancelled {
        if !world.isCalm, world.draw.chance(1, of: 8) {
          if machine.left(task, isCancelled: false, into: &actions) { live[task] = nil }
          return
        }
        world.take(entry.record)
      }
      world.ledger.delivered(entry.record, event)
    }
    live[task] = nil
    if !ended.insert(task).inserted { world.ledger.complain("task \(task) ends twice in one process") }
    // The process may end before it acknowledges.
    if world.mayKill(1, of: 8) { return world.isProgramKilled = true }
    machine.ended(task, into: &actions)
  }

  // MARK: - The program's wishes

  func create(_ record: TransferRecord) {
    if machine.begin(record, into: &actions) == nil { live[record.task] = false }
    if world.draw.chance(1, of: 3) { suspend(record.task, true) }
  }

  func flush() {
    lastFlush += 1
    flushes[lastFlush] = live.keys.sorted()
    machine.flush(lastFlush, into: &actions)
  }

  func change() {
    guard let task = live.keys.sorted().randomElement(using: &world.generator) else { return }
    switch world.draw.number(0...7) {
    case 0:
      cancelled.insert(task)
      world.ledger.excuse(task)
      machine.cancel(task, isKeepingContent: world.draw.chance(1, of: 2), into: &actions)
    case 1:
      machine.update(task, TransferProperties(description: "a", priority: 1), into: &actions)
    case 2: machine.deliverLeft(into: &actions)
    default: suspend(task, live[task] == false)
    }
  }

  private func suspend(_ task: Int, _ isSuspended: Bool) {
    guard live[task] != nil, live[task] != isSuspended, !cancelled.contains(task) else { return }
    live[task] = isSuspended
    machine.suspensionChanged(of: task, isSuspended: isSuspended, into: &actions)
  }

  /// Suspended tasks end only if they are resumed, and left files only if they are taken.
  func calm() {
    for task in live.keys.sorted() { suspend(task, false) }
    machine.deliverLeft(into: &actions)
  }

  /// Invalidates the session, whose tasks are over.
  func finish() {
    _ = machine.willEnd()
    machine.close(into: &actions)
  }
}
