import LarkspurIO
import Synchronization

/// The waits of guests, one at a time. None waits where that has come to nothing lately.
final class GuestWaits: @unchecked Sendable {
  /// On one processor the program's other tasks would wait, too.
  static let isUseful = ProcessorCount.available > 1
  /// A response may come in so many parts.
  static let waitsMax = 4
  /// As long as it takes to learn that a server is not near. (The kernel's clock is set anew for each shorter time: that
  /// costs more than the wait saves.)
  static let milliseconds: Int32 = 5
  /// A thread of Swift's own waits no longer for what comes again and again.
  static let quickNanoseconds: UInt64 = 300_000

  private let lock = AdaptiveMutex()
  private let isWaiting = Atomic(false)
  /// Under the lock.
  private let poller: Confined<Poller.Guest>
  /// How many guests do not wait from now on, and how many did not after the last failure.
  private let skips = Atomic(0)
  private let skipsLast = Atomic(0)
  private static let skipsMax = 1_023

  init(_ poller: consuming Poller.Guest) { self.poller = Confined(poller) }

  /// Lends the caller the poller, unless it is better not to wait. `wait` says whether it was worth it; nil: nobody knows.
  func wait(_ wait: (inout Poller.Guest) -> Bool?) {
    let left = skips.load(ordering: .relaxed)
    guard left == 0 else { return skips.store(left - 1, ordering: .relaxed) }
    _ = lock.withLockIfAvailable {
      isWaiting.store(true, ordering: .sequentiallyConsistent)
      let wasWorthIt = wait(&poller.state)
      isWaiting.store(false, ordering: .relaxed)
      if let wasWorthIt { learn(wasWorthIt: wasWorthIt) }
    }
  }

  func learn(wasWorthIt: Bool) {
    let last = skipsLast.load(ordering: .relaxed)
    if !wasWorthIt {
      let next = min(2 * last + 1, Self.skipsMax)
      skipsLast.store(next, ordering: .relaxed)
      skips.store(next, ordering: .relaxed)
      return
    }
    if last > 0 { skipsLast.store(last / 2, ordering: .relaxed) }
  }

  /// Ends the wait of a guest. The loop calls this before it waits itself: what the guest waits for may have come to it, if
  /// the guest was not in time.
  func end(by waker: Poller.Waker) {
    // Who waits says so first, and then looks whether it has come; here it has come first, and then this looks who waits.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    guard isWaiting.load(ordering: .relaxed) else { return }
    waker.wake()
    // Until then the loop would be the first to be woken.
    lock.withLock {}
  }
}
