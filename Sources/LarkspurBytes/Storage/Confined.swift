/// State that one thread alone uses, held by a class.
///
/// A class's stored properties are checked for overlapping accesses at run time, each time. State that is
/// confined to a thread, and whose owner calls nobody else's code while it holds an access, cannot have any;
/// here the checks are left out. They were 14 % of a request's instructions.
///
/// Inlinable, because an access that is a call would cost more than the check.
@safe
package struct Confined<State: ~Copyable>: ~Copyable {
  @usableFromInline let pointer: UnsafeMutablePointer<State>

  package init(_ state: consuming State) {
    unsafe pointer = .allocate(capacity: 1)
    unsafe pointer.initialize(to: state)
  }

  deinit {
    unsafe pointer.deinitialize(count: 1)
    unsafe pointer.deallocate()
  }

  package var state: State {
    // Safe: the memory lives as long as self, and the owner keeps the rule above.
    @inlinable unsafeAddress { unsafe UnsafePointer(pointer) }
    @inlinable nonmutating unsafeMutableAddress { unsafe pointer }
  }
}
