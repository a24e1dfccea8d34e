import Glibc

/// A lock that threads hold for microseconds and that may be contended by threads on one processor. A thread that does
/// not get the lock spins a few times, and then sleeps.
///
/// Swift's `Mutex` spins about a thousand times first, while the holder may be waiting for this very processor. Where
/// two threads shared a processor, that took a fifth of their time (decision 15).
@safe
public final class AdaptiveMutex: @unchecked Sendable {
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>

  public init() {
    unsafe mutex = .allocate(capacity: 1)
    // Safe: the memory lives as long as self, and a mutex of this kind needs no resources that could be missing.
    unsafe larkspur_make_adaptive_mutex(mutex)
  }

  deinit {
    // Safe: every thread that holds the lock or waits for it holds self.
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  @inlinable
  public func withLock<T>(_ body: () -> T) -> T {
    lock()
    defer { unlock() }
    return body()
  }

  /// Runs `body` with the lock.
  ///
  /// - Returns: The result of `body`, or `nil` without a call of `body` if the lock is held already.
  @inlinable
  public func withLockIfAvailable<T>(_ body: () -> T) -> T? {
    guard lockIfAvailable() else { return nil }
    defer { unlock() }
    return body()
  }

  @usableFromInline
  func lock() {
    // Safe: the mutex lives as long as self.
    unsafe pthread_mutex_lock(mutex)
  }

  @usableFromInline
  func unlock() {
    // Safe: the mutex lives as long as self.
    unsafe pthread_mutex_unlock(mutex)
  }

  @usableFromInline
  func lockIfAvailable() -> Bool {
    // Safe: the mutex lives as long as self.
    unsafe pthread_mutex_trylock(mutex) == 0
  }
}
