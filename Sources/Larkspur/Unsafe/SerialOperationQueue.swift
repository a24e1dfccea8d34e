import Dispatch
import Foundation

/// A serial operation queue on a dispatch queue. The operation queue keeps its dispatch queue alive, because a program
/// may use the queue after the session that made it is gone.
final class SerialOperationQueue: OperationQueue, @unchecked Sendable {
  private let target: DispatchQueue

  init(on target: DispatchQueue) {
    self.target = target
    super.init()
    maxConcurrentOperationCount = 1
    // Safe: the property does not retain its value, but this object does.
    unsafe underlyingQueue = target
  }
}
