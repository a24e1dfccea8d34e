import Dispatch
import Foundation
import Synchronization

/// The queue on which a session calls its delegate and its completion handlers. In each call the operation queue is the
/// current one, and suspending the queue or waiting for it has its usual effect.
///
/// Performance: an operation costs more than a call. The pieces of bodies, and the calls that no load waits for,
/// therefore go without an operation to the serial dispatch queue beneath the operation queue, if that is the session's
/// own. The calls of a task stay in order: a direct call precedes all operations that are added later, and while an
/// operation of the task waits for its turn, all calls of the task are operations (`CallOrder`). Once the program has
/// read the operation queue, all calls are operations.
final class DelegateQueue: Sendable {
  private let own: DispatchQueue?
  private let queue: Mutex<OperationQueue?>
  /// Whether the program has given or read the operation queue.
  private let isKnown: Atomic<Bool>
  /// Whether the first of the frequent calls, in which a program may read the operation queue, has been made.
  private let hasCalledOften = Atomic(false)

  init(_ given: OperationQueue?) {
    own = given == nil ? DispatchQueue(label: "larkspur.session-delegate") : nil
    queue = Mutex(given)
    isKnown = Atomic(given != nil)
  }

  /// The operation queue for the program. From here on all calls are operations.
  var operations: OperationQueue {
    isKnown.store(true, ordering: .releasing)
    return existing
  }

  private var existing: OperationQueue {
    queue.withLock { queue in
      if let queue { return queue }
      let new = own.map { SerialOperationQueue(on: $0) } ?? OperationQueue()
      queue = new
      return new
    }
  }

  /// Whether the queue runs several calls at once. A program's queue should be serial, but need not be.
  var isConcurrent: Bool { own == nil && existing.maxConcurrentOperationCount != 1 }

  /// Makes a call on the queue.
  func async(_ call: @escaping @Sendable () -> Void) { existing.addOperation(call) }

  /// Makes a call on the queue.
  ///
  /// - Parameters:
  ///   - isOften: Whether the call is one of many. Such a call needs no operation.
  ///   - order: The calls that this one follows, or `nil` if it does not follow other calls.
  ///   - otherwise: Called on any thread if the program cancels the operation of the call.
  func async(
    _ call: @escaping @Sendable () -> Void, isOften: Bool = false, in order: CallOrder? = nil,
    otherwise: @escaping @Sendable () -> Void
  ) {
    if isOften, order?.hasWaiting != true, let own, !isKnown.load(ordering: .acquiring) {
      return own.async(execute: call)
    }
    order?.waits()
    let duty = Duty {
      order?.begins()
      otherwise()
    }
    existing.addOperation {
      order?.begins()
      call()
      duty.isDone.store(true, ordering: .releasing)
    }
  }

  /// Makes a call that must not be lost. If the program cancels the operation of the call, another operation makes it.
  func insist(_ call: @escaping @Sendable () -> Void) {
    async(call, otherwise: { [self] in insist(call) })
  }

  /// Makes a call on the queue, and returns when the call has returned or has been cancelled.
  ///
  /// - Returns: `false` if the program has cancelled the operation of the call.
  @discardableResult func run(
    _ call: @escaping @Sendable () -> Void, isOften: Bool = false, in order: CallOrder? = nil
  ) async -> Bool {
    // The task makes its next call when this one has returned, so the first frequent call can be an operation.
    let isOften = isOften && hasCalledOften.exchange(true, ordering: .relaxed)
    return await withCheckedContinuation { continuation in
      async(
        {
          call()
          continuation.resume(returning: true)
        }, isOften: isOften, in: order, otherwise: { continuation.resume(returning: false) })
    }
  }

  /// Belongs to an operation, and calls `otherwise` if the operation goes without having made its call. A program may
  /// cancel the operations of its queue, and its tasks have to end nevertheless.
  private final class Duty: Sendable {
    let isDone = Atomic(false)
    private let otherwise: @Sendable () -> Void

    init(_ otherwise: @escaping @Sendable () -> Void) { self.otherwise = otherwise }

    deinit {
      // Later, because the thread that releases an operation may hold the lock of its queue.
      if !isDone.load(ordering: .acquiring) { DispatchQueue.global().async(execute: otherwise) }
    }
  }
}

/// The operations with calls of one task that have been added to a delegate queue and have not begun. A direct call would
/// overtake them. For any thread.
final class CallOrder: Sendable {
  private let waiting = Atomic(0)

  // Pairs `begins` on the delegate queue (releasing) with `hasWaiting` on the loop (acquiring): a direct call that is
  // added after the operation has begun runs after it. `waits` is called on the loop as well.
  var hasWaiting: Bool { waiting.load(ordering: .acquiring) > 0 }
  func waits() { waiting.wrappingAdd(1, ordering: .relaxed) }
  func begins() { waiting.wrappingSubtract(1, ordering: .releasing) }
}
