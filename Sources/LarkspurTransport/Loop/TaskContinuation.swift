/// An object that a task awaits.
public protocol Awaited: AnyObject, Sendable {
  /// Called on the task's thread as the task suspends. The object resumes `continuation` exactly once, perhaps before
  /// this call returns.
  func isAwaited(by continuation: TaskContinuation)
  /// Called when the task is cancelled, perhaps before `isAwaited`.
  func waitIsCancelled()
}

/// The continuation of a suspended task. The owner resumes it exactly once.
///
/// Performance: a checked continuation allocates each time.
@safe
public struct TaskContinuation: Sendable {
  @usableFromInline let continuation: UnsafeContinuation<Void, Never>

  @inlinable
  init(_ continuation: UnsafeContinuation<Void, Never>) { unsafe self.continuation = continuation }

  /// Suspends the task until its continuation is resumed. `keep` stores the continuation.
  ///
  /// Performance: `withUnsafeContinuation` looks up its executor before it suspends, and its caller does so again
  /// afterwards. A task on a loop is on the right executor already. The older form omits the first look-up, 3 % of a
  /// request's instructions.
  @inlinable
  @inline(__always)
  public static func suspend(_ keep: (TaskContinuation) -> Void) async {
    // Safe: see `resume`.
    #if compiler(<6.4)
      unsafe await _unsafeInheritExecutor_withUnsafeContinuation { unsafe keep(TaskContinuation($0)) }
    #else
      unsafe await withUnsafeContinuation { unsafe keep(TaskContinuation($0)) }
    #endif
  }

  /// Suspends the task until `awaited` resumes it.
  ///
  /// Performance: one function does both, and its closures capture only `awaited`. Each function on the way back looks
  /// up its executor, and each further capture needs memory.
  @inlinable
  @inline(__always)
  public static func suspend<A: Awaited>(for awaited: A) async {
    // Safe: see `resume`.
    #if compiler(<6.4)
      await _unsafeInheritExecutor_withTaskCancellationHandler(
        operation: {
          unsafe await _unsafeInheritExecutor_withUnsafeContinuation {
            unsafe awaited.isAwaited(by: TaskContinuation($0))
          }
        }, onCancel: { awaited.waitIsCancelled() })
    #else
      await withTaskCancellationHandler(
        operation: { unsafe await withUnsafeContinuation { unsafe awaited.isAwaited(by: TaskContinuation($0)) } },
        onCancel: { awaited.waitIsCancelled() })
    #endif
  }

  /// Awaits `operation`. Calls `cancel` if the task is cancelled before it returns, or was cancelled already.
  ///
  /// Performance: the older form does not look up the executor twice.
  @inlinable
  @inline(__always)
  public static func cancellable<T>(
    _ operation: @concurrent () async throws -> T, onCancel cancel: @Sendable () -> Void
  ) async rethrows -> T {
    #if compiler(<6.4)
      try await _unsafeInheritExecutor_withTaskCancellationHandler(operation: operation, onCancel: cancel)
    #else
      try await withTaskCancellationHandler(operation: operation, onCancel: cancel)
    #endif
  }

  /// Resumes the task. Call it once.
  ///
  /// Safe: each owner of a continuation, such as `Channel` and `LoopPromise`, removes it from its storage before it
  /// resumes it.
  public func resume() { unsafe continuation.resume() }
}
