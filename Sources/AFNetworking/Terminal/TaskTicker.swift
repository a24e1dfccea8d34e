import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Looks at a task again and again, until it is over.
///
/// UIKit's categories observe keys of a task. Foundation on Linux does not tell of keys, and a terminal is drawn a few times a
/// second anyhow: so the task is looked at when it is time to draw. While it is suspended nothing is drawn anew.
final class TaskTicker: Sendable {
  private let timer = Mutex<(any DispatchSourceTimer)?>(nil)
  private let queue: DispatchQueue

  init(on queue: DispatchQueue) { self.queue = queue }

  deinit { stop() }

  /// Calls `look` on the queue, at once and then after each interval, until it says that it has seen enough.
  func start(every interval: Duration, _ look: @escaping @Sendable () -> Bool) {
    let source = DispatchSource.makeTimerSource(queue: queue)
    source.setEventHandler { [weak self] in
      if !look() { self?.stop() }
    }
    let nanoseconds = Int(clamping: interval.components.attoseconds / 1_000_000_000)
    let whole = Int(clamping: interval.components.seconds).multipliedReportingOverflow(by: 1_000_000_000).partialValue
    source.schedule(deadline: .now(), repeating: .nanoseconds(max(whole &+ nanoseconds, 1_000_000)))
    let old = timer.withLock { timer in
      defer { timer = source }
      return timer
    }
    old?.cancel()
    source.activate()
  }

  func stop() {
    timer.withLock { $0.take() }?.cancel()
  }
}
