@_implementationOnly import CLarkspurLinux

/// A lock for what is held for microseconds by threads that may share a processor: who does not get it looks again a few
/// times, and then sleeps. (Swift's own looks a thousand times first, while the holder may be waiting for this very
/// processor: where two threads shared one, that was a fifth of their time.)
@safe
public final class AdaptiveMutex: @unchecked Sendable {
  private let memory: UnsafeMutableRawPointer
  // Safe: see `init`.
  private var mutex: UnsafeMutablePointer<pthread_mutex_t> {
    unsafe memory.assumingMemoryBound(to: pthread_mutex_t.self)
  }

  public init() {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    // Safe: the memory lives as long as self, and a mutex of this kind needs no resources that could be missing.
    unsafe larkspur_make_adaptive_mutex(mutex)
    unsafe memory = UnsafeMutableRawPointer(mutex)
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

  /// Nil: somebody else has it.
  @inlinable
  public func withLockIfAvailable<T>(_ body: () -> T) -> T? {
    guard lockIfAvailable() else { return nil }
    defer { unlock() }
    return body()
  }

  @usableFromInline
  func lock() {
    // Safe: see `init`.
    unsafe pthread_mutex_lock(mutex)
  }

  @usableFromInline
  func unlock() {
    // Safe: see `init`.
    unsafe pthread_mutex_unlock(mutex)
  }

  @usableFromInline
  func lockIfAvailable() -> Bool {
    // Safe: see `init`.
    unsafe pthread_mutex_trylock(mutex) == 0
  }
}
