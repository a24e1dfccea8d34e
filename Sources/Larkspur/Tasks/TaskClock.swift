import LarkspurBytes
import LarkspurTransport

/// A task's two times: since the last byte, and in all. It stands still while the task is suspended, and while the task's
/// owner is asked something. While a task waits for a network, only the second one counts. It belongs to its loop's thread.
///
/// One timer serves both: it is set for the sooner one, and when it fires it looks whether bytes have come meanwhile. So a
/// byte costs the writing down of a time, and no timer.
final class TaskClock {
  private let loop: ClientLoop
  private let idleMax: Duration?
  private let totalMax: Duration?
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

  /// Nil: as long as it takes.
  init(idle: Duration?, total: Duration?, on loop: ClientLoop) {
    idleMax = idle
    totalMax = total
    self.loop = loop
  }

  func start(_ expire: @escaping () -> Void) {
    self.expire = expire
    lastProgress = loop.now
    end = totalMax.map { loop.now.advanced(by: $0) } ?? .never
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
    guard countsIdleTime, let idleMax else { return end }
    return min(end, lastProgress.advanced(by: idleMax))
  }

  private func rearm() {
    disarm()
    arm()
  }

  private func arm() {
    guard expire != nil, pausedAt == nil else { return }
    let due = due
    guard due != .never else { return }
    timer = loop.startTimer(due) { [weak self] in self?.fired() }
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
