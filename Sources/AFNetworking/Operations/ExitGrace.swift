import Dispatch
import Foundation

/// Has the end of the process wait for operations that are to finish first.
///
/// It takes the place of an application's time in the background: what ends here is the process, by `exit` or by a
/// return from `main`.
enum ExitGrace {
  /// How long the end waits, in seconds, for all operations together. systemd kills a service 90 seconds after it has
  /// asked it to stop.
  static let secondsMax = 30

  /// An operation that is waited for.
  final class Claim: @unchecked Sendable {
    fileprivate weak var operation: AFURLConnectionOperation?
    fileprivate let handler: (() -> Void)?
    private let isOver = DispatchGroup()
    private let isHeld = Guarded(true)

    fileprivate init(_ operation: AFURLConnectionOperation, _ handler: (() -> Void)?) {
      self.operation = operation
      self.handler = handler
      isOver.enter()
    }

    deinit { end() }

    /// The operation has finished.
    func end() {
      let wasHeld = isHeld.read { isHeld in
        defer { isHeld = false }
        return isHeld
      }
      if wasHeld { isOver.leave() }
    }

    /// False: the time is up.
    fileprivate func wait(until deadline: DispatchTime) -> Bool { isOver.wait(timeout: deadline) == .success }
  }

  private struct Weak {
    weak var claim: Claim?
  }

  private static let claims = Guarded<[Weak]>([])

  /// Once for the process.
  private static let isRegistered: Bool = atexit { ExitGrace.wait(until: .now() + .seconds(ExitGrace.secondsMax)) } == 0

  static func claim(_ operation: AFURLConnectionOperation, _ handler: (() -> Void)?) -> Claim {
    _ = isRegistered
    let claim = Claim(operation, handler)
    claims.read { claims in
      claims.removeAll { $0.claim == nil }
      claims.append(Weak(claim: claim))
    }
    return claim
  }

  /// Blocks until the operations that run have finished. When the time is up their handlers are called here, and they
  /// are cancelled.
  static func wait(until deadline: DispatchTime) {
    for claim in claims.read({ $0.compactMap(\.claim) }) {
      guard let operation = claim.operation, operation.isExecuting, !claim.wait(until: deadline) else { continue }
      claim.handler?()
      operation.cancel()
    }
  }
}

extension AFURLConnectionOperation {
  /// Has the end of the process wait for this operation while it runs: `exit`, or the return from `main`.
  ///
  /// On Apple's systems it is the application's way into the background that waits. All operations together are given
  /// 30 seconds. Then `handler` is called, on the thread that ends the process, and the operation is cancelled. Blocks
  /// for the main queue are not called any more: the main thread is ending.
  ///
  /// A signal that kills the process does not wait. A program that is to end well at `SIGTERM` handles the signal and
  /// calls `exit`.
  public func setShouldExecuteAsBackgroundTaskWithExpirationHandler(_ handler: (() -> Void)?) {
    let isFirst = read { $0.exitClaim == nil && $0.machine.state != .finished }
    guard isFirst else { return }
    let claim = ExitGrace.claim(self, handler)
    read { $0.exitClaim = claim }
  }
}
