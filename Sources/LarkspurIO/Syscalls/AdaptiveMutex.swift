import CLarkspurLinux

/// A lock for what is held for microseconds by threads that may share a processor: who does not get it looks again a few
/// times, and then sleeps. (Swift's own looks a thousand times first, while the holder may be waiting for this very
/// processor: where two threads shared one, that was a fifth of their time.)
@safe
package final class AdaptiveMutex: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  package init() {
    // Safe: the memory lives as long as self, and a mutex of this kind needs no resources that could be missing.
    unsafe larkspur_make_adaptive_mutex(mutex)
  }

  deinit {
    // Safe: who holds it or waits for it holds self.
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  package func withLock<T>(_ body: () -> T) -> T {
    // Safe: see `init`.
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return body()
  }

  /// The same for a thread that is in no hurry. While the holder waits for this very processor it gets it, and perhaps comes to
  /// the end of all that it has to do: to sleep would be to be woken in the midst of it.
  package func withLockAfterOthers<T>(_ body: () -> T) -> T {
    for _ in 0..<Self.yieldsMax {
      if let result = withLockIfAvailable(body) { return result }
      sched_yield()
    }
    return withLock(body)
  }

  private static let yieldsMax = 3

  /// Nil: somebody else has it.
  package func withLockIfAvailable<T>(_ body: () -> T) -> T? {
    // Safe: see `init`.
    guard unsafe pthread_mutex_trylock(mutex) == 0 else { return nil }
    defer { unsafe pthread_mutex_unlock(mutex) }
    return body()
  }
}
