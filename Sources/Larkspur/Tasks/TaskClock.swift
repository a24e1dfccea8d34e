import LarkspurBytes
import LarkspurTransport

/// A task's two times: since the last byte, and in all. It stands still while the task is suspended, and while the task's
/// owner is asked something. While a task waits for a network, only the second one counts. It belongs to its loop's thread.
///
/// One timer serves both: it is set for the sooner one, and when it fires it looks whether bytes have come meanwhile. So a
/// byte costs the writing down of a time, and no timer.
final class TaskClock {
  private let loop: ClientLoop
  /// In nanoseconds.
  private let idleMax: UInt64
  private let totalMax: UInt64
  private var expire: (() -> Void)?
  private var timer: ClientLoop.Timer?
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

  init(idle: UInt64, total: UInt64, on loop: ClientLoop) {
    idleMax = idle
    totalMax = total
    self.loop = loop
  }

  /// Keeps itself until it is stopped.
  func start(_ expire: @escaping () -> Void) {
    self.expire = expire
    lastProgress = loop.now
    end = loop.now.advanced(byNanoseconds: totalMax)
    arm()
  }

  func progressed() { lastProgress = loop.now }

  func stop() {
    expire = nil
    disarm()
  }

  func pause() {
    pauses += 1
    guard pauses == 1 else { return }
    pausedAt = loop.now
    disarm()
  }

  func goOn() {
    pauses -= 1
    guard pauses == 0, let since = pausedAt else { return }
    pausedAt = nil
    lastProgress = loop.now
    if end != .never { end = end.advanced(by: loop.now.duration(since: since)) }
    arm()
  }

  /// There is no network, and so nothing to be waited for but that.
  func stopIdleTime() {
    countsIdleTime = false
    rearm()
  }

  func countIdleTime() {
    countsIdleTime = true
    lastProgress = loop.now
    rearm()
  }

  private var due: Deadline {
    countsIdleTime ? min(end, lastProgress.advanced(byNanoseconds: idleMax)) : end
  }

  private func rearm() {
    disarm()
    arm()
  }

  private func arm() {
    guard expire != nil, pausedAt == nil else { return }
    let due = due
    guard due != .never else { return }
    timer = loop.startTimer(due) { [self] in fired() }
  }

  private func disarm() {
    guard let timer else { return }
    self.timer = nil
    loop.stopTimer(timer)
  }

  private func fired() {
    disarm()
    guard due <= loop.now else { return arm() }
    expire?()
  }
}
