import Foundation
import Synchronization

/// Sets the counts of progress objects that programs see, one object at a time.
///
/// Foundation's progress objects on Linux have no locks, and a child writes to its parent: two tasks on two threads,
/// with children of one parent, could free the parent's list of children at the same time. No other code runs while the
/// lock is held, because Foundation on Linux sends no notifications of changed keys.
package enum ProgressCounts {
  private static let lock = Mutex(())

  /// - Parameter counts: Returns the completed units and the total. Called while the lock is held.
  package static func set(_ progress: Progress, _ counts: () -> (done: Int64, total: Int64)) {
    lock.withLock { _ in
      let counts = counts()
      progress.totalUnitCount = counts.total
      progress.completedUnitCount = counts.done
    }
  }
}
