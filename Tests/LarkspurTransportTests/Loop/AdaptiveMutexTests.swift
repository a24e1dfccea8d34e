import LarkspurIO
import Testing

struct AdaptiveMutexTests {
  /// Belongs to whoever has the lock.
  private final class Count: @unchecked Sendable { var value = 0 }

  /// However it is asked for, one has it at a time.
  @Test(.timeLimit(.minutes(2))) func oneHasItAtATime() async {
    let (lock, count) = (AdaptiveMutex(), Count())
    await withTaskGroup(of: Void.self) { group in
      for kind in 0..<6 {
        group.addTask {
          for _ in 0..<5_000 {
            switch kind % 2 {
            case 0: lock.withLock { count.value += 1 }
            default: while lock.withLockIfAvailable({ count.value += 1 }) == nil { await Task.yield() }
            }
          }
        }
      }
    }
    #expect(count.value == 30_000)
  }
}
