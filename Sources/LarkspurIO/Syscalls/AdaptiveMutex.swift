import CLarkspurLinux

/// A lock for what is held for microseconds by threads that may share a processor: who does not get it looks again a few
/// times, and then sleeps. (Swift's own looks a thousand times first, while the holder may be waiting for this very
/// processor: where two threads shared one, that was a fifth of their time.)
@safe
public final class AdaptiveMutex: @unchecked Sendable {
  @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  public init() {
    // Safe: the memory lives as long as self, and a mutex of this kind needs no resources that could be missing.
    unsafe larkspur_make_adaptive_mutex(mutex)
  }

  deinit {
    // Safe: who holds it or waits for it holds self.
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  @inlinable
  public func withLock<T>(_ body: () -> T) -> T {
    lock()
    defer { unlock() }
    return body()
  }

  /// The same for a thread that is in no hurry. While the holder waits for this very processor it gets it, and perhaps comes to
  /// the end of all that it has to do: to sleep would be to be woken in the midst of it.
  @inlinable
  public func withLockAfterOthers<T>(_ body: () -> T) -> T {
    lockAfterOthers()
    defer { unlock() }
    return body()
  }

  /// Nil: somebody else has it.
  @inlinable
  public func withLockIfAvailable<T>(_ body: () -> T) -> T? {
    guard lockIfAvailable() else { return nil }
    defer { unlock() }
    return body()
  }

  @inlinable
  func lock() {
    // Safe: see `init`.
    unsafe pthread_mutex_lock(mutex)
  }

  @inlinable
  func unlock() {
    // Safe: see `init`.
    unsafe pthread_mutex_unlock(mutex)
  }

  @inlinable
  func lockIfAvailable() -> Bool {
    // Safe: see `init`.
    unsafe pthread_mutex_trylock(mutex) == 0
  }

  @inlinable
  func lockAfterOthers() {
    if lockIfAvailable() { return }
    // Once: each time may be behind all who compute.
    sched_yield()
    lock()
  }
}
