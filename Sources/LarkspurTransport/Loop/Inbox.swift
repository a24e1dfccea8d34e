import LarkspurIO
import Synchronization

/// What other threads have brought for a loop, and the decision whether the loop's thread has to be woken for it.
///
/// Memory order. The loop's thread stores `isParked` and then loads `hasItems` (`park`). A submitting thread stores `hasItems`
/// and then exchanges `isParked` (`add`). All four are sequentially consistent, so at least one of the two threads sees the
/// other's store: a loop does not sleep while it has items, and a loop that is awake costs no system call.
struct Inbox: ~Copyable {
  struct Items {
    var jobs: [UnownedJob] = []
    var callbacks: [any LoopCallback] = []
    var cancellations: [ClientLoop.Cancellation] = []
    /// Channels whose last owner was on another thread.
    var abandoned: [AbandonedChannel] = []
    var calls: [@Sendable () -> Void] = []
  }

  /// A channel that nothing but the inbox refers to. The loop closes it.
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

  /// Wakes the loop's thread if it is parked. Of several threads one writes the wake-up.
  func wakeIfParked() {
    if parked.exchange(false, ordering: .sequentiallyConsistent) { waker.wake() }
  }

  /// Whether the loop's thread was parked a moment ago, and no wake-up is on its way.
  var isParked: Bool { parked.load(ordering: .relaxed) }

  // MARK: - The loop's thread

  /// Announces that the loop's thread is about to wait.
  ///
  /// - Returns: Whether the inbox is empty. If it is not, the wait has to be a poll.
  func park() -> Bool {
    parked.store(true, ordering: .sequentiallyConsistent)
    return !hasItems.load(ordering: .sequentiallyConsistent)
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
