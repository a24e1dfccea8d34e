import Foundation

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
}

/// Carries what the compiler cannot know to be safe: blocks of programs that are older than its rules. Whoever sets a
/// block knows where it will be called.
struct Carried<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}
