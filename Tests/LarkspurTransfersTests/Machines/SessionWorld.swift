import TestKit

@testable import LarkspurTransfers

/// A program, its runners and their journal in memory, around a `SessionLinkMachine`. Each step is one event that a seed
/// has chosen: a call of the program, a message that arrives, a runner that is killed, a call that has its turn.
struct SessionWorld {
  private enum Message {
    case command(TransferCommand)
    case flush(Int)
  }

  private enum Outgoing {
    case notice(TransferNotice)
    case flushed(Int)
  }

  private struct Runner {
    var number = 0
    var inbox: [Message] = []
    var sendQueue: [Outgoing] = []
    var isDead = false
  }

  private enum Due { case pause, connect, linkClosed, held(Int) }

  private var machine = SessionLinkMachine()
  private var generator: SeededGenerator
  private var actions: SessionLinkMachine.Actions = []
  private var journal: [Int: TransferRecord] = [:]
  private var runner: Runner?
  private var found: Runner?
  private var calls: [SessionLinkMachine.Call] = []
  private var due: [Due] = [.connect]
  private var lastTask = 0
  private var lastFlush = 0
  /// The program's tasks that are not over, with their states.
  private var live: [Int: TransferRecord.State] = [:]
  /// How often each task has ended, and each flush was confirmed.
  private var ends: [Int: Int] = [:]
  private var confirmations: [Int: Int] = [:]
  private var kept: Set<Int> = []
  private var (isFinished, isMarked, isReleased, isCalm) = (false, false, false, false)
  /// The rules that were broken.
  private(set) var complaints: [String] = []

  /// - Parameter seed: Chooses all that happens.
  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
    for task in 101..<101 + Int.random(in: 0...3, using: &generator) {
      let state = [TransferRecord.State.running, .suspended, .completed].randomElement(using: &generator) ?? .running
      journal[task] = .running(task, state, state == .completed ? [.downloaded, .completed] : [])
    }
  }

  /// Makes some steps, and then lets all tasks end and the session close.
  mutating func run(steps: Int) {
    for _ in 0..<steps { step() }
    isCalm = true
    settle()
    if case .refused = machine.state {} else { checkCommands() }
    for task in live.keys.sorted() { setSuspended(task, false) }
    settle()
    willEnd()
    // The delegate takes the files that it has left.
    machine.deliverLeft(into: &actions)
    settle()
    if !live.isEmpty { complain("tasks \(live.keys.sorted()) have no end") }
    let left = Set(journal.keys).subtracting(kept)
    if machine.state == .attached {
      if !left.isEmpty { complain("the journal has tasks \(left)") }
      if !kept.isSubset(of: journal.keys) { complain("the journal has lost files that were left") }
      if confirmations.count != lastFlush { complain("a runner was not asked for a flush") }
    }
    machine.close(into: &actions)
    settle()
    check(ends, "ends of task")
    check(confirmations, "confirmations of flush")
    if confirmations.count != lastFlush { complain("\(lastFlush - confirmations.count) flushes are open") }
    if machine.state != .closed || !isFinished || isReleased != isMarked { complain("the session is not closed") }
    for fact in 0..<3 {
      if fact == 0 { machine.attached([], into: &actions) }
      if fact == 1 { machine.pauseOver(into: &actions) }
      if fact == 2 { machine.linkClosed(into: &actions) }
    }
    if !actions.isEmpty { complain("a closed machine acts: \(actions)") }
  }

  private mutating func complain(_ text: String) { complaints.append("seed \(generator.seed): \(text)") }

  private mutating func check(_ counts: [Int: Int], _ name: String) {
    for (number, count) in counts where count != 1 { complain("\(count) \(name) \(number)") }
  }

  /// Without kills, the runner has all that the program has made of its tasks.
  private mutating func checkCommands() {
    for (task, state) in live where state != .canceling && machine.tasks[task]?.phase == .sent {
      if journal[task]?.state != state { complain("task \(task) is \(state), and \(journal[task]?.state as Any)") }
    }
  }

  // MARK: - Steps

  private mutating func settle() {
    while isBusy || journal.values.contains(where: { $0.state == .running }) && runner != nil { step() }
  }

  private var isBusy: Bool {
    !actions.isEmpty || !calls.isEmpty || !due.isEmpty
      || runner.map { !$0.inbox.isEmpty || !$0.sendQueue.isEmpty } ?? false
  }

  private mutating func step() {
    let kinds = isCalm ? 5 : 12
    switch Int.random(in: 0..<kinds, using: &generator) {
    case 0: if !actions.isEmpty { perform(actions.removeFirst()) }
    case 1: receive()
    case 2: serve()
    case 3: makeCall()
    case 4: report()
    case 5: begin()
    case 6, 7:
      guard let task = live.keys.sorted().randomElement(using: &generator) else { return }
      setSuspended(task, live[task] == .running)
    case 8:
      guard let task = live.keys.sorted().randomElement(using: &generator) else { return }
      live[task] = .canceling
      machine.cancel(task, isKeepingContent: false, into: &actions)
    case 9:
      lastFlush += 1
      machine.flush(lastFlush, into: &actions)
    case 10: if Bool.random(using: &generator) { kill() }
    default:
      if Int.random(in: 0..<10, using: &generator) == 0 { willEnd() }
      machine.deliverLeft(into: &actions)
    }
  }

  private mutating func willEnd() { if machine.willEnd() { isMarked = true } }

  private mutating func begin() {
    guard !machine.isEnding else { return }
    lastTask += 1
    if machine.begin(.running(lastTask), into: &actions) == nil { live[lastTask] = .running }
  }

  private mutating func setSuspended(_ task: Int, _ isSuspended: Bool) {
    guard live[task] != .canceling else { return }
    live[task] = isSuspended ? .suspended : .running
    machine.suspensionChanged(of: task, isSuspended: isSuspended, into: &actions)
  }

  /// What is due by itself happens.
  private mutating func report() {
    guard let next = due.first else { return }
    due.removeFirst()
    switch next {
    case .pause: machine.pauseOver(into: &actions)
    case .held(let number): machine.held(number)
    case .linkClosed:
      runner = nil
      machine.linkClosed(into: &actions)
    case .connect:
      let chance = Int.random(in: 0..<(isCalm ? 40 : 4), using: &generator)
      if chance == 0 {
        let error = [TransferLinkError.inUse, .unavailable(reason: "")].randomElement(using: &generator) ?? .inUse
        return machine.failed(error, hasEarlierSession: Bool.random(using: &generator), into: &actions)
      }
      found = Runner(number: machine.link + 1)
      machine.attached(journal.values.sorted { $0.task < $1.task }, into: &actions)
    }
  }

  private mutating func kill() {
    guard var dead = runner, !dead.isDead, machine.state == .attached, dead.number == machine.link else { return }
    dead.isDead = true
    dead.inbox = []
    dead.sendQueue = Array(dead.sendQueue.prefix(Int.random(in: 0...dead.sendQueue.count, using: &generator)))
    dead.sendQueue.append(.notice(.lost(reason: "killed")))
    runner = dead
    // A disk that has failed has an earlier state of a task.
    guard Int.random(in: 0..<3, using: &generator) == 0, let task = journal.keys.sorted().first else { return }
    if journal[task]?.state == .completed { journal[task] = .running(task) }
  }

  /// The runner carries a message out, or ends a task.
  private mutating func serve() {
    guard runner?.isDead == false else { return }
    if runner?.inbox.isEmpty == false, let message = runner?.inbox.removeFirst() {
      switch message {
      case .flush(let number): runner?.sendQueue.append(.flushed(number))
      case .command(let command): perform(command)
      }
      return
    }
    let running = journal.values.filter { $0.state == .running }.map(\.task).sorted()
    guard let task = running.randomElement(using: &generator), var record = journal[task] else { return }
    record.counts.received += 10
    if Bool.random(using: &generator) {
      journal[task] = record
      runner?.sendQueue.append(.notice(.progress(task: task, record.counts)))
    } else {
      end(record, [.downloaded, .completed])
    }
  }

  private mutating func end(_ record: TransferRecord, _ events: [TransferRecord.Event]) {
    var record = record
    record.state = .completed
    record.events = events
    journal[record.task] = record
    runner?.sendQueue.append(.notice(.changed(record)))
  }

  private mutating func perform(_ command: TransferCommand) {
    switch command {
    case .create(let record): if journal[record.task] == nil { journal[record.task] = record }
    case .resume(let task): if journal[task]?.state == .suspended { journal[task]?.state = .running }
    case .suspend(let task): if journal[task]?.state == .running { journal[task]?.state = .suspended }
    case .cancel(let task, _):
      if let record = journal[task], record.state != .completed { end(record, [.completed]) }
    case .update, .answer: break
    case .acknowledge(let task, let count):
      guard var record = journal[task] else { return }
      record.events.removeFirst(min(count, record.events.count))
      journal[task] = record.state == .completed && record.events.isEmpty ? nil : record
    }
  }

  private mutating func receive() {
    guard let number = runner?.number, runner?.sendQueue.isEmpty == false, let next = runner?.sendQueue.removeFirst()
    else { return }
    switch next {
    case .notice(let notice): machine.received(notice, from: number, into: &actions)
    case .flushed(let flush): machine.flushed(flush, isConfirmed: true, into: &actions)
    }
  }

  // MARK: - Actions

  private mutating func send(_ message: Message) {
    guard runner != nil else { return complain("there is no runner for \(message)") }
    if runner?.isDead == false { runner?.inbox.append(message) }
  }

  private mutating func perform(_ action: SessionLinkMachine.Action) {
    if isFinished, isReleased == isMarked, machine.state == .closed {
      if case .confirmFlush = action {} else { complain("\(action) after the end") }
    }
    switch action {
    case .pause: due.append(.pause)
    case .watch(_, let number): due.append(.held(number))
    case .connect: due.append(.connect)
    case .attach: (runner, found) = (found, nil)
    case .detach: runner = nil
    case .listen: if runner == nil { complain("there is no runner to listen to") }
    case .closeLink:
      if runner == nil { complain("there is no runner to close") }
      due.append(.linkClosed)
    case .send(let command): send(.command(command))
    case .create(let record): send(.command(.create(record)))
    case .flush(let number): send(.flush(number))
    case .adopt(let record): live[record.task] = record.state == .suspended ? .suspended : .running
    case .call(let call): calls.append(call)
    case .refuse(let task, _): finish(task)
    case .confirmFlush(let number): confirmations[number, default: 0] += 1
    case .releaseIdentifier:
      if isReleased { complain("the identifier is released twice") }
      isReleased = true
    case .finishClosing:
      if isFinished { complain("the session is over twice") }
      isFinished = true
    case .show, .ask, .finishOpening: break
    }
  }

  private mutating func finish(_ task: Int) {
    ends[task, default: 0] += 1
    live[task] = nil
  }

  private mutating func makeCall() {
    guard !calls.isEmpty else { return }
    switch calls.removeFirst() {
    case .resumed(let task, _, _, let link): machine.acknowledgeResumption(of: task, by: link, into: &actions)
    case .progress(let task): _ = machine.report(task)
    case .end(let task): makeLastCalls(task)
    case .left: for task in machine.offerLeft() { makeLastCalls(task) }
    case .finishEvents: break
    }
  }

  private mutating func happen() {
    switch Int.random(in: 0..<3, using: &generator) {
    case 0: receive()
    case 1: kill()
    default: report()
    }
  }

  private mutating func makeLastCalls(_ task: Int) {
    guard machine.tasks[task]?.phase == .ending else { return }
    // Notices and kills may come during the call.
    for _ in 0..<Int.random(in: 0...3, using: &generator) where !isCalm { happen() }
    if !isCalm, Int.random(in: 0..<4, using: &generator) == 0, live[task] != .canceling {
      if machine.left(task, isCancelled: false, into: &actions) {
        live[task] = nil
        kept.insert(task)
      }
      return
    }
    finish(task)
    machine.ended(task, into: &actions)
  }
}
