import Dispatch
import Foundation
import LarkspurTransfers

/// The times of the tasks: when an attempt begins, and when the time for the resource is over. All runs on the executor's
/// queue.
extension TransferExecutor {
  /// The rest of the time for the resource in seconds. The time stands still while the task is suspended.
  func secondsLeft(of attempt: TransferAttempt) -> Double {
    let record = attempt.record
    return record.createdSeconds + record.pausedSeconds + secondsForResource - record.seconds(at: clock())
  }

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
    let left = secondsLeft(of: attempt)
    guard left <= 0 else { return wake(attempt, in: left) }
    stop(attempt)
    timedOut(attempt)
  }

  /// Returns the next discretionary task to load: the oldest of those that wait for nothing but the machine.
  func nextDiscretionary(at moment: TransferMoment) -> TransferAttempt? {
    attempts.values.filter {
      let (record, inner) = ($0.record, $0.inner)
      return record.isDiscretionary && record.state == .running && inner == nil && !$0.isAsking
        && record.isDue(at: moment)
    }.min { $0.record.task < $1.record.task }
  }

  /// Begins the next discretionary task soon. Not at once: a thousand tasks whose time is over would end one inside the
  /// other.
  func beginNextDiscretionary() {
    queue.async { [weak self] in
      guard let self, let next = nextDiscretionary(at: clock()) else { return }
      begin(next.record.task)
    }
  }
}
