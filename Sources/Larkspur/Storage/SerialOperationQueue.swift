import Dispatch
import Foundation

/// A queue that makes one operation after another, on a dispatch queue. It keeps that queue: a program may hold on to this
/// one when the session that has made it is gone.
final class SerialOperationQueue: OperationQueue, @unchecked Sendable {
  private let target: DispatchQueue

  init(on target: DispatchQueue) {
    self.target = target
    super.init()
    maxConcurrentOperationCount = 1
    // Safe: the property does not keep its value, but this object does.
    unsafe underlyingQueue = target
  }
}
