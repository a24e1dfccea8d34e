import Dispatch
import Foundation

/// Delays the end of the process, by `exit` or by a return from `main`, until certain operations have finished. This
/// replaces the background time of an application on Apple's systems.
enum ExitBarrier {
  /// Maximum delay for all operations together, in seconds. systemd kills a service 90 seconds after asking it to stop.
  static let secondsMax = 30

  /// An operation that the end of the process waits for.
  final class Hold: @unchecked Sendable {
    fileprivate weak var operation: AFURLConnectionOperation?
    fileprivate let handler: (() -> Void)?
    private let isOver = DispatchGroup()
    private let isHeld = LockedState(true)

    fileprivate init(_ operation: AFURLConnectionOperation, _ handler: (() -> Void)?) {
      self.operation = operation
      self.handler = handler
      isOver.enter()
    }

    deinit { end() }

    /// Ends the claim, because the operation has finished.
    func end() {
      let wasHeld = isHeld.read { isHeld in
        defer { isHeld = false }
        return isHeld
      }
      if wasHeld { isOver.leave() }
    }

    /// - Returns: `false` if the deadline has passed.
    fileprivate func wait(until deadline: DispatchTime) -> Bool { isOver.wait(timeout: deadline) == .success }
  }

  private struct Weak {
    weak var claim: Hold?
  }

  private static let claims = LockedState<[Weak]>([])

  /// Registers the handler, once for the process.
  private static let isRegistered: Bool =
    atexit { ExitBarrier.wait(until: .now() + .seconds(ExitBarrier.secondsMax)) } == 0

  static func claim(_ operation: AFURLConnectionOperation, _ handler: (() -> Void)?) -> Hold {
    _ = isRegistered
    let claim = Hold(operation, handler)
    claims.read { claims in
      claims.removeAll { $0.claim == nil }
      claims.append(Weak(claim: claim))
    }
    return claim
  }

  /// Blocks until the executing operations have finished. After the deadline, calls the handlers of the others on this
  /// thread, and cancels them.
  static func wait(until deadline: DispatchTime) {
    for claim in claims.read({ $0.compactMap(\.claim) }) {
      guard let operation = claim.operation, operation.isExecuting, !claim.wait(until: deadline) else { continue }
      claim.handler?()
      operation.cancel()
    }
  }
}

extension AFURLConnectionOperation {
  /// Delays the end of the process, by `exit` or by a return from `main`, while this operation runs.
  ///
  /// On Apple's systems this method delays an application's suspension in the background. All operations together have
  /// 30 seconds. After this time, `handler` is called on the thread that ends the process, and the operation is
  /// cancelled. Blocks for the main queue are no longer called, because the main thread is ending.
  ///
  /// A signal that kills the process is not delayed. A program that has to end cleanly at `SIGTERM` handles the signal
  /// and calls `exit`.
  public func setShouldExecuteAsBackgroundTaskWithExpirationHandler(_ handler: (() -> Void)?) {
    let isFirst = read { $0.exitClaim == nil && $0.machine.state != .finished }
    guard isFirst else { return }
    let claim = ExitBarrier.claim(self, handler)
    read { $0.exitClaim = claim }
  }
}
