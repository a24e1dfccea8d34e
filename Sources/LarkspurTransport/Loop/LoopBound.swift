/// State of a class, accessed without exclusivity checks. Only one thread at a time uses it: the one that ticks the loop.
///
/// Swift checks each access to a class's stored property for overlap at run time. State that one thread at a time uses
/// cannot have overlapping accesses if its owner calls no other code during an access. Owners must keep that rule.
/// Performance: decision 2.
@safe
public struct LoopBound<State: ~Copyable>: ~Copyable {
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
    // Safe: the memory lives as long as self, and the owner keeps the rule of `LoopBound`.
    unsafeAddress { unsafe UnsafePointer(pointer) }
    nonmutating unsafeMutableAddress { unsafe pointer }
  }
}
