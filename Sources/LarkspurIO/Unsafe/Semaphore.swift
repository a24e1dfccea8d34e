import Glibc
import LarkspurBytes

/// A counting semaphore. Any thread may use it.
@safe
public struct Semaphore: ~Copyable, Sendable {
  // Safe: allocated and freed with this value; any thread may use the semaphore.
  nonisolated(unsafe) private let semaphore: UnsafeMutablePointer<sem_t>

  public init() {
    unsafe semaphore = .allocate(capacity: 1)
    unsafe sem_init(semaphore, 0, 0)
  }

  deinit {
    unsafe sem_destroy(semaphore)
    unsafe semaphore.deallocate()
  }

  // Safe: the semaphore lives as long as this value.
  public func put() { _ = unsafe sem_post(semaphore) }

  /// Decrements the count. Blocks while it is 0.
  ///
  /// - Returns: `false` if the count was still 0 at the deadline.
  public func take(until deadline: Deadline = .never) -> Bool {
    while true {
      // Safe: the semaphore lives as long as this value.
      let result =
        deadline == .never
        ? unsafe sem_wait(semaphore) : unsafe larkspur_semaphore_wait(semaphore, deadline.nanoseconds)
      if result == 0 { return true }
      guard Errno.current == .interrupted else { return false }
    }
  }

  /// Decrements the count to 0.
  public func takeAll() {
    // Safe: the semaphore lives as long as this value.
    while unsafe sem_trywait(semaphore) == 0 {}
  }
}
