import Foundation
import Synchronization

/// State behind a lock, of any type. Nobody is called while the lock is held.
final class Guarded<State>: @unchecked Sendable {
  private let lock = NSLock()
  private var state: State

  init(_ state: State) { self.state = state }

  func read<T>(_ body: (inout State) throws -> T) rethrows -> T {
    lock.lock()
    defer { lock.unlock() }
    return try body(&state)
  }

  /// Sets something that is the program's. What was there goes when the lock has gone: a block that is let go of may take
  /// its owner with it, who does on his way what he likes.
  func put<Value>(_ value: Value, at place: WritableKeyPath<State, Value>) {
    let old = read { state in
      defer { state[keyPath: place] = value }
      return state[keyPath: place]
    }
    withExtendedLifetime(old) {}
  }
}

extension Mutex where Value: Sendable {
  /// As `Guarded.put(_:at:)`.
  func put<Part>(_ value: Part, at place: WritableKeyPath<Value, Part>) {
    let new = Carried(value)
    let old = withLock { state in
      defer { state[keyPath: place] = new.value }
      return Carried(state[keyPath: place])
    }
    withExtendedLifetime(old) {}
  }
}
