import LarkspurHTTP
import LarkspurIO
import LarkspurTransfers

/// A runner of one process: `TransferAttemptMachine` for each task, a real journal on a scripted disk, and loads from a
/// simulated server piece by piece.
///
/// The order of its steps is that of `TransferRunner`: received bytes are synced before a record counts them, the record
/// forgets a version before its file gets bytes of another one, and new tasks share a sync.
final class SimulatedRunner {
  enum Input {
    case command(TransferCommand)
    case flush(Int)
    case close
  }

  enum Output {
    case notice(TransferNotice)
    case flushed(Int)
    case closed
  }

  private struct Load {
    /// `nil` for an upload.
    var file: (any RecordFile)?
    var validator = ""
    var offset = 0
  }

  private struct Attempt {
    var machine: TransferAttemptMachine
    var load: Load?
    /// Whether the journal has the record.
    var isWritten = true
    /// The number of the challenge whose answer the load waits for.
    var challenge: UInt64?
    /// Whether the server asks nothing more.
    var hasPassed = false
  }

  private let world: TransferWorld
  private let journal: TransferJournal
  let records: [TransferRecord]
  private var attempts: [Int: Attempt] = [:]
  private var questions: [UInt64: Int] = [:]
  private var lastQuestion: UInt64 = 0
  /// What the runner is to do, in its order.
  var inputs: [Input] = []
  private(set) var outputs: [Output] = []
  private(set) var isClosed = false

  init(_ world: TransferWorld) throws(TransferLinkError) {
    self.world = world
    let content: TransferJournal.Content
    do throws(TransferJournalError) {
      journal = try TransferJournal(files: world.disk, session: TransferWorld.session) { _ in }
      content = try journal.content()
    } catch {
      throw .unavailable(reason: "\(error)")
    }
    records = content.records.filter { !$0.isTaken }
    for problem in content.problems {
      // A call that fails is repeated by the next runner.
      guard case .unreadable(let error) = problem.reason else {
        world.ledger.complain("task \(problem.task): \(problem.reason)")
        continue
      }
      throw .unavailable(reason: "\(error)")
    }
    for record in content.records where record.isTaken { try? journal.remove(task: record.task) }
    for record in records { add(record) }
  }

  private func add(_ record: TransferRecord) {
    attempts[record.task] = Attempt(machine: TransferAttemptMachine(record, secondsForResource: 1_000_000))
    apply(.timed(world.moment), to: record.task)
  }

  func start() {
    for record in records {
      if record.state == .canceling { cancel(record.task, isKeepingContent: false) } else { begin(record.task) }
    }
  }

  func takeOutput() -> Output? { outputs.isEmpty ? nil : outputs.removeFirst() }

  private func report(_ notice: TransferNotice) { outputs.append(.notice(notice)) }

  private func record(_ task: Int) -> TransferRecord? { attempts[task]?.machine.record }

  /// The tasks for which time passes.
  var runningTasks: [Int] { attempts.filter { $0.value.machine.record.state == .running }.keys.sorted() }
  var isEmpty: Bool { attempts.isEmpty && inputs.isEmpty && outputs.isEmpty }

  // MARK: - Commands

  func performNext() {
    switch inputs.removeFirst() {
    case .command(let command): perform(command)
    case .flush(let number):
      try? journal.sync()
      outputs.append(.flushed(number))
    case .close:
      for task in attempts.keys.sorted() {
        attempts[task]?.load = nil
        if attempts[task]?.isWritten == false { write(task) }
      }
      (attempts, questions) = ([:], [:])
      journal.close()
      isClosed = true
      outputs.append(.closed)
    }
  }

  private func perform(_ command: TransferCommand) {
    if case .create(let record) = command {
      world.note("runner: create \(record.short)")
    } else {
      world.note("runner: \(command)")
    }
    switch command {
    case .create(let record): create(record)
    case .resume(let task):
      guard record(task)?.state == .suspended else { return }
      apply(.resumed(at: world.moment), to: task)
      write(task)
      begin(task)
    case .suspend(let task):
      guard record(task)?.state == .running else { return }
      apply(.suspended(at: world.moment), to: task)
      write(task)
    case .cancel(let task, let isKeepingContent): cancel(task, isKeepingContent: isKeepingContent)
    case .update(let task, let properties):
      guard let record = record(task), record.state != .completed, TransferProperties(record) != properties else {
        return
      }
      apply(.updated(properties), to: task)
      write(task)
    case .acknowledge(let task, let count): acknowledge(task, count)
    case .answer(let question, let answer):
      guard let task = questions.removeValue(forKey: question) else { return }
      answered(question, of: task, answer)
    }
  }

  private func create(_ record: TransferRecord) {
    guard attempts[record.task] == nil else { return }
    add(record)
    do throws(TransferJournalError) {
      try journal.add(attempts[record.task]?.machine.record ?? record)
      world.ledger.written(record)
    } catch {
      return end(record.task, Self.failure)
    }
    begin(record.task)
  }

  private func cancel(_ task: Int, isKeepingContent: Bool) {
    guard let record = record(task), record.state != .completed else { return }
    apply(.cancelled(isKeepingContent: isKeepingContent), to: task)
    let load = stop(task)
    if isKeepingContent, let load { checkpoint(task, load) }
    end(task, Self.failure)
  }

  private func acknowledge(_ task: Int, _ count: Int) {
    guard let events = record(task)?.events, count > 0 else { return }
    apply(.acknowledged(count), to: task)
    if record(task)?.isTaken == true {
      attempts[task] = nil
      do { try journal.remove(task: task) } catch { return }
    } else {
      guard write(task) else { return }
    }
    world.ledger.acknowledged(task, events.prefix(count))
  }

  /// - Returns: Whether the record is on the disk.
  @discardableResult private func write(_ task: Int) -> Bool {
    apply(.timed(world.moment), to: task)
    guard let record = record(task) else { return false }
    let isWritten = (try? journal.write(record)) != nil
    world.note("runner: \(isWritten ? "writes" : "cannot write") \(record.short)")
    attempts[task]?.isWritten = isWritten
    if isWritten { world.ledger.written(record) }
    return isWritten
  }

  // MARK: - Attempts

  /// Does one step of a task that runs: begins an attempt, opens its file, or receives a piece.
  func step(_ task: Int) {
    guard let attempt = attempts[task] else { return }
    if attempt.machine.phase == .loading { progress(task) } else { begin(task) }
  }

  private func begin(_ task: Int) {
    guard let attempt = attempts[task] else { return }
    switch attempt.machine.next(at: world.moment, among: attempts.values.lazy.map(\.machine)) {
    case .nothing: break
    case .timeOut: end(task, Self.failure)
    case .wait(let seconds, _): if attempt.machine.phase != .asking { world.pass(seconds) }
    case .ask:
      attempts[task]?.machine.asked()
      ask(.beginDelayed, task)
    case .queue(let isDue):
      let machines = attempts.values.map(\.machine)
      guard isDue, let next = TransferAttemptMachine.firstDiscretionary(at: world.moment, among: machines) else {
        return
      }
      begin(next.record.task)
    case .look:
      attempts[task]?.machine.looked(isQuiet: world.draw.chance(2, of: 3))
      if attempts[task]?.machine.phase == .waiting { load(task) }
    case .load: load(task)
    }
  }

  private func ask(_ question: TransferQuestion, _ task: Int) {
    lastQuestion += 1
    questions[lastQuestion] = task
    report(.question(lastQuestion, task: task, question))
  }

  private func answered(_ question: UInt64, of task: Int, _ answer: TransferAnswer) {
    guard let attempt = attempts[task], attempt.machine.phase != .over else { return }
    if attempt.challenge == question {
      attempts[task]?.challenge = nil
      attempts[task]?.hasPassed = true
      if answer == .cancel {
        _ = stop(task)
        end(task, Self.failure)
      }
      return
    }
    // The answer to a challenge of an earlier attempt has no effect.
    guard attempt.machine.phase == .asking else { return }
    switch attempts[task]?.machine.answered(answer) {
    case .cancel: return cancel(task, isKeepingContent: false)
    case .tooLarge: return end(task, Self.failure)
    case .begin, nil: break
    }
    write(task)
    begin(task)
  }

  private func load(_ task: Int) {
    if attempts[task]?.machine.began() == true, let record = record(task) { report(.changed(record)) }
    attempts[task]?.hasPassed = false
    if record(task)?.kind == .download {
      apply(.contentFile(isThere: true), to: task)
    } else {
      attempts[task]?.load = Load()
    }
  }

  private func progress(_ task: Int) {
    guard let attempt = attempts[task], attempt.machine.isLoading, attempt.challenge == nil else { return }
    if !attempt.hasPassed, let question = world.challenge(task) {
      ask(question, task)
      attempts[task]?.challenge = lastQuestion
      return
    }
    attempts[task]?.hasPassed = true
    // The connection is lost: the next attempt may find another version.
    if world.draw.chance(1, of: 12) { return fail(task) }
    if attempt.machine.record.kind == .upload { send(task) } else { receive(task) }
  }

  private func receive(_ task: Int) {
    let resource = world.server.resource(of: task)
    guard var load = attempts[task]?.load else { return open(task, resource) }
    guard load.validator == resource.validator else { return fail(task) }
    if load.offset < resource.bytes.count {
      let piece = resource.bytes[load.offset...].prefix(world.draw.number(1...10))
      world.ledger.fetched(task, load.validator, from: load.offset, count: piece.count)
      do { try load.file?.append(Array(piece)) } catch { return fail(task) }
      load.offset += piece.count
      attempts[task]?.load = load
      if world.draw.chance(1, of: 4) { report(.progress(task: task, counts(task, received: load.offset))) }
      if world.draw.chance(1, of: 3) { checkpoint(task, load) }
    } else {
      _ = stop(task)
      apply(.loaded(nil), to: task)
      apply(.contentFile(isThere: true), to: task)
      end(task, (try? journal.syncContent(of: task)) == nil ? Self.failure : nil)
    }
  }

  private func counts(_ task: Int, received: Int) -> TransferRecord.Counts {
    var counts = record(task)?.counts ?? TransferRecord.Counts()
    counts.received = Int64(received)
    return counts
  }

  private func open(_ task: Int, _ resource: SimulatedResources.Resource) {
    guard let record = record(task) else { return }
    let name = TransferFileName.content(of: task)
    var start = record.resumePoint.flatMap { $0.validator == resource.validator ? $0.offset : nil } ?? 0
    if start > 0 {
      let count = world.disk.bytes(name)?.count ?? 0
      if count < start {
        world.ledger.cannotContinue(task, from: start, with: count)
        start = 0
      }
    }
    if start == 0, record.resumePoint != nil || attempts[task]?.isWritten == false {
      apply(.resumePoint(nil), to: task)
      // Until the record has forgotten the version, the file keeps its bytes.
      guard write(task) else { return fail(task) }
    }
    guard let file = try? world.disk.open(name, cutTo: start) else { return fail(task) }
    attempts[task]?.load = Load(file: file, validator: resource.validator, offset: start)
  }

  private func send(_ task: Int) {
    guard let load = attempts[task]?.load else { return }
    attempts[task]?.load?.offset += 1
    guard load.offset > 2 else { return }
    world.server.receive(task)
    // The response may be lost.
    if world.draw.chance(1, of: 8) { return fail(task) }
    _ = stop(task)
    apply(.loaded(nil), to: task)
    apply(.contentFile(isThere: true), to: task)
    do {
      try journal.storeContent(world.server.answer(to: task), of: task)
      end(task, nil)
    } catch {
      end(task, Self.failure)
    }
  }

  private func stop(_ task: Int) -> Load? {
    attempts[task]?.machine.stopped()
    attempts[task]?.challenge = nil
    return attempts[task]?.load.take()
  }

  private func fail(_ task: Int) {
    if let load = stop(task), load.file != nil { checkpoint(task, load) }
    attempts[task]?.machine.failed(delay: nil, fraction: 0.5, at: world.moment)
    write(task)
    if let record = record(task) { report(.changed(record)) }
    begin(task)
  }

  private func checkpoint(_ task: Int, _ load: Load) {
    guard load.offset > 0, load.file != nil, (try? journal.syncContent(of: task)) != nil else { return }
    apply(.resumePoint(ResumePoint(validator: load.validator, offset: load.offset, total: nil, coding: nil)), to: task)
    write(task)
  }

  private static let failure = TransferRecord.Failure(domain: "a", code: -1, message: "")

  private func end(_ task: Int, _ failure: TransferRecord.Failure?) {
    questions = questions.filter { $0.value != task }
    attempts[task]?.challenge = nil
    let isFileUnused = attempts[task]?.machine.ended(failure) == true
    write(task)
    if isFileUnused { try? world.disk.remove(TransferFileName.content(of: task)) }
    if let record = record(task) { report(.changed(record)) }
  }

  private func apply(_ event: TransferTask.Event, to task: Int) { attempts[task]?.machine.task.apply(event) }
}

extension TransferRecord {
  /// The record in a trace.
  var short: String {
    "\(kind) \(task) \(state) \(events) at \(resumePoint?.offset ?? 0)\(failure == nil ? "" : " failed")"
  }

  /// Whether the task has ended, and the program has taken all events.
  fileprivate var isTaken: Bool { state == .completed && events.isEmpty }
}
