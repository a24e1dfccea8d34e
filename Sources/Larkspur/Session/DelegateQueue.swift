import Dispatch
import Foundation
import Synchronization

/// Where a session calls its delegate and its completion handlers.
///
/// A queue of our own is a serial dispatch queue: a call costs no operation. Whoever asks for the `OperationQueue` gets one
/// that works on that same queue, so that the two stay in line.
final class DelegateQueue: Sendable {
  private let own: DispatchQueue?
  private let given: Mutex<OperationQueue?>

  init(_ queue: OperationQueue?) {
    own = queue == nil ? DispatchQueue(label: "larkspur.session-delegate") : nil
    given = Mutex(queue)
  }

  var operations: OperationQueue {
    given.withLock { given in
      if let given { return given }
      let queue = OperationQueue(serialOn: own)
      given = queue
      return queue
    }
  }

  /// Whether it makes several calls at once. It should not, but nobody keeps a program from it.
  var isConcurrent: Bool { own == nil && operations.maxConcurrentOperationCount != 1 }

  func async(_ call: @escaping @Sendable () -> Void) {
    if let own { own.async(execute: call) } else { operations.addOperation(call) }
  }

  /// Makes a call there, and returns when it has returned.
  func run(_ call: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      async {
        call()
        continuation.resume()
      }
    }
  }
}
