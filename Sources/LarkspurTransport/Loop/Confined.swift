/// State that one thread alone uses, held by a class.
///
/// A class's stored properties are checked for overlapping accesses at run time, each time. State that is
/// confined to a thread, and whose owner calls no other code while it holds an access, cannot have any;
/// here the checks are left out. They were a fifth of a request's instructions.
@safe
public struct Confined<State: ~Copyable>: ~Copyable {
  @usableFromInline let pointer: UnsafeMutablePointer<State>

  @inlinable
  public init(_ state: consuming State) {
    unsafe pointer = .allocate(capacity: 1)
    unsafe pointer.initialize(to: state)
  }

  @inlinable
  deinit {
    unsafe pointer.deinitialize(count: 1)
    unsafe pointer.deallocate()
  }

  @inlinable
  @inline(__always)
  public var state: State {
    // Safe: the memory lives as long as self, and the owner keeps the rule above.
    unsafeAddress { unsafe UnsafePointer(pointer) }
    nonmutating unsafeMutableAddress { unsafe pointer }
  }
}
