import Dispatch
import Foundation
import Larkspur

/// Delays the end of the process, by `exit` or by a return from `main`, until an operation has finished. This replaces
/// the background time of an application on Apple's systems. Only the thread that ends the process calls the handler.
final class ExitHold: FinishedAtExit, @unchecked Sendable {
  /// Maximum delay for all operations together, in seconds. systemd kills a service 90 seconds after asking it to stop.
  static let secondsMax = 30

  /// The end of the delay, which begins with the first operation that the end of the process waits for.
  private static let deadline = DispatchTime.now() + .seconds(secondsMax)

  private weak let operation: AFURLConnectionOperation?
  private let handler: (() -> Void)?
  private let isOver = DispatchSemaphore(value: 0)

  init(_ operation: AFURLConnectionOperation, _ handler: (() -> Void)?) {
    self.operation = operation
    self.handler = handler
  }

  /// Ends the hold, because the operation has finished.
  func end() { isOver.signal() }

  func finishAtExit() { wait(until: Self.deadline) }

  /// Blocks until the operation has finished, if it executes. After the deadline, calls the handler on this thread, and
  /// cancels the operation.
  func wait(until deadline: DispatchTime) {
    guard let operation, operation.isExecuting, isOver.wait(timeout: deadline) == .timedOut else { return }
    handler?()
    operation.cancel()
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
    let hold = ExitHold(self, handler)
    let isHeld = read { details in
      guard details.exitHold == nil, details.machine.state != .finished else { return false }
      details.exitHold = hold
      return true
    }
    // The end of an operation may change cookies and caches.
    if isHeld { ExitHook.register(hold, isFirst: true) }
  }
}
