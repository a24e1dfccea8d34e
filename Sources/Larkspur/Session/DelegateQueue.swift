import Dispatch
import Foundation
import Synchronization

/// Where a session calls its delegate and its completion handlers.
///
/// A queue of our own is a serial dispatch queue: a call costs no operation. Whoever asks for the `OperationQueue` gets one
/// that works on that same queue, and from then on calls are its operations: it is the current one in each of them, and to
/// suspend it or to wait for it means what it says. The calls before and after stay in line.
final class DelegateQueue: Sendable {
  private let own: DispatchQueue?
  private let given: Mutex<OperationQueue?>
  /// Somebody has asked for the operation queue.
  private let isKnown = Atomic(false)

  init(_ queue: OperationQueue?) {
    own = queue == nil ? DispatchQueue(label: "larkspur.session-delegate") : nil
    given = Mutex(queue)
  }

  var operations: OperationQueue {
    let queue = given.withLock { given in
      if let given { return given }
      let queue = own.map { SerialOperationQueue(on: $0) } ?? OperationQueue()
      given = queue
      return queue
    }
    isKnown.store(true, ordering: .releasing)
    return queue
  }

  /// Whether it makes several calls at once. It should not, but nobody keeps a program from it.
  var isConcurrent: Bool { own == nil && operations.maxConcurrentOperationCount != 1 }

  /// The session's own queue, while nobody knows the other.
  private var plain: DispatchQueue? { isKnown.load(ordering: .acquiring) ? nil : own }

  func async(_ call: @escaping @Sendable () -> Void) {
    if let plain { plain.async(execute: call) } else { operations.addOperation(call) }
  }

  /// Makes a call there. If somebody cancels the operation that was to make it, `otherwise` is called, on any thread.
  func async(_ call: @escaping @Sendable () -> Void, otherwise: @escaping @Sendable () -> Void) {
    if let plain { return plain.async(execute: call) }
    let duty = Duty(otherwise)
    operations.addOperation {
      call()
      duty.isDone.store(true, ordering: .releasing)
    }
  }

  /// Makes a call that somebody waits for. If its operation is cancelled, another one makes it.
  func insist(_ call: @escaping @Sendable () -> Void) {
    async(call, otherwise: { [self] in insist(call) })
  }

  /// Makes a call there, and returns when it has returned, or when somebody has cancelled it: false.
  @discardableResult func run(_ call: @escaping @Sendable () -> Void) async -> Bool {
    await withCheckedContinuation { continuation in
      async {
        call()
        continuation.resume(returning: true)
      } otherwise: {
        continuation.resume(returning: false)
      }
    }
  }

  /// Goes with the operation that it belongs to, and calls for help if nobody has made the call: a program may cancel the
  /// operations of its queue, and its tasks have to end all the same.
  private final class Duty: Sendable {
    let isDone = Atomic(false)
    private let otherwise: @Sendable () -> Void

    init(_ otherwise: @escaping @Sendable () -> Void) { self.otherwise = otherwise }

    deinit {
      // Later: whoever lets go of an operation may hold its queue's lock.
      if !isDone.load(ordering: .acquiring) { DispatchQueue.global().async(execute: otherwise) }
    }
  }
}
