import LarkspurIO
import Synchronization

/// Items that other threads have submitted to a loop, and the decision whether to wake the loop's thread for them.
///
/// Memory order: the loop's thread stores `parked` and then loads `hasItems` (`park`). A submitting thread stores
/// `hasItems` and then exchanges `parked` (`add`). All four operations are sequentially consistent, so at least one of
/// the two threads sees the other's store: a loop does not sleep while it has items, and submitting to a loop that is
/// awake costs no system call.
struct Inbox: ~Copyable {
  struct Items {
    var jobs: [UnownedJob] = []
    var callbacks: [any LoopCallback] = []
    var cancellations: [ClientLoop.Cancellation] = []
    /// Channels whose connection was released on another thread.
    var abandoned: [AbandonedChannel] = []
    var calls: [@Sendable () -> Void] = []
  }

  /// A channel that nothing but its loop's slot and the inbox refers to. The loop closes it.
  struct AbandonedChannel: @unchecked Sendable {
    var channel: Channel
  }

  private let items = Mutex(Items())
  private let hasItems = Atomic(false)
  private let parked = Atomic(false)
  private let waker: Poller.Waker

  init(waking waker: Poller.Waker) { self.waker = waker }

  // MARK: - Any thread

  /// Adds items, and wakes the loop's thread if it is parked.
  func add(_ change: (inout Items) -> Void) {
    items.withLock { change(&$0) }
    hasItems.store(true, ordering: .sequentiallyConsistent)
    wakeIfParked()
  }

  /// Wakes the loop's thread if it is parked. If several threads call this, one of them writes the wake-up.
  func wakeIfParked() {
    if parked.exchange(false, ordering: .sequentiallyConsistent) { waker.wake() }
  }

  /// Whether the loop's thread was parked at a recent moment and no wake-up is on its way. Only a hint.
  var isParked: Bool { parked.load(ordering: .relaxed) }

  // MARK: - The loop's thread

  /// Announces that the loop's thread is about to wait. Pairs with `add`.
  ///
  /// - Returns: `true` if the inbox is empty. Otherwise the loop's thread has to poll without waiting.
  func park() -> Bool {
    parked.store(true, ordering: .sequentiallyConsistent)
    guard hasItems.load(ordering: .sequentiallyConsistent) else { return true }
    // An inline tick before the items are drained would run a later call of a thread before an earlier one.
    unpark()
    return false
  }

  func unpark() { parked.store(false, ordering: .relaxed) }

  /// Removes all items.
  ///
  /// - Returns: The items, or `nil` if there are none.
  func drain() -> Items? {
    guard hasItems.load(ordering: .relaxed), hasItems.exchange(false, ordering: .sequentiallyConsistent) else {
      return nil
    }
    var drained = Items()
    items.withLock { swap(&$0, &drained) }
    return drained
  }
}
