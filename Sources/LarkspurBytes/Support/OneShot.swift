import Synchronization

/// A value that any thread sets once, and that a task may await. The first value counts; later ones are ignored.
/// `cancel` ends the wait, and leaves the object without a value.
///
/// The lock is more than mutual exclusion: of a continuation that is resumed before it is awaited, ThreadSanitizer does
/// not see that it orders anything.
public final class OneShot<Value: Sendable>: Sendable {
  @usableFromInline enum State {
    case open
    case awaited(CheckedContinuation<Void, Never>)
    case settled(Value?)
  }

  @usableFromInline let state = Mutex(State.open)

  @inlinable public init() {}

  @inlinable public func set(_ value: Value) { settle(value) }

  /// Ends the wait, present or future, without a value.
  @inlinable public func cancel() { settle(nil) }

  @inlinable func settle(_ value: Value?) {
    let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
      switch state {
      case .open:
        state = .settled(value)
        return nil
      case .awaited(let continuation):
        state = .settled(value)
        return continuation
      case .settled: return nil
      }
    }
    continuation?.resume()
  }

  /// The value, or `nil` if it has not been set.
  @inlinable public var value: Value? {
    state.withLock { state in if case .settled(let value) = state { value } else { nil } }
  }

  /// Suspends until the value is set or `cancel` is called. Only one task may await it. Cancelling the task does not
  /// end the wait.
  ///
  /// - Returns: The value, or `nil` if `cancel()` was called.
  @inlinable public func get() async -> Value? {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isSettled = state.withLock { state -> Bool in
        if case .settled = state { return true }
        state = .awaited(continuation)
        return false
      }
      if isSettled { continuation.resume() }
    }
    return value
  }
}
