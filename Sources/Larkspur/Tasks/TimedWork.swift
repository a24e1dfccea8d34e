import LarkspurBytes
import LarkspurTransport

/// A task's two times: since the last byte, and in all. It stands still while the task is suspended, and while the task's
/// owner is asked something. While a task waits for a network, only the second one counts. It belongs to its loop's thread.
///
/// Nothing is done when bytes come but the writing down of a time: `TaskClocks` looks when one may be up.
final class TaskClock {
  private let clocks: TaskClocks
  /// Where it stands among those that run, if it does and may be up at all. Theirs.
  fileprivate var place: Int?
  /// In nanoseconds.
  private let idleMax: UInt64
  private let totalMax: UInt64
  private var expire: (() -> Void)?
  private var lastProgress = Deadline.never
  private var end = Deadline.never
  /// When it was stopped. Nil: it runs.
  private var pausedAt: Deadline?
  /// Who has stopped it.
  private var pauses = 0
  /// Whether bytes are expected at all.
  private var countsIdleTime = true

  /// A time in a form that costs nothing to add. Nil: as long as it takes.
  static func nanoseconds(_ time: Duration?) -> UInt64 { time?.wholeNanoseconds ?? .max }

  init(idle: UInt64, total: UInt64, of clocks: TaskClocks) {
    idleMax = idle
    totalMax = total
    self.clocks = clocks
  }

  private var now: Deadline { clocks.loop.now }

  /// Keeps itself until it is stopped.
  func start(_ expire: @escaping () -> Void) {
    self.expire = expire
    lastProgress = now
    end = now.advanced(byNanoseconds: totalMax)
    arm()
  }

  func progressed() { lastProgress = now }

  func stop() {
    expire = nil
    disarm()
  }

  func pause() {
    pauses += 1
    guard pauses == 1 else { return }
    pausedAt = now
    disarm()
  }

  func goOn() {
    pauses -= 1
    guard pauses == 0, let since = pausedAt else { return }
    pausedAt = nil
    lastProgress = now
    if end != .never { end = end.advanced(by: now.duration(since: since)) }
    arm()
  }

  /// There is no network, and so nothing to be waited for but that.
  func stopIdleTime() {
    countsIdleTime = false
    rearm()
  }

  func countIdleTime() {
    countsIdleTime = true
    lastProgress = now
    rearm()
  }

  fileprivate var due: Deadline {
    countsIdleTime ? min(end, lastProgress.advanced(byNanoseconds: idleMax)) : end
  }

  private func rearm() {
    disarm()
    arm()
  }

  private func arm() {
    guard expire != nil, pausedAt == nil else { return }
    clocks.add(self)
  }

  private func disarm() { clocks.remove(self) }

  fileprivate func isUp() { expire?() }
}

/// The clocks of a session's tasks: one timer for all of them. It is set for the first that may be up, and looks at all when
/// it fires, so that a task that ends in time costs no timer. It belongs to its loop's thread.
final class TaskClocks {
  private struct State {
    var running: [TaskClock] = []
    var timer: ClientLoop.Timer?
    /// When it fires.
    var fires = Deadline.never
  }

  fileprivate let loop: ClientLoop
  private let own = Confined(State())

  init(on loop: ClientLoop) { self.loop = loop }

  @inline(__always)
  fileprivate func add(_ clock: TaskClock) {
    let due = clock.due
    guard clock.place == nil, due < .never else { return }
    clock.place = own.state.running.count
    own.state.running.append(clock)
    if due < own.state.fires { setTimer(due) }
  }

  /// The last one takes the free place. The timer stays: another clock will want it.
  @inline(__always)
  fileprivate func remove(_ clock: TaskClock) {
    guard let place = clock.place else { return }
    clock.place = nil
    let last = own.state.running.removeLast()
    guard last !== clock else { return }
    own.state.running[place] = last
    last.place = place
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
    for clock in own.state.running where clock.place != nil {
      let due = clock.due
      if due <= loop.now {
        remove(clock)
        clock.isUp()
      } else {
        next = min(next, due)
      }
    }
    if next < own.state.fires { setTimer(next) }
  }
}
