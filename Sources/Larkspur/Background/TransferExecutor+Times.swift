import Dispatch
import Foundation
import LarkspurTransfers

/// The times of the tasks: when an attempt begins, and when the time for the resource is over. All runs on the executor's
/// queue.
extension TransferExecutor {
  func timedOut(_ attempt: TransferAttempt) {
    end(attempt, URLError.make(.timedOut, "the time for the resource is over"))
  }

  /// Returns to a task after a time in seconds: to begin an attempt, or to end one whose time is over.
  ///
  /// - Parameter byWallClock: Whether the wait is for a time of the wall clock, and ends with it when the clock is set.
  func wake(_ attempt: TransferAttempt, in seconds: Double, byWallClock: Bool = false) {
    let wait = min(max(seconds, 0), Self.waitMax)
    let timer = attempt.timer ?? makeTimer(of: attempt)
    if byWallClock { timer.schedule(wallDeadline: .now() + wait) } else { timer.schedule(deadline: .now() + wait) }
  }

  /// A source, because a delayed block stays in memory until its time, even if it is cancelled.
  private func makeTimer(of attempt: TransferAttempt) -> any DispatchSourceTimer {
    let (task, timer) = (attempt.record.task, DispatchSource.makeTimerSource(queue: queue))
    timer.setEventHandler { [weak self] in self?.timeHasCome(task) }
    timer.activate()
    attempt.timer = timer
    return timer
  }

  /// Maximum wait in seconds. Longer waits are waited for in parts, because the timers stand still while the machine sleeps.
  private static let waitMax = 3600.0

  private func timeHasCome(_ task: Int) {
    guard let attempt = attempts[task], attempt.record.state == .running else { return }
    // A later boot knows only the wall clock.
    if attempt.record.hasOtherClock(at: clock()) { write(attempt) }
    guard attempt.inner != nil else { return begin(task) }
    let left = attempt.machine.secondsLeft(at: clock())
    guard left <= 0 else { return wake(attempt, in: left) }
    stop(attempt)
    timedOut(attempt)
  }

  /// Begins the next discretionary task soon. Not at once: a thousand tasks whose time is over would end one inside the
  /// other.
  func beginNextDiscretionary() {
    queue.async { [weak self] in
      guard let self, let next = TransferAttemptMachine.firstDiscretionary(at: clock(), among: machines) else { return }
      begin(next.record.task)
    }
  }
}
