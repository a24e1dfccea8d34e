import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// Drives the machine of a download: reports facts to it, and carries out its actions with requests and files.
///
/// Threads. The machine and the tables are under one lock. A lane is a Swift task, which writes its pieces itself. All other
/// work on files runs on the download's own thread, which may block (`DownloadRun+Disk`). No code of a client runs under the
/// lock: tasks are cancelled after it is released, because their handlers run at once.
final class DownloadRun: Sendable {
  /// A request of the download.
  struct Lane: Sendable {
    let task: Task<Void, Never>
    /// Opens when the lane, which waits for the disk, may read on.
    var gate: OneShot<Void>?
    var isWriting = false
  }

  /// Holds the machine, so that facts change it in place. Used under the lock only.
  final class Core: @unchecked Sendable {
    var machine: DownloadMachine
    init(_ machine: DownloadMachine) { self.machine = machine }
  }

  struct Table: Sendable {
    /// `nil` until the files are open, and after the end.
    var core: Core?
    /// The open files.
    var store: DownloadStore?
    /// The requests that the machine has not cancelled.
    var lanes: [Int: Lane] = [:]
    /// The lanes that were cancelled while they wrote.
    var stray: Set<Int> = []
    var jobs: [Job] = []
    var timer: (time: Double, task: Task<Void, Never>)?
    /// The mirror of the latest failure, and the client's error.
    var failure: (url: String, error: (any Error)?) = ("", nil)
    var received = 0
    /// Whether the download was paused or cancelled before the files were open.
    var isPaused = false
    var isCancelled = false
    /// The work on the whole file that is under way.
    var work: Download.State.Phase?
    /// The state after the end.
    var last: Download.State?
  }

  let plan: DownloadPlan
  let client: any DownloadClient
  let feed: DownloadFeed
  let table = Mutex(Table())
  /// Counts reasons for the thread to look for a job.
  let jobsReady = Semaphore()

  init(_ plan: DownloadPlan, _ client: some DownloadClient, _ feed: DownloadFeed) {
    self.plan = plan
    self.client = client
    self.feed = feed
  }

  func begin() {
    do throws(DownloadError) {
      try plan.check()
      try startThread()
    } catch {
      finish(.failure(error))
    }
  }

  // MARK: - The owner's side

  func cancel() {
    table.withLock { $0.isCancelled = true }
    report { $0.cancel(now: $1) }
    // A long file need not be hashed to its end.
    store?.interrupt()
  }

  func pause() {
    table.withLock { $0.isPaused = true }
    report { $0.pause(now: $1) }
  }

  func resume() {
    table.withLock { $0.isPaused = false }
    report { $0.resume(now: $1) }
  }

  /// The open files, or `nil` before and after the run.
  var store: DownloadStore? { table.withLock { $0.store } }

  var state: Download.State { table.withLock { $0.last ?? shown(of: $0) } }

  func shown(of table: Table) -> Download.State {
    var state = Download.State()
    guard let machine = table.core?.machine else { return state }
    state.phase = machine.isPaused ? .paused : table.work ?? .loading
    state.total = machine.total
    state.pieces = machine.written.ranges
    state.received = machine.written.count
    state.kept = machine.keptCount
    state.lanes = machine.lanes.map { lane in
      Download.Lane(
        number: lane.number + 1, url: plan.urls[lane.source].withoutUserinfo, first: lane.first,
        end: lane.end == .max ? nil : lane.end, position: lane.position, rate: lane.rate ?? 0)
    }
    state.rate = state.lanes.reduce(0) { $0 + $1.rate }
    if let total = state.total, state.rate > 0 {
      state.remaining = .seconds(Double(total - state.received) / state.rate)
    }
    return state
  }

  // MARK: - Facts

  /// Reports a fact to the machine, and starts its actions.
  func report(_ fact: (inout DownloadMachine, Double) -> [DownloadMachine.Action]) {
    step { _, machine, now in ((), fact(&machine, now)) }
  }

  /// Reports a fact to the machine under the lock, and starts its actions.
  ///
  /// - Returns: `nil` if the fact does not count: `body` returned `nil`, or there is no machine, or it has ended.
  @discardableResult
  func step<Value>(
    _ body: (inout Table, inout DownloadMachine, Double) -> (Value, [DownloadMachine.Action])?
  ) -> Value? {
    var cancelled: [Task<Void, Never>] = []
    let value = table.withLock { table -> Value? in
      guard let core = table.core, let (value, actions) = body(&table, &core.machine, MachineClock.bootSeconds) else {
        return nil
      }
      cancelled = start(actions, core.machine, &table)
      return value
    }
    for task in cancelled { task.cancel() }
    return value
  }

  /// Starts actions in their order.
  ///
  /// - Returns: The tasks to cancel when the lock has been released.
  private func start(
    _ actions: [DownloadMachine.Action], _ machine: DownloadMachine, _ table: inout Table
  ) -> [Task<Void, Never>] {
    var cancelled: [Task<Void, Never>] = []
    for action in actions {
      switch action {
      case .request(let lane, let request):
        table.work = nil
        table.lanes[lane] = Lane(task: Task { @concurrent [self] in await load(lane, request) })
      case .cancel(let lane): if let task = remove(lane, &table) { cancelled.append(task) }
      case .continue(let lane): table.lanes[lane]?.gate?.set(())
      case .discard: table.jobs.append(.discard)
      case .reserve(let count): table.jobs.append(.reserve(count))
      case .checkpoint(let record): table.jobs.append(.checkpoint(record))
      case .verify(let total):
        table.work = .verifying
        table.jobs.append(.verify(total: total))
      case .install(let total):
        table.work = .installing
        table.jobs.append(.install(total: total))
      case .end(let failure): table.jobs.append(.close(failure))
      }
    }
    if !table.jobs.isEmpty { jobsReady.put() }
    setTimer(machine.nextTime, &table)
    feed.changed(prefixEnd: machine.written.prefixEnd)
    return cancelled
  }

  private func remove(_ lane: Int, _ table: inout Table) -> Task<Void, Never>? {
    guard let removed = table.lanes.removeValue(forKey: lane) else { return nil }
    removed.gate?.cancel()
    if removed.isWriting { table.stray.insert(lane) }
    return removed.task
  }

  private func setTimer(_ time: Double?, _ table: inout Table) {
    guard let time else {
      table.timer?.task.cancel()
      return table.timer = nil
    }
    // A timer that is early looks again.
    if let timer = table.timer {
      if timer.time <= time { return }
      timer.task.cancel()
    }
    let delay = max(0, time - MachineClock.bootSeconds)
    table.timer = (
      time,
      Task { @concurrent [self] in
        guard (try? await Task.sleep(for: .seconds(delay))) != nil else { return }
        self.table.withLock { $0.timer = nil }
        report { $0.passTime(now: $1) }
      }
    )
  }
}
