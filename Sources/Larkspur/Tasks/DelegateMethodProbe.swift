import Synchronization

/// Detects whether a delegate implements the method that is being called.
///
/// The default implementation of each method calls `isMissing(in:)`. A delegate may forward its calls to another
/// object that is a delegate, too: a method that is missing in that object does not count.
///
/// Calls of one delegate must come one after another. Calls of several delegates may overlap: while a delegate passes a
/// challenge on to another session, that session may call its own delegate with the challenge.
struct DelegateMethodProbe: ~Copyable {
  /// The identity of the delegate in which a method was last found to be missing, or 0.
  private let missing = Atomic<UInt>(0)

  /// Makes a call.
  ///
  /// - Parameter call: Calls the method. Returns whether the delegate is of the kind that has such a method.
  /// - Returns: Whether the delegate is of that kind and implements the method.
  func isImplemented(by delegate: AnyObject, _ call: () -> Bool) -> Bool {
    let identity = UInt(bitPattern: ObjectIdentifier(delegate))
    // The delegate may have lacked the method of an earlier call.
    if missing.load(ordering: .relaxed) == identity { missing.store(0, ordering: .relaxed) }
    return call() && missing.load(ordering: .relaxed) != identity
  }

  /// Records that `delegate` does not implement the method. Called by the default implementations.
  func isMissing(in delegate: AnyObject) {
    missing.store(UInt(bitPattern: ObjectIdentifier(delegate)), ordering: .relaxed)
  }
}
