import LarkspurBytes
import LarkspurIO
import LarkspurTransfers
import TestKit

/// A world of background transfers: a program, the service, a server, and a disk that ends the process or the machine at any
/// call. One seed determines one world.
///
/// The program has a real `SessionLinkMachine`, the service a real `ServedSessionMachine`, and the runner a real
/// `TransferAttemptMachine` for each task, over a real journal. The program creates, suspends, resumes and cancels tasks,
/// answers questions, takes files, and is killed. After a kill the next process finds all that was written, and after a loss
/// of power what was synced and any part of the rest. In some worlds the program's process carries its tasks out itself.
package struct TransferScenario {
  package struct Report: Equatable, Sendable {
    package var complaints: [String] = []
    package var tasks = 0
    package var kills = 0
    package var fetchedBytes = 0
    package var deliveredFiles = 0
    package var questions = 0
    package var turns = 0
    /// The events, if they are kept.
    package var trace: [String] = []
  }

  private let world: TransferWorld

  /// - Parameters:
  ///   - ignoresSync: Whether syncs have no effect, so that checks must fail.
  ///   - isTraced: Whether the report has the events.
  package init(seed: UInt64, ignoresSync: Bool = false, isTraced: Bool = false) {
    world = TransferWorld(seed, ignoresSync: ignoresSync, isTraced: isTraced)
  }

  package func run() -> Report { world.run() }
}

final class TransferWorld {
  static let session = "simulated"
  static let transferSession = TransferSession(
    identifier: session, directory: "/\(session)", settings: [], launchCommand: ["/program"])

  var draw: SeededRandom
  var generator: SeededGenerator
  private(set) var disk: ScriptedDisk
  var server = SimulatedResources()
  var ledger = TransferLedger()
  let isOneProcess: Bool
  /// Whether nothing goes wrong any more, and the program wants all tasks to end.
  private(set) var isCalm = false
  /// Whether the program ends with the current step.
  var isProgramKilled = false
  private var program: SimulatedProgram?
  private var service: SimulatedService?
  private var report = TransferScenario.Report()
  /// The last task that the program has created, on its own disk.
  private var lastTask = 0
  private let isTraced: Bool
  private let tasksMax: Int
  private var killsLeft: Int
  private var seconds = 2_000_000_000.0

  init(_ seed: UInt64, ignoresSync: Bool, isTraced: Bool) {
    self.isTraced = isTraced
    draw = SeededRandom(seed: seed)
    generator = SeededGenerator(seed: ~seed)
    disk = ScriptedDisk(ignoresSync: ignoresSync, keepsCalls: false)
    tasksMax = draw.number(1...3)
    killsLeft = draw.number(0...4)
    isOneProcess = draw.chance(1, of: 3)
  }

  var moment: TransferMoment { TransferMoment(wallSeconds: seconds, bootSeconds: seconds - 1_900_000_000, boot: 1) }

  func pass(_ time: Double) { seconds += time }

  /// Keeps an event for the trace.
  func note(_ event: @autoclosure () -> String) { if isTraced { report.trace.append("\(report.turns) \(event())") } }

  private static let turnsMax = 5_000

  func run() -> TransferScenario.Report {
    arm()
    while !isCalm, report.turns < Self.turnsMax { turn() }
    // What failed is repeated by the next owner.
    disk.fail(after: .max)
    kill(isPowerLost: false)
    while report.turns < 2 * Self.turnsMax, !isOver { turn() }
    if !isOver { ledger.complain("the world does not end") }
    program?.finish()
    while report.turns < 3 * Self.turnsMax, program?.isFinished == false || service?.isAtRest == false { turn() }
    if program?.isFinished != true || service?.isAtRest == false { ledger.complain("the session does not end") }
    (program, service) = (nil, nil)
    ledger.end(names: disk.names)
    report.complaints = ledger.complaints
    (report.tasks, report.fetchedBytes) = (lastTask, ledger.fetchedBytes)
    (report.deliveredFiles, report.questions) = (ledger.deliveredFiles, ledger.questions)
    return report
  }

  private var isOver: Bool {
    program?.isAtRest ?? false && (isOneProcess || service?.hasNoTasks ?? false)
  }

  /// Chooses the call at which the process with the journal ends, or a call that fails once.
  private func arm() {
    disk.fail(after: killsLeft > 0 ? draw.number(0...50) : .max, with: .inputOutput, once: draw.chance(1, of: 8))
  }

  /// Whether the program is killed here.
  func mayKill(_ part: Int, of whole: Int) -> Bool { !isCalm && killsLeft > 0 && draw.chance(part, of: whole) }

  // MARK: - Processes

  /// The service, which a program starts if it does not run.
  var startedService: SimulatedService {
    let running = service ?? SimulatedService(self)
    service = running
    return running
  }

  func launch() { if program == nil { program = SimulatedProgram(self) } }

  private func killProgram() {
    note("the program is killed")
    isProgramKilled = false
    program?.kill()
    program = nil
  }

  private func kill(isPowerLost: Bool) {
    note(isPowerLost ? "the power is lost" : "the process with the journal is killed")
    report.kills += 1
    disk = isPowerLost ? disk.afterPowerLoss(&generator) : disk.afterKill()
    service?.kill()
    service = nil
    if isPowerLost || isOneProcess { killProgram() }
  }

  // MARK: - Turns

  private func turn() {
    report.turns += 1
    ledger.hasDiskFailed = disk.hasFailedOnce
    act()
    if isProgramKilled {
      killsLeft -= 1
      killProgram()
    }
    if disk.isDead {
      killsLeft -= 1
      kill(isPowerLost: draw.chance(1, of: 2))
      arm()
    }
  }

  private func act() {
    guard let program else {
      if isCalm || service == nil || draw.chance(1, of: 4) { launch() } else { _ = service?.step() }
      return
    }
    if program.isRefused { return killProgram() }
    switch draw.number(0...15) {
    case 0: if isCalm { program.calm() } else { create() }
    case 1 where !isCalm: program.change()
    case 2 where !isCalm: wish()
    case 3, 4, 5, 6, 7: if !program.step() { load() }
    case 8, 9, 10, 11, 12, 13: if service?.step() != true { load() }
    default: load()
    }
  }

  private func load() {
    if isOneProcess {
      guard let runner = program?.runner else { return }
      let tasks = runner.runningTasks
      if !tasks.isEmpty { runner.step(draw.pick(tasks)) }
    } else {
      service?.load()
    }
  }

  private func wish() {
    switch draw.number(0...7) {
    case 0 where lastTask > 0: server.change(draw.number(1...lastTask))
    case 1 where mayKill(1, of: 4): isProgramKilled = true
    case 2: program?.flush()
    default: if lastTask == tasksMax, killsLeft <= 0 || isOver { isCalm = true }
    }
  }

  private func create() {
    guard lastTask < tasksMax else { return }
    lastTask += 1
    let file = TransferRecord.UploadFile(path: "/file", identity: FileStatus())
    let isUpload = draw.chance(1, of: 4)
    var record = TransferRecord(
      task: lastTask, session: Self.session, kind: isUpload ? .upload : .download,
      request: TransferRequest(url: "http://server/\(lastTask)"), uploadFile: isUpload ? file : nil,
      createdSeconds: seconds)
    record.state = .running
    record.isDiscretionary = draw.chance(1, of: 6)
    if draw.chance(1, of: 8) { record.earliestBeginSeconds = seconds + Double(draw.number(0...100)) }
    program?.create(record)
    if draw.chance(1, of: 2) { program?.flush() }
  }

  // MARK: - The server and the files

  /// Returns the question that a server asks before it sends anything.
  func challenge(_ task: Int) -> TransferQuestion? {
    guard draw.chance(1, of: 8) else { return nil }
    ledger.asked()
    guard draw.chance(1, of: 2) else {
      return .trust(
        TransferTrust(host: "server", port: 443, sent: [], verified: [], code: 0, depth: 0, complaint: nil))
    }
    return .challenge(
      TransferChallenge(
        host: "server", port: 80, scheme: "http", realm: "a", method: "basic", proxyKind: nil, previousFailures: 0,
        proposed: nil))
  }

  /// The program takes the file of a task, and perhaps moves it.
  func take(_ record: TransferRecord) {
    let name = TransferFileName.content(of: record.task)
    let bytes = disk.bytes(name)
    let isWhole = bytes.map {
      record.kind == .upload ? $0 == server.answer(to: record.task) : server.isWhole($0, of: record.task)
    }
    let isMoved = draw.chance(1, of: 2)
    if isMoved { disk.take(name) }
    ledger.took(record.task, isWhole: isWhole, isMoved: isMoved)
  }
}
