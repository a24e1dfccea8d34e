import LarkspurBytes

@_implementationOnly import CLarkspurLinux

/// Threads take from it what others put in, and block while there is nothing. Any thread.
@safe
public struct Semaphore: ~Copyable, Sendable {
  // Safe: allocated and freed with this value; the semaphore is made for use by many threads.
  nonisolated(unsafe) private let memory: UnsafeMutableRawPointer
  private var semaphore: UnsafeMutablePointer<sem_t> { unsafe memory.assumingMemoryBound(to: sem_t.self) }

  public init() {
    let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    unsafe sem_init(semaphore, 0, 0)
    unsafe memory = UnsafeMutableRawPointer(semaphore)
  }

  deinit {
    unsafe sem_destroy(semaphore)
    unsafe semaphore.deallocate()
  }

  // Safe: who has this value holds the semaphore.
  public func put() { _ = unsafe sem_post(semaphore) }

  /// Blocks until there is something to take. False: there was nothing until the deadline.
  public func take(until deadline: Deadline = .never) -> Bool {
    while true {
      // Safe: as above.
      let result =
        deadline == .never
        ? unsafe sem_wait(semaphore) : unsafe larkspur_semaphore_wait(semaphore, deadline.nanoseconds)
      if result == 0 { return true }
      guard Errno.current == .interrupted else { return false }
    }
  }

  /// Takes all that is there.
  public func takeAll() {
    // Safe: as above.
    while unsafe sem_trywait(semaphore) == 0 {}
  }
}
