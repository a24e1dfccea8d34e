import Dispatch
import Synchronization

/// Looks at a task again and again, until it is over.
///
/// UIKit's categories observe keys of a task. Foundation on Linux does not tell of keys, and a terminal is drawn a few times a
/// second anyhow: so the task is looked at when it is time to draw.
final class TaskTicker: Sendable {
  private let queue: DispatchQueue
  private let milliseconds: Int
  /// Counts the starts and stops: who has begun before does not go on.
  private let run = Mutex(0)

  init(label: String, seconds: Double) {
    queue = DispatchQueue(label: label)
    milliseconds = seconds.isFinite ? Int(min(max(seconds, 0.001), 3600) * 1000) : 100
  }

  /// Calls `look` on a queue, at once and then after each interval, until it says that it has seen enough, or another one is
  /// started.
  func start(_ look: @escaping @Sendable () -> Bool) {
    let run = nextRun()
    queue.async { [weak self] in self?.tick(run, look) }
  }

  /// No call begins after this. One that has begun may still be under way.
  func stop() { _ = nextRun() }

  private func nextRun() -> Int {
    run.withLock { run in
      run += 1
      return run
    }
  }

  private func tick(_ run: Int, _ look: @escaping @Sendable () -> Bool) {
    guard self.run.withLock({ $0 == run }), look() else { return }
    queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [weak self] in self?.tick(run, look) }
  }
}
