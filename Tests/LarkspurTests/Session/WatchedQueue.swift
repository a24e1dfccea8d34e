import Foundation
import TestKit

/// A queue that signals each operation that is added to it.
final class WatchedQueue: OperationQueue, @unchecked Sendable {
  let added = Event()

  override func addOperation(_ operation: Operation) {
    super.addOperation(operation)
    added.fire()
  }
}
