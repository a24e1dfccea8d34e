import Dispatch
import Foundation

extension OperationQueue {
  /// A queue that makes one operation after another, on a dispatch queue if one is given.
  convenience init(serialOn queue: DispatchQueue?) {
    self.init()
    maxConcurrentOperationCount = 1
    // Safe: the property does not keep its value; whoever has given the queue keeps it for as long as this one is used.
    unsafe underlyingQueue = queue
  }
}
