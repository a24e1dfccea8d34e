import LarkspurIO
import Synchronization

/// The waits of guests, one at a time. None waits where that has come to nothing lately.
final class GuestWaits: @unchecked Sendable {
  /// A response may come in so many parts.
  static let waitsMax = 4
  /// As long as it takes to learn that a server is not near. So often at most the alarm is set for guests.
  static let nanoseconds: UInt64 = 5_000_000
  /// A thread of Swift's own waits no longer for what comes again and again.
  static let quickNanoseconds: UInt64 = 300_000
  /// Who lets others come and goes on no later was the only one. (Among several threads another may have to be woken for him.)
  static let othersNanoseconds: UInt64 = ProcessorCount.available > 1 ? quickNanoseconds : 0

  private let lock = AdaptiveMutex()
  private let isAsleep = Atomic(false)
  /// Under the lock.
  private let place: Confined<Place>
  /// How many guests do not wait from now on, and how many did not after the last failure.
  private let skips = Atomic(0)
  private let skipsLast = Atomic(0)

  /// What the one guest uses who waits.
  struct Place: ~Copyable {
    var poller: Poller.Guest
    var choice: WaitChoice
  }

  init(_ poller: consuming Poller.Guest, choice: WaitChoice = WaitChoice()) {
    place = Confined(Place(poller: poller, choice: choice))
  }

  /// Lends the caller the place, unless it is better not to wait. `wait` says whether it was worth it; nil: nobody knows.
  func wait(_ wait: (inout Place) -> Bool?) {
    let left = skips.load(ordering: .relaxed)
    guard left == 0 else { return skips.store(left - 1, ordering: .relaxed) }
    _ = lock.withLockIfAvailable {
      if let wasWorthIt = wait(&place.state) { learn(wasWorthIt: wasWorthIt) }
    }
  }

  /// For the guest that has the place: from now on `end` ends its wait.
  func sleep<T>(_ sleep: () -> T) -> T {
    isAsleep.store(true, ordering: .sequentiallyConsistent)
    defer { isAsleep.store(false, ordering: .relaxed) }
    return sleep()
  }

  func learn(wasWorthIt: Bool) {
    let last = skipsLast.load(ordering: .relaxed)
    let next = Backoff.skips(after: last, wasWorthIt: wasWorthIt)
    if next != last { skipsLast.store(next, ordering: .relaxed) }
    if !wasWorthIt { skips.store(next, ordering: .relaxed) }
  }

  /// Ends the wait of a guest. The loop calls this before it waits itself: what the guest waits for may have come to it, if
  /// the guest was not in time.
  ///
  /// - Parameter isAtPoller: The loop is about to wait where the guest does.
  func end(by waker: Poller.Waker, isAtPoller: Bool) {
    // Who waits says so first, and then looks whether it has come; here it has come first, and then this looks who waits.
    atomicMemoryFence(ordering: .sequentiallyConsistent)
    guard isAsleep.load(ordering: .relaxed) else { return }
    waker.wake()
    // Until then the loop would be the first to be woken.
    if isAtPoller { lock.withLock {} }
  }
}

extension GuestWaits.Place {
  /// Whether the guest is to look for what it waits for, and not to sleep.
  ///
  /// - Parameter loopClock: Counts what the loop's thread takes: while guests sleep, part of the work is its.
  mutating func looks(loopClock: @autoclosure () -> ProcessorClock) -> Bool {
    choice.looks(on: SystemThread.currentIdentity) { SystemThread.currentClock.nanoseconds &+ loopClock().nanoseconds }
  }
}

/// How many occasions to pass by after something was not worth it.
enum Backoff {
  static let skipsMax = 1_023

  /// - Parameter last: How many those were the last time, less what has gone well since.
  static func skips(after last: Int, wasWorthIt: Bool) -> Int { wasWorthIt ? last / 2 : min(2 * last + 1, skipsMax) }
}
