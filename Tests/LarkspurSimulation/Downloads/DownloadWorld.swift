import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import TestKit

/// The servers, the disk, the programs and the clock of a `DownloadScenario`. Everything happens on one thread.
final class DownloadWorld: @unchecked Sendable {
  static let name = "file"

  var draw: SeededRandom
  private var generator: SeededGenerator
  let plant: DownloadScenario.Plant?
  private let isTraced: Bool
  /// The call of the disk at which the only faulty program is killed, or `nil` if the seed decides.
  private let killedCall: Int?
  private(set) var disk: ScriptedDisk
  var ledger: DownloadLedger
  let setting: DownloadSetting
  var mirrors: [SimulatedMirror]
  /// Nanoseconds since the world began.
  private(set) var now: UInt64 = 1
  private var events = EventQueue()
  private var programs: [SimulatedDownload] = []
  /// Number of programs that open their files, and of all programs that have begun to.
  private var opening = 0
  private var starts = 0
  private var report = DownloadScenario.Report()
  /// Whether nothing goes wrong any more.
  private var isCalm = false
  /// Whether a call of the disk may have failed in the current run, or the disk was full.
  private var hasDiskFault = false
  /// Whether events happen between two calls of the disk, and whether one does.
  private var isInterleaved = false
  private var isBetweenCalls = false
  /// The file that has the destination's name, when it was last checked.
  private var checkedNode: Int?

  init(_ seed: UInt64, _ plant: DownloadScenario.Plant?, killedCall: Int?, isTraced: Bool) {
    (self.plant, self.killedCall, self.isTraced) = (plant, killedCall, isTraced)
    draw = SeededRandom(seed: seed)
    generator = SeededGenerator(seed: ~seed)
    disk = ScriptedDisk(keepsCalls: false)
    setting = DownloadSetting(&draw)
    mirrors = setting.mirrors
    let earlier: [UInt8]? = draw.chance(1, of: 3) ? Array("the earlier file".utf8) : nil
    if let earlier { disk.put(Self.name, earlier) }
    ledger = DownloadLedger(setting, earlier: earlier)
    use(disk)
  }

  private func use(_ disk: ScriptedDisk) {
    self.disk = disk
    if let plant { disk.plant(plant) }
    disk.interleave { [weak self] in self?.callBegins() }
    checkedNode = disk.node(Self.name)
  }

  // MARK: - Time

  var seconds: Double { Double(now) / 1e9 }

  func at(_ time: UInt64, _ happen: @escaping () -> Void) { events.insert(at: max(time, now), happen) }
  func after(_ time: UInt64, _ happen: @escaping () -> Void) { at(now + time, happen) }
  /// The time of a call on another thread.
  func soon(_ happen: @escaping () -> Void) { after(draw.time(0...milliseconds(3)), happen) }
  /// The time of a request's way to a server and back.
  func later(_ happen: @escaping () -> Void) { after(draw.time(milliseconds(1)...milliseconds(80)), happen) }

  func fraction() -> Double { Double(draw.number(0...1_000)) / 1_000 }

  /// Keeps an event for the trace.
  func note(_ event: @autoclosure () -> String) {
    if isTraced { report.trace.append("\(report.runs) \(now / 1_000_000) ms: \(event())") }
  }

  private func step(at limit: UInt64 = .max) -> Bool {
    guard let time = events.soonest, time <= limit else { return false }
    now = max(now, time)
    events.popDue(at: now)?()
    return true
  }

  /// Runs calls of the disk that block their thread. Events of other threads happen between them.
  func interleaved<Value, Failure>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    guard !isInterleaved else { return try body() }
    isInterleaved = true
    defer { isInterleaved = false }
    return try body()
  }

  private func callBegins() {
    guard isInterleaved, !isBetweenCalls else { return }
    isBetweenCalls = true
    while draw.chance(1, of: 3), step(at: now + milliseconds(20)) {}
    isBetweenCalls = false
  }

  // MARK: - The servers

  func respond(_ mirror: Int, range: String?, condition: String?) -> SimulatedMirror.Response? {
    let response = mirrors[mirror].respond(
      range: range, condition: condition, versions: setting.versions, isCalm: isCalm, &draw)
    if let response { ledger.sent(response, by: mirrors[mirror]) }
    return response
  }

  // MARK: - The world

  private static let eventsMax = 50_000

  func run() -> DownloadScenario.Report {
    for _ in 0..<(killedCall == nil ? setting.runs : 1) where ledger.complaints.isEmpty {
      arm()
      plan()
      run(setting.plan(&draw, isCalm: false))
    }
    isCalm = true
    for index in mirrors.indices { mirrors[index].version = setting.versions.last }
    disarm()
    run(setting.plan(&draw, isCalm: true))
    report.complaints = ledger.complaints
    return report
  }

  /// Selects how the disk fails in the next run.
  private func arm() {
    disarm()
    if let killedCall { return disk.fail(after: killedCall) }
    switch draw.number(0...7) {
    case 0...3: disk.fail(after: draw.number(0...draw.pick([8, 30, 120])))
    case 4:
      hasDiskFault = true
      disk.fail(after: draw.number(0...60), with: draw.pick([.noSpace, .inputOutput]), once: true)
    case 5:
      hasDiskFault = true
      after(draw.time(0...milliseconds(500))) {
        self.note("the disk is full")
        self.disk.setRoom(self.draw.number(0...100))
      }
    default: break
    }
  }

  private func disarm() {
    hasDiskFault = false
    disk.fail(after: .max)
    disk.setRoom(.max)
  }

  /// Selects what happens besides in the next run.
  private func plan() {
    while killedCall == nil, draw.chance(1, of: 2) {
      let time = draw.time(0...draw.pick([milliseconds(200), LarkspurSimulation.seconds(3)]))
      switch draw.number(0...7) {
      case 0...2: after(time) { self.change() }
      case 3, 4:
        after(time) { for program in self.programs { program.pause() } }
        after(time + draw.time(0...milliseconds(200))) { for program in self.programs { program.resume() } }
      case 5: after(time) { for program in self.programs { program.cancel() } }
      default: after(time) { self.start(self.setting.plan(&self.draw, isCalm: false)) }
      }
    }
  }

  /// The file changes, at all servers or at one.
  private func change() {
    let one = draw.chance(1, of: 2) ? draw.number(0...mirrors.count - 1) : nil
    for index in mirrors.indices where one ?? index == index {
      mirrors[index].version = min(mirrors[index].version + 1, setting.versions.last)
    }
    note("versions \(mirrors.map(\.version))")
  }

  private func start(_ plan: SimulatedDownload.Plan) {
    let others = programs.filter { !$0.isClosed }
    let isFirst = others.isEmpty && opening == 0
    opening += 1
    starts += 1
    let start = starts
    defer { opening -= 1 }
    note("a program starts with servers \(plan.mirrors), \(plan.rules.lanesMax) lanes of \(plan.rules.pieceBytes)")
    do throws(DownloadStore.Failure) {
      let program = try SimulatedDownload(self, plan)
      programs.append(program)
      if !program.isClosed, others.contains(where: { !$0.isClosed && $0.inode == program.inode }) {
        ledger.complain("two programs write one part")
      }
    } catch {
      note("the program is refused: \(error)")
      if disk.isDead { return }
      switch error {
      case .inUse where !isFirst || starts > start: break
      case .disk where hasDiskFault: break
      default: ledger.complain("the files cannot be opened: \(error)")
      }
    }
  }

  private func run(_ plan: SimulatedDownload.Plan) {
    report.runs += 1
    start(plan)
    if isCalm, programs.isEmpty { ledger.complain("the last program does not start") }
    var count = 0
    while !disk.isDead, programs.contains(where: { !$0.isClosed }) {
      guard step() else {
        ledger.complain("a program waits for nothing")
        break
      }
      count += 1
      guard count < Self.eventsMax else {
        ledger.complain("a program does not end")
        break
      }
      checkName()
      judge()
    }
    if disk.isDead { kill() } else { judge() }
    report.requests += programs.reduce(0) { $0 + $1.requests }
    programs = []
    events.removeAll()
    for index in mirrors.indices { mirrors[index].running = 0 }
  }

  private func checkName() {
    let node = disk.node(Self.name)
    guard node != checkedNode else { return }
    checkedNode = node
    ledger.check(name: disk.bytes(Self.name), "while it runs")
  }

  // MARK: - Ends

  /// Checks the programs that have ended since the last time.
  private func judge() {
    for program in programs where program.isClosed && !program.isJudged && !disk.isDead {
      program.isJudged = true
      note("a program ends: \(program.failure.map { "\($0)" } ?? "success")")
      let isAlone = programs.allSatisfy(\.isClosed)
      guard let failure = program.failure else {
        // A disk that fails may refuse a removal, which the next program makes.
        let names = isAlone && !hasDiskFault ? disk.names : []
        ledger.succeeded(name: disk.bytes(Self.name), names: names, destination: Self.name)
        continue
      }
      report.failures["\(failure)", default: 0] += 1
      if isCalm, !setting.isHopeless || failure != .notResumable {
        ledger.complain("the last program fails: \(failure)")
      }
      switch failure {
      case .disk, .diskFull:
        if !hasDiskFault { ledger.complain("the disk has no fault, and a program fails: \(failure)") }
      default:
        if isAlone { checkLeft(program) }
      }
      check(disk, "after a failure")
    }
  }

  /// Checks what a failure leaves.
  private func checkLeft(_ program: SimulatedDownload) {
    let record = record(of: disk)
    if program.isAtRest, !hasDiskFault {
      let lost = program.watch.lost(keeping: record)
      if lost > 0 { ledger.complain("\(lost) bytes are not kept after a failure") }
    }
    let others = disk.names.filter { $0 != Self.name }
    if record == nil, !others.isEmpty, !hasDiskFault { ledger.complain("\(others) are left without a record") }
  }

  private func kill() {
    report.kills += 1
    let isPowerLost = draw.chance(1, of: 2)
    note(isPowerLost ? "the power is lost" : "the process is killed")
    for _ in 0..<2 { check(disk.afterPowerLoss(&generator), "after a loss of power that might be") }
    let next = isPowerLost ? disk.afterPowerLoss(&generator) : disk.afterKill()
    check(next, isPowerLost ? "after a loss of power" : "after a kill")
    for program in programs where program.isRecording && disk.node(DownloadStore.partName(Self.name)) == program.inode {
      let lost = program.watch.lost(keeping: record(of: next))
      let most = program.plan.rules.lanesMax * program.plan.rules.pieceBytes
      if lost > most { ledger.complain("\(lost) bytes were not kept, and \(most) may be") }
    }
    use(next)
    disk.setRoom(.max)
  }

  private func record(of disk: ScriptedDisk) -> DownloadRecord? {
    disk.bytes(DownloadStore.recordName(Self.name)).flatMap { DownloadRecord(file: $0) }
  }

  /// Checks the files that a program or its end has left.
  private func check(_ disk: ScriptedDisk, _ occasion: String) {
    ledger.check(name: disk.bytes(Self.name), occasion)
    guard let bytes = disk.bytes(DownloadStore.recordName(Self.name)) else { return }
    guard let record = DownloadRecord(file: bytes) else {
      return ledger.complain("the record cannot be read (\(occasion))")
    }
    let names = [DownloadStore.partName(Self.name), Self.name]
    let part = names.first { disk.node($0).map(UInt64.init) == record.inode }.flatMap { disk.bytes($0) }
    ledger.check(record, part: part, occasion)
  }
}
