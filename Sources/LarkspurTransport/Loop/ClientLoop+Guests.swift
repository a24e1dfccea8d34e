import LarkspurIO
import Synchronization

/// Turns on the threads of those who bring work.
extension ClientLoop {
  /// Performs work on the loop.
  ///
  /// - Parameters:
  ///   - work: The work, which waits for nothing.
  ///   - asGuest: Whether the work may run on the calling thread while the loop sleeps. The caller then holds no lock.
  public func perform(_ work: any LoopWork, asGuest: Bool) {
    // The caller has the loop, and is in the midst of something.
    if isCurrent { return own.state.work.append(work) }
    guard takesGuests, asGuest, takeTurn(asGuestWith: { performAsGuest(work) }) else { return post(work) }
  }

  /// Performs the work, and the one job that it may have made. Other jobs run on the loop's thread, and so do programs' tasks.
  private func performAsGuest(_ work: any LoopWork) {
    work.perform()
    if own.state.jobs.count == 1 { runRound() }
  }

  /// Lets the next job that the calling thread enqueues run on that thread at once.
  func expectGuest() {
    if takesGuests, !isCurrent { guest.store(SystemThread.currentIdentity, ordering: .relaxed) }
  }

  /// Takes a turn on a thread that brings something, while the loop's own sleeps.
  ///
  /// - Returns: `false` if the loop does not sleep, or another thread was first.
  func takeTurn(asGuestWith work: () -> Void) -> Bool {
    // Where another thread holds the lock, this look is cheaper than to try the lock.
    guard isSleeping.load(ordering: .relaxed) else { return false }
    var successors: [any TurnSuccessor] = []
    let isDone: Bool? = turns.withLockIfAvailable {
      defer { endTurn(&successors) }
      guard isSleeping.load(ordering: .relaxed), !isStopping.load(ordering: .relaxed) else { return false }
      beginTurn()
      own.state.isGuests = true
      work()
      if !own.state.followers.isEmpty { callFollowers() }
      // What is left is the loop's, which may have meant to sleep for longer.
      if hasWork || own.state.soonest < own.state.sleepsUntil { wake() }
      return true
    }
    for successor in successors { successor.turnIsOver() }
    return isDone == true
  }

  /// Continues on the loop's own thread: sockets are opened there, in its namespace and with its rights.
  func leaveGuest() async {
    while own.state.isGuests { await Waiter.suspend { waiter in post { waiter.wake() } } }
  }
}
