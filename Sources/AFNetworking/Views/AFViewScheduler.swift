import Dispatch
import Synchronization

/// Calls code on the thread of a program's views.
///
/// UIKit has one thread for views, which serves the main queue. On Linux each toolkit has its own main loop: a program
/// whose main loop does not serve the main queue sets ``shared`` once, before the first download.
///
/// ```swift
/// AFViewScheduler.shared = AFViewScheduler { work in enqueueIntoMainLoop(work) }
/// ```
public struct AFViewScheduler: Sendable {
  private let enqueue: @Sendable (@escaping @Sendable () -> Void) -> Void

  /// Creates a scheduler.
  ///
  /// - Parameter enqueue: Arranges that its parameter is called once, later, on the thread of the views. Called on any
  ///   thread. What is enqueued first is called first.
  public init(_ enqueue: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) { self.enqueue = enqueue }

  /// Calls `work` on the thread of the views, later.
  public func perform(_ work: @escaping @Sendable () -> Void) { enqueue(work) }

  /// The scheduler of the main queue.
  public static let mainQueue = AFViewScheduler { work in DispatchQueue.main.async(execute: work) }

  private static let current = Mutex(AFViewScheduler.mainQueue)

  /// The scheduler of downloads, views and the activity indicator: ``mainQueue`` by default.
  public static var shared: AFViewScheduler {
    get { current.withLock { $0 } }
    set { current.withLock { $0 = newValue } }
  }
}
