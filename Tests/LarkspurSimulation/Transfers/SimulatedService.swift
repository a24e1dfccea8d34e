import LarkspurTransfers

/// The connection of a program to the service, with the messages that are on their way.
final class SimulatedConnection {
  enum Request {
    case command(TransferCommand)
    case flush(Int)
  }

  enum Answer {
    case opened([TransferRecord])
    case refused(TransferLinkError)
    case notice(TransferNotice)
    case flushed(Int)
  }

  var requests: [Request] = []
  var answers: [Answer] = []
  /// Whether no more requests come. Those on their way are read.
  var isProgramGone = false
  /// Whether no more answers come. Those on their way are read.
  var isServiceGone = false

  var isAtRest: Bool { !isProgramGone && !isServiceGone && requests.isEmpty && answers.isEmpty }
}

/// The service's process: `ServedSessionMachine` and the runner of one session, and the connections of programs.
///
/// What `ServedSession` and `TransferServer` do with threads are steps here, in an order that the seed selects.
final class SimulatedService {
  private struct Visit {
    var connection: SimulatedConnection?
    var sendQueue = SendQueue()
    var isAdmitted = false
    /// Whether the visit is over once it is admitted.
    var isShort = false
  }

  private let world: TransferWorld
  private var machine: ServedSessionMachine
  private var actions: ServedSessionMachine.Actions = []
  private var runner: SimulatedRunner?
  /// The runner of which the notices are taken.
  private var generation: Int?
  private var visits: [ServedSessionMachine.VisitID: Visit] = [:]
  private var lastVisit = 0
  private var lastFlush = 0
  private var flushes: [ServedSessionMachine.FlushID: (visit: Int, number: Int)] = [:]

  init(_ world: TransferWorld) {
    self.world = world
    machine = ServedSessionMachine(TransferWorld.transferSession)
    enter(.restore, nil)
  }

  /// Opens the session for a program.
  func connect(_ connection: SimulatedConnection) { enter(.attach(TransferWorld.transferSession), connection) }

  private func enter(_ wish: ServedSessionMachine.Wish, _ connection: SimulatedConnection?) {
    lastVisit += 1
    visits[lastVisit] = Visit(connection: connection, isShort: connection == nil)
    machine.enter(lastVisit, wish, into: &actions)
  }

  /// The process is killed. Of the answers on their way some arrive.
  func kill() {
    for visit in visits.values {
      guard let connection = visit.connection else { continue }
      connection.answers = Array(connection.answers.prefix(world.draw.number(0...connection.answers.count)))
      connection.isServiceGone = true
    }
  }

  var isAtRest: Bool {
    machine.isAtRest && actions.isEmpty && (runner?.isEmpty ?? true) && visits.isEmpty
  }

  var hasNoTasks: Bool { machine.records.isEmpty && (runner?.isEmpty ?? true) }
  var runningTasks: [Int] { runner?.runningTasks ?? [] }

  // MARK: - Steps

  private enum Step {
    case act, execute, takeOutput
    case deliver(Int)
    case read(Int, SimulatedConnection)
  }

  /// Does one step.
  ///
  /// - Returns: `false` if there is nothing to do but the loads.
  func step() -> Bool {
    var steps: [Step] = []
    if !actions.isEmpty { steps.append(.act) }
    if let runner {
      if !runner.inputs.isEmpty { steps.append(.execute) }
      if !runner.outputs.isEmpty, generation != nil || runner.isClosed { steps.append(.takeOutput) }
    }
    for number in visits.keys.sorted() {
      guard let visit = visits[number], let connection = visit.connection else { continue }
      if visit.sendQueue.count > 0 { steps.append(.deliver(number)) }
      if visit.isAdmitted, !connection.requests.isEmpty || connection.isProgramGone {
        steps.append(.read(number, connection))
      }
    }
    guard !steps.isEmpty else { return false }
    switch world.draw.pick(steps) {
    case .act: perform(actions.removeFirst())
    case .execute: runner?.performNext()
    case .takeOutput: takeOutput()
    case .deliver(let number): deliver(number)
    case .read(let number, let connection): read(number, connection)
    }
    return true
  }

  func load() {
    let tasks = runningTasks
    if !tasks.isEmpty { runner?.step(world.draw.pick(tasks)) }
  }

  private func takeOutput() {
    switch runner?.takeOutput() {
    case .notice(let notice): machine.received(notice, from: generation ?? 0, into: &actions)
    case .flushed(let flush): machine.flushed(flush, isConfirmed: true, into: &actions)
    case .closed:
      runner = nil
      generation = nil
      machine.closed(into: &actions)
    case nil: break
    }
  }

  private func read(_ number: Int, _ connection: SimulatedConnection) {
    guard !connection.requests.isEmpty else { return leave(number) }
    switch connection.requests.removeFirst() {
    case .command(let command): _ = machine.commanded(number, command, into: &actions)
    case .flush(let flush):
      lastFlush += 1
      flushes[lastFlush] = (number, flush)
      machine.flush(lastFlush, into: &actions)
    }
  }

  private func leave(_ number: Int) {
    visits[number]?.connection?.isServiceGone = true
    visits[number] = nil
    machine.leave(number, into: &actions)
  }

  /// Sends a notice.
  private func deliver(_ number: Int) {
    guard let notice = visits[number]?.sendQueue.next() else { return }
    if case .question = notice { machine.questionTaken(number, into: &actions) }
    visits[number]?.connection?.answers.append(.notice(notice))
  }

  // MARK: - Actions

  private func perform(_ action: ServedSessionMachine.Action) {
    world.note("service: \(Self.short(action))")
    switch action {
    case .say(let visit, let word): say(visit, word)
    case .probe(let visit):
      machine.probed(visit, hasGone: visits[visit]?.connection?.isProgramGone ?? true, into: &actions)
    case .welcome(let visit, let records): visits[visit]?.connection?.answers.append(.opened(records))
    case .notify(let visit, let notice): _ = visits[visit]?.sendQueue.add(notice)
    case .dismiss(let visit): visits[visit]?.connection?.isServiceGone = true
    case .launch: world.launch()
    case .start(let generation):
      self.generation = generation
      runner?.start()
    case .pass(let command): runner?.inputs.append(.command(command))
    case .flush(let flush): runner?.inputs.append(.flush(flush))
    case .close: runner?.inputs.append(.close)
    case .complete(let flush, let isConfirmed):
      guard let (visit, number) = flushes.removeValue(forKey: flush), isConfirmed else { return }
      // The notices so far go first.
      while (visits[visit]?.sendQueue.count ?? 0) > 0 { deliver(visit) }
      visits[visit]?.connection?.answers.append(.flushed(number))
    case .store, .log, .rest, .finish: break
    }
  }

  private static func short(_ action: ServedSessionMachine.Action) -> String {
    switch action {
    case .welcome(let visit, let records): "welcome \(visit) \(records.map(\.short))"
    case .notify(let visit, .changed(let record)): "notify \(visit) \(record.short)"
    case .store: "store"
    case .launch: "launch"
    case .say(let visit, .make): "say \(visit) make"
    default: "\(action)"
    }
  }

  private func say(_ number: Int, _ word: ServedSessionMachine.Word) {
    switch word {
    case .admitted:
      visits[number]?.isAdmitted = true
      if visits[number]?.isShort == true { leave(number) }
    case .wait: if world.draw.chance(1, of: 8) { machine.waitedTooLong(number, into: &actions) }
    case .make: make(number)
    case .refused(let error):
      visits[number]?.connection?.answers.append(.refused(error))
      visits[number]?.connection?.isServiceGone = true
      visits[number] = nil
    case .over:
      visits[number]?.connection?.isServiceGone = true
      visits[number] = nil
    }
  }

  private func make(_ number: Int) {
    do throws(TransferLinkError) {
      let runner = try SimulatedRunner(world)
      self.runner = runner
      machine.made(number, runner.records, into: &actions)
    } catch {
      machine.notMade(number, error, into: &actions)
    }
  }
}
