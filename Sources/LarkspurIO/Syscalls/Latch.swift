import CLarkspurLinux
import LarkspurBytes

/// A door that opens once and stays open. Threads block at it until then.
@safe
package final class Latch: Sendable {
  // Safe: allocated and freed with this object; the semaphore is made for use by many threads.
  nonisolated(unsafe) private let semaphore: UnsafeMutablePointer<sem_t>

  package init() {
    unsafe semaphore = .allocate(capacity: 1)
    unsafe sem_init(semaphore, 0, 0)
  }

  deinit {
    unsafe sem_destroy(semaphore)
    unsafe semaphore.deallocate()
  }

  /// Lets everyone through, now and later. Any thread; more than once is as good as once.
  package func open() { _ = unsafe sem_post(semaphore) }

  /// Blocks until it is open. False: it was still shut at the deadline.
  @discardableResult
  package func wait(until deadline: Deadline = .never) -> Bool {
    while true {
      let result =
        deadline == .never
        ? unsafe sem_wait(semaphore) : unsafe larkspur_semaphore_wait(semaphore, deadline.nanoseconds)
      if result == 0 {
        // Whoever passes holds the door for the next.
        open()
        return true
      }
      guard Errno.current == .interrupted else { return false }
    }
  }
}
