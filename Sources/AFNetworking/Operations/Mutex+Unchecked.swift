import Larkspur
import Synchronization

extension Mutex where Value: Sendable {
  /// Calls `body` with the value under the lock, and returns the result, which may be a block or an object of the
  /// program. `body` calls no foreign code.
  func withLockUnchecked<Result>(_ body: (inout Value) -> Result) -> Result {
    withLock { UncheckedSendable(body(&$0)) }.value
  }

  /// Sets a value that belongs to the program. The old value is released after the lock: releasing a block may run the
  /// deinitializer of an object that it captures, which is the program's code.
  func put<Part>(_ part: Part, at path: WritableKeyPath<Value, Part>) {
    let old = withLockUnchecked { exchange(&$0[keyPath: path], with: part) }
    withExtendedLifetime(old) {}
  }
}
