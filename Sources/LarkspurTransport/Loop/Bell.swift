import LarkspurBytes
import LarkspurIO
import Synchronization

/// Where a loop's thread sleeps while guests look for what comes.
///
/// The kernel would wake it for each event if it slept at the poller, though a guest has seen the event by then. So guests who
/// look have the loop sleep here. What no guest looks for it must not miss: who brings something of the kind sends the loop back
/// to the poller, and now and then it looks there itself, and goes back if it has found something or if no guest has looked since.
final class Bell: Sendable {
  private let semaphore = Semaphore()
  /// A guest looks, or would.
  private let isWanted = Atomic(false)
  private let isBusy = Atomic(false)
  private let hasMissed = Atomic(false)
  /// Whether the loop sleeps here, if it sleeps.
  private let isUsed = Atomic(false)

  /// So late the loop is at most for what no guest has taken, or twice as late if a guest was about to.
  static let nanoseconds: UInt64 = 2_000_000

  // MARK: - From any thread

  func ring() { semaphore.put() }

  /// Wakes the loop, or if it does not sleep here, has `waker` do it. (Whoever does that has seen that it sleeps, and so where.)
  func wake(or waker: Poller.Waker) {
    if isInUse { ring() } else { waker.wake() }
  }

  /// Whether a guest may look: the loop sleeps here. If it does not it will, when it next gets something at the poller.
  func isForGuests() -> Bool {
    isWanted.store(true, ordering: .relaxed)
    return isInUse
  }

  /// A guest looks.
  func whileLooking<T>(_ look: () -> T) -> T {
    isBusy.store(true, ordering: .relaxed)
    defer { isBusy.store(false, ordering: .relaxed) }
    return look()
  }

  /// No guest looks for what comes next. Returns whether the loop is to be woken for it.
  func isToBeLeft() -> Bool {
    if isWanted.load(ordering: .relaxed) { isWanted.store(false, ordering: .sequentiallyConsistent) }
    return isUsed.load(ordering: .sequentiallyConsistent)
  }

  /// Whether the loop has found something since the last call that no guest had taken.
  func hasMissedSomething() -> Bool {
    hasMissed.load(ordering: .relaxed) && hasMissed.exchange(false, ordering: .relaxed)
  }

  /// Whether it is here that the loop sleeps, if it does.
  var isInUse: Bool { isUsed.load(ordering: .relaxed) }

  // MARK: - From the loop's thread

  /// The loop is about to sleep. Whoever finds it asleep knows where.
  ///
  /// - Parameter mayUse: It has just got something at the poller.
  func choose(mayUse: Bool) {
    guard mayUse, isWanted.load(ordering: .relaxed) else { return leave() }
    isUsed.store(true, ordering: .sequentiallyConsistent)
    // Whoever has it left says so first, and then looks whether it is used; here it is the other way round.
    if !isWanted.load(ordering: .sequentiallyConsistent) { leave() }
  }

  func leave() {
    if isInUse { isUsed.store(false, ordering: .relaxed) }
  }

  /// Sleeps until the loop is to take a turn. (It takes one in any case: whoever has woken it may have come late.)
  ///
  /// - Parameters:
  ///   - now: What the clock says.
  ///   - look: Whether something has come to the poller that no guest has taken.
  func wait(until deadline: Deadline, now: () -> Deadline, look: () -> Bool) {
    defer {
      leave()
      // Who has rung is served by the turn that follows, however often it was.
      semaphore.takeAll()
    }
    repeat {
      isWanted.store(false, ordering: .relaxed)
      let end = now().advanced(byNanoseconds: Self.nanoseconds)
      if semaphore.take(until: min(deadline, end)) || deadline <= end { return }
      if isBusy.load(ordering: .relaxed) { continue }
      if look() {
        isWanted.store(false, ordering: .relaxed)
        return hasMissed.store(true, ordering: .relaxed)
      }
    } while isWanted.load(ordering: .relaxed)
  }
}
