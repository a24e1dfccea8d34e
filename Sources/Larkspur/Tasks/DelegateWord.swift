import Synchronization

/// Whether a delegate has the method that it is called by.
///
/// One that has not says so in the method's default implementation. A delegate may pass its calls on to another object that
/// is a delegate, too: what that one lacks does not count.
struct DelegateWord: ~Copyable {
  private let called = Atomic<UInt>(0)

  /// Makes a call, which returns whether the delegate is of the kind that can be called. Calls come one after another.
  func isGiven(by delegate: AnyObject, _ call: () -> Bool) -> Bool {
    let identity = UInt(bitPattern: ObjectIdentifier(delegate))
    called.store(identity, ordering: .relaxed)
    return call() && called.load(ordering: .relaxed) == identity
  }

  /// What the default implementations say.
  func isMissing(in delegate: AnyObject) {
    let identity = UInt(bitPattern: ObjectIdentifier(delegate))
    _ = called.compareExchange(expected: identity, desired: 0, ordering: .relaxed)
  }
}
