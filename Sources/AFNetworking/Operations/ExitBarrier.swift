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

    /// Ends the hold, because the operation has finished.
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
    weak var hold: Hold?
  }

  private static let holds = LockedState<[Weak]>([])

  /// Registers the handler, once for the process.
  private static let isRegistered: Bool =
    atexit { ExitBarrier.wait(until: .now() + .seconds(ExitBarrier.secondsMax)) } == 0

  static func hold(_ operation: AFURLConnectionOperation, _ handler: (() -> Void)?) -> Hold {
    _ = isRegistered
    let hold = Hold(operation, handler)
    holds.read { holds in
      holds.removeAll { $0.hold == nil }
      holds.append(Weak(hold: hold))
    }
    return hold
  }

  /// Blocks until the executing operations have finished. After the deadline, calls the handlers of the others on this
  /// thread, and cancels them.
  static func wait(until deadline: DispatchTime) {
    for hold in holds.read({ $0.compactMap(\.hold) }) {
      guard let operation = hold.operation, operation.isExecuting, !hold.wait(until: deadline) else { continue }
      hold.handler?()
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
    let isFirst = read { $0.exitHold == nil && $0.machine.state != .finished }
    guard isFirst else { return }
    let hold = ExitBarrier.hold(self, handler)
    read { $0.exitHold = hold }
  }
}
