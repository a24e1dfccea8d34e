import LarkspurIO
import LarkspurTransfers
import TestKit

/// A world of background transfers: a program, an executor over a real journal, a server, and a disk that ends the process
/// or the machine at any call. One seed determines one world.
///
/// A program creates, suspends, resumes and cancels tasks, takes files and acknowledges events. The executor and its
/// program are two processes, or one. After a kill the next process finds all that was written, and after a loss of
/// power what was synced and any part of the rest.
///
/// `SimulatedExecutor` stands for the executor. It takes `TransferCommand` and gives records, so that a machine can take
/// its place or stand before it.
package struct TransferScenario {
  package struct Report: Equatable, Sendable {
    package var complaints: [String] = []
    package var tasks = 0
    package var kills = 0
    package var fetchedBytes = 0
    package var turns = 0
  }

  static let session = "simulated"

  /// The program's own state in one process.
  private struct Program {
    /// The events that this process has been given, by task.
    var seen: [Int: Set<TransferRecord.Event>] = [:]
  }

  private var draw: SeededRandom
  private var generator: SeededGenerator
  private var disk: ScriptedDisk
  private var executor: SimulatedExecutor?
  private var program: Program?
  private var server = SimulatedResources()
  private var ledger = TransferLedger()
  private var report = Report()
  /// The tasks that the program has created, on its own disk.
  private var lastTask = 0
  private let tasksMax: Int
  private var killsLeft: Int
  private let isOneProcess: Bool

  /// - Parameter ignoresSync: Whether syncs have no effect, so that checks must fail.
  package init(seed: UInt64, ignoresSync: Bool = false) {
    draw = SeededRandom(seed: seed)
    generator = SeededGenerator(seed: ~seed)
    disk = ScriptedDisk(ignoresSync: ignoresSync)
    tasksMax = draw.number(1...3)
    killsLeft = draw.number(0...4)
    isOneProcess = draw.chance(1, of: 2)
  }

  private static let turnsMax = 2_000

  package mutating func run() -> Report {
    arm()
    play()
    // The last owner finds what the one before could not remove.
    (executor, program) = (nil, nil)
    play()
    if !isOver { ledger.complain("the world does not end") }
    executor = nil
    ledger.end(names: disk.names)
    report.complaints = ledger.complaints
    report.tasks = lastTask
    report.fetchedBytes = ledger.fetchedBytes
    return report
  }

  private mutating func play() {
    while report.turns < Self.turnsMax, !isOver {
      report.turns += 1
      turn()
      if disk.isDead { restart() }
    }
  }

  private var isOver: Bool {
    lastTask == tasksMax && executor.map { $0.records.isEmpty } ?? false && killsLeft == 0
  }

  /// Chooses the call at which the executor's process ends, or a call that fails once.
  private mutating func arm() {
    guard killsLeft > 0 else { return disk.fail(after: .max) }
    disk.fail(after: draw.number(0...40), with: .inputOutput, once: draw.chance(1, of: 8))
  }

  private mutating func restart() {
    report.kills += 1
    killsLeft -= 1
    disk = draw.chance(1, of: 2) ? disk.afterKill() : disk.afterPowerLoss(&generator)
    executor = nil
    if isOneProcess || draw.chance(1, of: 4) { program = nil }
    arm()
  }

  private mutating func turn() {
    guard let executor else {
      self.executor = try? SimulatedExecutor(disk, &ledger)
      return attach()
    }
    guard program != nil else {
      program = Program()
      return attach()
    }
    switch draw.number(0...9) {
    case 0: create()
    case 1: change()
    case 2:
      if let record = self.executor?.takeChange() { deliver(record) }
    case 3 where !isOneProcess && killsLeft > 0 && draw.chance(1, of: 4): program = nil
    case 4 where draw.chance(1, of: 6) && killsLeft > 0 && lastTask > 0: server.change(draw.number(1...lastTask))
    default:
      let tasks = executor.runningTasks
      if tasks.isEmpty {
        if lastTask == tasksMax, killsLeft > 0 { return idle() }
      } else {
        self.executor?.step(draw.pick(tasks), server, &draw, &ledger)
      }
    }
  }

  /// Shows all tasks to a program that opens its session, or whose service has started again.
  private mutating func attach() {
    for record in executor?.records.values.sorted(by: { $0.task < $1.task }) ?? [] { deliver(record) }
  }

  /// Nothing is left to do for a kill to interrupt.
  private mutating func idle() {
    if executor?.records.isEmpty ?? false {
      killsLeft = 0
      arm()
    }
  }

  private mutating func create() {
    guard lastTask < tasksMax else { return resumeAll() }
    lastTask += 1
    var record = TransferRecord(
      task: lastTask, session: Self.session, kind: .download,
      request: TransferRequest(url: "http://server/\(lastTask)"), createdSeconds: 2_000_000_000)
    record.state = draw.chance(1, of: 6) ? .suspended : .running
    send(.create(record))
    if !disk.isDead, executor?.records[lastTask]?.failure == nil { ledger.confirm(lastTask) }
  }

  /// Suspended tasks end only if they are resumed.
  private mutating func resumeAll() {
    for record in executor?.records.values.sorted(by: { $0.task < $1.task }) ?? [] where record.state == .suspended {
      send(.resume(task: record.task))
    }
  }

  private mutating func change() {
    guard lastTask > 0 else { return }
    let task = draw.number(1...lastTask)
    switch draw.number(0...5) {
    case 0: send(.cancel(task: task, isKeepingContent: false))
    case 1: send(.suspend(task: task))
    default: send(.resume(task: task))
    }
  }

  private mutating func send(_ command: TransferCommand) { executor?.carryOut(command, &ledger) }

  /// Gives the program the events of a record that it has not seen, and acknowledges them.
  private mutating func deliver(_ record: TransferRecord) {
    guard program != nil else { return }
    var isNew = false
    for event in record.events where program?.seen[record.task]?.contains(event) != true {
      if event == .downloaded {
        let name = TransferFileName.content(of: record.task)
        // A call that fails is repeated.
        let bytes = (try? disk.read(name, atMost: 1_000)) ?? (try? disk.read(name, atMost: 1_000))
        guard !disk.isDead else { return }
        if bytes.map({ server.isWhole($0, of: record.task) }) != true {
          ledger.complain("the file of task \(record.task) is not whole: \(bytes ?? [])")
        }
      }
      ledger.delivered(record.task, event)
      program?.seen[record.task, default: []].insert(event)
      isNew = true
    }
    // A program may end before it acknowledges.
    if isNew, killsLeft > 0, !isOneProcess, draw.chance(1, of: 8) { return program = nil }
    // An executor that has lost an acknowledgement gets another one.
    if !record.events.isEmpty { send(.acknowledge(task: record.task, count: record.events.count)) }
  }
}
