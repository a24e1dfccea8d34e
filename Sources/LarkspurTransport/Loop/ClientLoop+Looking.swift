import LarkspurBytes
import LarkspurIO

/// Answers that are looked for, where a sleep is dearer: by the loop's thread, or by a guest.
extension ClientLoop {
  /// How long an answer is looked for, from the first look on. One that takes longer is not near, and slept for.
  private struct Patience {
    private var end = Deadline.never

    mutating func isOver(at now: Deadline) -> Bool {
      if end == .never { end = now.advanced(byNanoseconds: 100_000) }
      return now >= end
    }
  }

  /// A caller on the loop sends a request now, and nobody else has anything under way: where that is cheaper, the loop's next
  /// wait is spent awake.
  public func expectAnswer() {
    if takesGuests { own.state.expectsAnswer = true }
  }

  /// Whether something has come that the loop looked for in place of a sleep. To everybody else it sleeps: mail wakes it.
  func findsAnswer() -> Bool {
    guard waiting.state.choice.looks(processorTime: { SystemThread.currentClock.nanoseconds }) else { return false }
    var patience = Patience()
    while true {
      wait(milliseconds: 0)
      let (hasCome, isLate) = (waiting.state.eventCount > 0, patience.isOver(at: kernel.now()))
      if isLate { waiting.state.choice.lookedInVain() } else if hasCome { waiting.state.choice.found() }
      if hasCome || isLate { return hasCome }
      SystemThread.yield()
    }
  }

  /// Whether a guest has found what it waits for. The loop's thread sleeps at its bell meanwhile. Nil: the guest is to go.
  func finds(_ awaited: any AwaitedByGuest, at place: inout GuestWaits.Place) -> Bool? {
    var patience = Patience()
    return bell.whileLooking {
      while true {
        guard let hasEvents = place.poller.wait(milliseconds: 0) else { return nil }
        guard let now = hasEvents ? takeEvents(of: place.poller) : kernel.now() else {
          return awaited.hasCome ? true : nil
        }
        // (It may be the loop that has got it.)
        let (hasCome, isLate) = (awaited.hasCome, patience.isOver(at: now))
        if isLate { place.choice.lookedInVain() } else if hasCome { place.choice.found() }
        if hasCome || isLate { return hasCome }
        SystemThread.yield()
      }
    }
  }

  /// The loop's thread sleeps.
  ///
  /// - Parameter end: Nil: there is something to do.
  func sleep(until end: Deadline?) {
    guard let end else {
      bell.leave()
      return wait(milliseconds: 0)
    }
    guard bell.isInUse else { return wait(milliseconds: -1) }
    bell.wait(until: end, now: kernel.now) {
      wait(milliseconds: 0)
      // (Nobody wakes it there, but for one who comes late.)
      return (0..<waiting.state.eventCount).contains { waiting.state.poller.event(at: $0) != nil }
    }
  }

  /// What comes next no guest looks for.
  func sendToPoller() {
    if bell.isToBeLeft() { wake() }
  }
}
