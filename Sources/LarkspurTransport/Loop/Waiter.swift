/// A task that has suspended and waits to be woken, exactly once.
///
/// This is the one place above the kernel that needs `unsafe`: a checked continuation allocates each time.
@safe
package struct Waiter {
  private let continuation: UnsafeContinuation<Void, Never>

  /// Suspends the task. `keep` stores the waiter where somebody will wake it.
  @inline(__always)
  package static func suspend(_ keep: (Waiter) -> Void) async {
    unsafe await withUnsafeContinuation { unsafe keep(Waiter(continuation: $0)) }
  }

  /// Safe: whoever keeps a waiter (`Channel`, `Answer`) takes it out of its place before waking it.
  package func wake() { unsafe continuation.resume() }
}
