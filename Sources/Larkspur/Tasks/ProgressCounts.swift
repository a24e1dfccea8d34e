import Foundation
import Synchronization

/// The numbers of progress objects that programs see.
///
/// Foundation's objects on Linux have no locks, and a child writes to its parent: when two tasks that run on two threads were
/// children of one parent, they could free its list of children together. All that is counted here is counted one after
/// another. Nobody is called meanwhile: Foundation on Linux tells of no keys.
package enum ProgressCounts {
  private static let lock = Mutex(())

  /// - Parameter counts: What is done, and the total. Called while nobody else counts.
  package static func set(_ progress: Progress, _ counts: () -> (done: Int64, total: Int64)) {
    lock.withLock { _ in
      let counts = counts()
      progress.totalUnitCount = counts.total
      progress.completedUnitCount = counts.done
    }
  }
}
