import LarkspurBytes
import LarkspurIO

/// Answers that are looked for, where a sleep is dearer: by the loop's thread, or by a guest.
extension ClientLoop {
  /// So long an answer is looked for. One that takes longer is not near, and slept for.
  static let lookNanoseconds: UInt64 = 100_000

  /// A caller on the loop sends a request now, and nobody else has anything under way: where that is cheaper, the loop's next
  /// wait is spent awake.
  package func expectAnswer() {
    if takesGuests { own.state.expectsAnswer = true }
  }

  /// Whether something has come that the loop looked for in place of a sleep. To everybody else it sleeps: mail wakes it.
  func findsAnswer() -> Bool {
    guard waiting.state.choice.looks(processorTime: { SystemThread.currentClock.nanoseconds }) else { return false }
    let end = kernel.now().advanced(byNanoseconds: Self.lookNanoseconds)
    repeat {
      wait(milliseconds: 0)
      if waiting.state.eventCount > 0 { return true }
      SystemThread.yield()
    } while kernel.now() < end
    waiting.state.choice.lookedInVain()
    return false
  }

  /// Whether a guest has found what it waits for. The loop's thread sleeps at its bell meanwhile.
  func finds(_ awaited: any AwaitedByGuest, at place: inout GuestWaits.Place) -> Bool {
    let end = kernel.now().advanced(byNanoseconds: Self.lookNanoseconds)
    return bell.whileLooking {
      repeat {
        guard let hasEvents = place.poller.wait(milliseconds: 0) else { return false }
        if hasEvents, takeEvents(of: place.poller) == nil { return awaited.hasCome }
        // (It may be the loop that has got it.)
        if awaited.hasCome { return true }
        SystemThread.yield()
      } while kernel.now() < end
      place.lookedInVain()
      return false
    }
  }

  /// The loop's thread sleeps.
  ///
  /// - Parameter end: Nil: there is something to do.
  func sleep(until end: Deadline?) {
    guard let end else { return wait(milliseconds: 0) }
    guard bell.isInUse else { return wait(milliseconds: milliseconds(to: end)) }
    bell.wait(until: end, now: kernel.now) {
      wait(milliseconds: 0)
      return waiting.state.eventCount > 0
    }
  }

  /// What comes next no guest looks for.
  func sendToPoller() {
    if bell.isToBeLeft() { wake() }
  }
}
