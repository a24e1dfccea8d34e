import LarkspurBytes
import LarkspurTransport

/// What has two times: since the last byte, and in all. They stand still while its task is suspended, and while the task's
/// owner is asked something. While it waits for a network, only the second one counts. It belongs to its loop's thread.
///
/// Nothing is done when bytes come but the writing down of a time: `TaskClocks` looks when one may be up. (A base class, for
/// an object more takes longer to make than all that its clock does.)
class TimedWork: RequestScope, @unchecked Sendable {
  private let clocks: TaskClocks
  /// Where it stands among those that run, if it does and may be up at all. Theirs.
  fileprivate var placeOfClock: Int?
  /// In nanoseconds.
  private let idleMax: UInt64
  private let totalMax: UInt64
  private var isTimed = false
  private(set) final var lastProgress = Deadline.never
  private var end = Deadline.never
  /// When it was stopped. Nil: it runs.
  private var pausedAt: Deadline?
  /// Who has stopped it.
  private var pauses = 0
  /// Whether bytes are expected at all.
  private var countsIdleTime = true

  init(idle: UInt64, total: UInt64, by clocks: TaskClocks, in pool: Pool, collectsMetrics: Bool) {
    idleMax = idle
    totalMax = total
    self.clocks = clocks
    super.init(Setting(of: pool, collectsMetrics: collectsMetrics))
  }

  /// One of the two is over.
  func timeIsUp() {}

  private var now: Deadline { clocks.loop.now }

  /// It is kept while the clock runs, if a time can be up.
  final func startClock() { clocks.start(self) }

  fileprivate final func started(at now: Deadline) {
    isTimed = true
    lastProgress = now
    end = now.advanced(byNanoseconds: totalMax)
  }

  final func progressed() { lastProgress = now }

  final func stopClock() {
    isTimed = false
    disarm()
  }

  final func pauseClock() {
    pauses += 1
    guard pauses == 1 else { return }
    pausedAt = now
    disarm()
  }

  final func resumeClock() {
    pauses -= 1
    guard pauses == 0, let since = pausedAt else { return }
    pausedAt = nil
    lastProgress = now
    if end != .never { end = end.advanced(by: now.duration(since: since)) }
    arm()
  }

  /// For so long as nothing may come.
  final func startIdleTimer(_ action: @escaping () -> Void) -> ClientLoop.Timer {
    clocks.loop.startTimer(now.advanced(byNanoseconds: idleMax), action)
  }

  /// There is no network, and so nothing to be waited for but that.
  final func stopIdleTime() {
    countsIdleTime = false
    rearm()
  }

  final func countIdleTime() {
    countsIdleTime = true
    lastProgress = now
    rearm()
  }

  fileprivate var due: Deadline {
    let idle = lastProgress.advanced(byNanoseconds: idleMax)
    // (`min` is generic, and asks the conformance.)
    return countsIdleTime && idle < end ? idle : end
  }

  fileprivate final var isPaused: Bool { pausedAt != nil }

  private func rearm() {
    disarm()
    arm()
  }

  @inline(__always)
  private func arm() {
    guard isTimed, pausedAt == nil else { return }
    clocks.add(self)
  }

  private func disarm() { clocks.remove(self) }
}

/// The clocks of a session's tasks: one timer for all of them. It is set for the first that may be up, and looks at all when
/// it fires, so that a task that ends in time costs no timer. It belongs to its loop's thread.
final class TaskClocks {
  /// A time in a form that costs nothing to add. Nil: as long as it takes.
  static func nanoseconds(_ time: Duration?) -> UInt64 { time?.wholeNanoseconds ?? .max }

  private struct State {
    var running: [TimedWork] = []
    var timer: ClientLoop.Timer?
    /// When it fires.
    var fires = Deadline.never
  }

  fileprivate let loop: ClientLoop
  private let own = Confined(State())

  init(on loop: ClientLoop) { self.loop = loop }

  fileprivate func start(_ work: TimedWork) {
    work.started(at: loop.now)
    if !work.isPaused { add(work) }
  }

  @inline(__always)
  fileprivate func add(_ work: TimedWork) {
    let due = work.due
    guard work.placeOfClock == nil, due < .never else { return }
    work.placeOfClock = own.state.running.count
    own.state.running.append(work)
    if due < own.state.fires { setTimer(due) }
  }

  /// The last one takes the free place. The timer stays: another clock will want it.
  @inline(__always)
  fileprivate func remove(_ work: TimedWork) {
    guard let place = work.placeOfClock else { return }
    work.placeOfClock = nil
    let last = own.state.running.removeLast()
    guard last !== work else { return }
    own.state.running[place] = last
    last.placeOfClock = place
  }

  private func setTimer(_ due: Deadline) {
    stopTimer()
    own.state.fires = due
    own.state.timer = loop.startTimer(due) { [self] in fired() }
  }

  /// Nothing is looked at until another clock is added. The timer keeps its owner.
  func stopTimer() {
    guard let timer = own.state.timer.take() else { return }
    own.state.fires = .never
    loop.stopTimer(timer)
  }

  private func fired() {
    stopTimer()
    var next = Deadline.never
    // Who is told may stop the others.
    for work in own.state.running where work.placeOfClock != nil {
      let due = work.due
      if due <= loop.now {
        remove(work)
        work.timeIsUp()
      } else {
        next = min(next, due)
      }
    }
    if next < own.state.fires { setTimer(next) }
  }
}
