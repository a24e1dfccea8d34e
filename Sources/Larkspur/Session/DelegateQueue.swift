import Dispatch
import Foundation
import Synchronization

/// Where a session calls its delegate and its completion handlers: on an operation queue, which is the current one in each
/// call, and to suspend it or to wait for it means what it says.
///
/// An operation costs more than a call. So what comes in great number, the pieces of bodies, and what nobody waits for goes
/// without on a queue of our own, straight to the serial dispatch queue that its operations run on. The calls of a task stay in
/// line: what goes straight is ahead of every operation that comes later, and a task waits for an operation of its own to be
/// over before it goes on. Once a program has asked for the queue, all calls are operations.
final class DelegateQueue: Sendable {
  private let own: DispatchQueue?
  private let queue: Mutex<OperationQueue?>
  /// The program has the operation queue, or has asked for it.
  private let isKnown: Atomic<Bool>
  /// The first of many calls, in which a program may ask for the queue, has been made.
  private let hasCalledOften = Atomic(false)

  init(_ given: OperationQueue?) {
    own = given == nil ? DispatchQueue(label: "larkspur.session-delegate") : nil
    queue = Mutex(given)
    isKnown = Atomic(given != nil)
  }

  /// For the program.
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

  /// Whether it makes several calls at once. It should not, but nobody keeps a program from it.
  var isConcurrent: Bool { own == nil && existing.maxConcurrentOperationCount != 1 }

  /// Makes a call there.
  func async(_ call: @escaping @Sendable () -> Void) { existing.addOperation(call) }

  /// The same. If somebody cancels the operation that was to make it, `otherwise` is called, on any thread.
  ///
  /// - Parameter isOften: It is one of many calls.
  func async(
    _ call: @escaping @Sendable () -> Void, isOften: Bool = false, otherwise: @escaping @Sendable () -> Void
  ) {
    if isOften, let own, !isKnown.load(ordering: .acquiring) { return own.async(execute: call) }
    let duty = Duty(otherwise)
    existing.addOperation {
      call()
      duty.isDone.store(true, ordering: .releasing)
    }
  }

  /// Makes a call that somebody waits for. If its operation is cancelled, another one makes it.
  func insist(_ call: @escaping @Sendable () -> Void) {
    async(call, otherwise: { [self] in insist(call) })
  }

  /// Makes a call there, and returns when it has returned, or when somebody has cancelled it: false.
  @discardableResult func run(_ call: @escaping @Sendable () -> Void, isOften: Bool = false) async -> Bool {
    // (The next one of this task comes when this one has returned.)
    let isOften = isOften && hasCalledOften.exchange(true, ordering: .relaxed)
    return await withCheckedContinuation { continuation in
      async(
        {
          call()
          continuation.resume(returning: true)
        }, isOften: isOften, otherwise: { continuation.resume(returning: false) })
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
