import Synchronization

/// Detects whether a delegate implements the method that is being called.
///
/// The default implementation of each method calls `isMissing(in:)`. A delegate may forward its calls to another
/// object that is a delegate, too: a method that is missing in that object does not count.
struct DelegateMethodProbe: ~Copyable {
  private let called = Atomic<UInt>(0)

  /// Makes a call. The calls must come one after another.
  ///
  /// - Parameter call: Calls the method. Returns whether the delegate is of the kind that has such a method.
  /// - Returns: Whether the delegate is of that kind and implements the method.
  func isImplemented(by delegate: AnyObject, _ call: () -> Bool) -> Bool {
    let identity = UInt(bitPattern: ObjectIdentifier(delegate))
    called.store(identity, ordering: .relaxed)
    return call() && called.load(ordering: .relaxed) == identity
  }

  /// Records that `delegate` does not implement the method. Called by the default implementations.
  func isMissing(in delegate: AnyObject) {
    let identity = UInt(bitPattern: ObjectIdentifier(delegate))
    _ = called.compareExchange(expected: identity, desired: 0, ordering: .relaxed)
  }
}
