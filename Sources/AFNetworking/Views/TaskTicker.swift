import Dispatch
import Synchronization

/// Polls a task at intervals until it is over.
///
/// UIKit's categories observe a task's keys. Foundation on Linux has no key-value observation, and a view is redrawn
/// only a few times a second: polling at each drawing is enough.
final class TaskTicker: Sendable {
  private let queue: DispatchQueue
  private let milliseconds: Int
  /// Number of starts and stops. Ticks of an earlier start do nothing.
  private let run = Mutex(0)

  init(label: String, seconds: Double) {
    queue = DispatchQueue(label: label)
    milliseconds = seconds.isFinite ? Int(min(max(seconds, 0.001), 3600) * 1000) : 100
  }

  /// Calls `look` on the queue, at once and then after each interval, until it returns `false`, or until the next
  /// `start` or `stop`.
  func start(_ look: @escaping @Sendable () -> Bool) {
    let run = nextRun()
    queue.async { [weak self] in self?.tick(run, look) }
  }

  /// Prevents further calls. A call that has begun may still be running.
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
