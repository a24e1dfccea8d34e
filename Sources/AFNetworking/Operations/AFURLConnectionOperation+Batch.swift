import Dispatch
import Foundation
import Larkspur
import Synchronization

extension AFURLConnectionOperation {
  /// Makes a batch of operations, with one more operation that depends on all of them. The caller adds all to a queue.
  ///
  /// - Parameters:
  ///   - operations: Operations of this class, or of any other `Operation` class. An operation of this class gets the
  ///     batch's completion group, and a completion block that calls its original one.
  ///   - progressBlock: Called for each operation of this class that has finished, on its completion queue: the number
  ///     of those that have finished, and the number of all operations.
  ///   - completionBlock: Called on the main queue when all operations have finished and their blocks have returned.
  /// - Returns: The operations, followed by the additional one: each an `Operation`.
  public class func batch(
    ofRequestOperations operations: [Any]?, progressBlock: ((UInt, UInt) -> Void)? = nil,
    completionBlock: (([Any]) -> Void)? = nil
  ) -> [Any] {
    let operations = (operations ?? []).compactMap { $0 as? Operation }
    let group = DispatchGroup()
    let members = UncheckedSendable(operations)
    let completion = UncheckedSendable(completionBlock)
    let last = BatchEnd {
      group.notify(queue: .main) { completion.value?(members.value) }
    }
    let (count, progress) = (UInt(operations.count), UncheckedSendable(progressBlock))
    let finished = Mutex<UInt>(0)
    for operation in operations {
      last.addDependency(operation)
      guard let request = operation as? AFURLConnectionOperation else { continue }
      let membership = GroupMembership(group)
      request.completionGroup = group
      let original = request.completionBlock
      request.completionBlock = { [weak request] in
        original?()
        let queue = request?.completionQueue ?? .main
        queue.async {
          let number = finished.withLock { finished in
            finished += 1
            return finished
          }
          progress.value?(number, count)
          membership.end()
        }
      }
    }
    return operations + [last]
  }

  /// The Objective-C spelling of ``batch(ofRequestOperations:progressBlock:completionBlock:)``.
  public class func batchOfRequestOperations(
    _ operations: [Any]?, progressBlock: ((UInt, UInt) -> Void)? = nil, completionBlock: (([Any]) -> Void)? = nil
  ) -> [Any] {
    batch(ofRequestOperations: operations, progressBlock: progressBlock, completionBlock: completionBlock)
  }
}

/// The operation that depends on all operations of a batch.
private final class BatchEnd: BlockOperation, @unchecked Sendable {
  override func start() {
    super.start()
    leave(dependencies)
  }

  deinit { leave(dependencies) }
}

/// A pending entry in a dispatch group. Ends with its last reference at the latest, because Dispatch ends the process
/// if a group with pending entries is released.
private final class GroupMembership: Sendable {
  private let group: DispatchGroup
  private let isOpen = Mutex(true)

  init(_ group: DispatchGroup) {
    self.group = group
    group.enter()
  }

  deinit { end() }

  func end() {
    if isOpen.withLock({ exchange(&$0, with: false) }) { group.leave() }
  }
}
