import LarkspurIO
import Testing

struct AdaptiveMutexTests {
  /// A counter that the lock protects.
  private final class Count: @unchecked Sendable { var value = 0 }

  /// Only one thread holds the lock at a time, whichever function takes it.
  @Test(.timeLimit(.minutes(2))) func oneHasItAtATime() async {
    let (lock, count) = (AdaptiveMutex(), Count())
    await withTaskGroup(of: Void.self) { group in
      for kind in 0..<6 {
        group.addTask {
          for _ in 0..<5_000 {
            switch kind % 2 {
            case 0: lock.withLock { count.value += 1 }
            default:
              if lock.withLockIfAvailable({ count.value += 1 }) == nil { lock.withLock { count.value += 1 } }
            }
          }
        }
      }
    }
    #expect(count.value == 30_000)
  }
}
