import Foundation
import Synchronization

/// State of any type, behind a lock. No foreign code is called while the lock is held.
final class LockedState<State>: @unchecked Sendable {
  private let lock = NSLock()
  private var state: State

  init(_ state: State) { self.state = state }

  func read<T>(_ body: (inout State) throws -> T) rethrows -> T {
    lock.lock()
    defer { lock.unlock() }
    return try body(&state)
  }

  /// Sets a value that belongs to the program. The old value is released after the lock: releasing a block may run the
  /// deinitializer of an object that it captures, which is the program's code.
  func put<Value>(_ value: Value, at path: WritableKeyPath<State, Value>) {
    let old = read { state in
      defer { state[keyPath: path] = value }
      return state[keyPath: path]
    }
    withExtendedLifetime(old) {}
  }
}

extension Mutex where Value: Sendable {
  /// Sets a value that belongs to the program, and releases the old value after the lock, like
  /// `LockedState.put(_:at:)`.
  func put<Part>(_ value: Part, at path: WritableKeyPath<Value, Part>) {
    let new = UncheckedSendable(value)
    let old = withLock { state in
      defer { state[keyPath: path] = new.value }
      return UncheckedSendable(state[keyPath: path])
    }
    withExtendedLifetime(old) {}
  }
}
