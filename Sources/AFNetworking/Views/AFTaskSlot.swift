import Foundation
import Larkspur
import Synchronization

/// A view's slot for a task whose state or progress it shows. The latest task wins.
///
/// Foundation on Linux has no key-value observation: the slot polls the task at intervals, on a private queue, and
/// calls the view only when something has changed.
public final class AFTaskSlot: Sendable {
  /// The default interval between two polls, in seconds.
  public static let pollIntervalDefault = 0.1

  private let ticker: TaskTicker
  private let scheduler: AFViewScheduler?
  /// Number of attachments. Callbacks of an earlier attachment do nothing.
  private let attachment = Mutex(0)

  /// Creates a slot.
  ///
  /// - Parameters:
  ///   - pollInterval: The interval between two polls, in seconds.
  ///   - scheduler: Calls the view; if `nil`, `AFViewScheduler.shared` does.
  public init(pollInterval: TimeInterval = AFTaskSlot.pollIntervalDefault, scheduler: AFViewScheduler? = nil) {
    ticker = TaskTicker(label: "larkspur.view.task", seconds: pollInterval)
    self.scheduler = scheduler
  }

  /// Stops following the task.
  public func cancel() {
    attachment.withLock { $0 += 1 }
    ticker.stop()
  }

  /// Follows a task until it is over. Called on the thread of the view.
  ///
  /// - Parameters:
  ///   - look: Returns the value that the view shows. Called on any thread.
  ///   - show: Shows a value. Called on the thread of the view: now, and after each change.
  func follow<Value: Equatable & Sendable>(
    _ task: URLSessionTask, _ look: @escaping @Sendable (URLSessionTask) -> Value, show: @escaping (Value) -> Void
  ) {
    let number = attachment.withLock { attachment in
      attachment += 1
      return attachment
    }
    let first = look(task)
    let latest = Mutex(first)
    let later = UncheckedSendable(show)
    ticker.start { [weak self] in
      guard let self else { return false }
      // Read the state first: if the task is over, the value that follows is final.
      let isOver = task.state == .completed
      let value = look(task)
      if latest.withLock({ exchange(&$0, with: value) }) != value {
        (scheduler ?? .shared).perform { [weak self] in
          guard self?.attachment.withLock({ $0 == number }) == true else { return }
          later.value(value)
        }
      }
      return !isOver
    }
    // The view may follow another task from here.
    show(first)
  }
}
