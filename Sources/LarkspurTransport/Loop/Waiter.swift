/// What a task waits for.
public protocol Awaited: AnyObject, Sendable {
  /// The task has suspended, until the waiter wakes it.
  func isAwaited(by waiter: Waiter)
  /// The task has been cancelled, perhaps before `isAwaited`.
  func waitIsCancelled()
}

/// A task that has suspended and waits to be woken, exactly once.
///
/// Performance: a checked continuation allocates each time.
@safe
public struct Waiter: Sendable {
  @usableFromInline let continuation: UnsafeContinuation<Void, Never>

  @inlinable
  init(_ continuation: UnsafeContinuation<Void, Never>) { unsafe self.continuation = continuation }

  /// Suspends the task until the waiter is woken. `keep` stores the waiter.
  ///
  /// `withUnsafeContinuation` looks for its executor before it suspends, and its caller does afterwards. A task on
  /// a loop is on the right executor: the older form leaves the first look out, and with it 3 % of a request's instructions.
  @inlinable
  @inline(__always)
  public static func suspend(_ keep: (Waiter) -> Void) async {
    // Safe: see `wake`.
    #if compiler(<6.4)
      unsafe await _unsafeInheritExecutor_withUnsafeContinuation { unsafe keep(Waiter($0)) }
    #else
      unsafe await withUnsafeContinuation { unsafe keep(Waiter($0)) }
    #endif
  }

  /// Suspends the task until `awaited` wakes it. (In one, and with closures that hold nothing but `awaited`: each function on
  /// the way back looks for its executor, and what a closure holds besides needs room.)
  @inlinable
  @inline(__always)
  public static func suspend<A: Awaited>(for awaited: A) async {
    // Safe: see `wake`.
    #if compiler(<6.4)
      await _unsafeInheritExecutor_withTaskCancellationHandler(
        operation: {
          unsafe await _unsafeInheritExecutor_withUnsafeContinuation { unsafe awaited.isAwaited(by: Waiter($0)) }
        }, onCancel: { awaited.waitIsCancelled() })
    #else
      await withTaskCancellationHandler(
        operation: { unsafe await withUnsafeContinuation { unsafe awaited.isAwaited(by: Waiter($0)) } },
        onCancel: { awaited.waitIsCancelled() })
    #endif
  }

  /// Awaits `operation`; `cancel` is called when the task is cancelled meanwhile, or has been. The
  /// older form does not look for the executor twice.
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

  /// Safe: each owner of a waiter, such as `Channel` and `Answer`, removes it from its storage before waking it.
  public func wake() { unsafe continuation.resume() }
}
