import LarkspurBytes
import LarkspurIO
import Synchronization

/// What a guest waits for.
public protocol AwaitedByGuest: AnyObject {
  /// Whether it has come. Any thread may ask.
  var hasCome: Bool { get }
}

/// Turns on the threads of those who bring work.
///
/// To hand an answer from the loop's thread to the thread that waits for it wakes two threads, one after the other: with a
/// server that is near, that is most of what a request costs. So a guest who has nothing else to do waits for the answer
/// himself, beside the loop, for so long as such servers take. The kernel tells of what happens to the one of the two who
/// began to wait last.
///
/// A thread that waits is one less for the program's other tasks. So where what has been answered goes on late, the threads are
/// wanted, and no guest waits for a while; and who has waited often lets others come.
extension ClientLoop {
  /// Has work done.
  ///
  /// - Parameters:
  ///   - asGuest: It may be done on the calling thread, if the loop sleeps. Who says so holds no lock.
  ///   - awaited: What the calling thread has to wait for in any case: it may do so here, for 5 ms at most but for what
  ///     comes in parts, and does the loop's work meanwhile. Nil: it has other things to do.
  public func perform(_ work: any LoopWork, asGuest: Bool, for awaited: (any AwaitedByGuest)? = nil) {
    // Whoever has the loop is in the midst of something.
    if isCurrent { return own.state.work.append(work) }
    guard takesGuests else { return post(work) }
    var began: Deadline?
    let isDone =
      asGuest
      && takeTurn(andWaits: awaited != nil) {
        began = now
        performAsGuest(work)
      }
    if !isDone { post(work) }
    if let awaited, waits(for: awaited, since: began) { return }
    sendToPoller()
  }

  /// The one task that the work wakes, if it does, goes on here, too. All else is the loop's: programs' tasks run there.
  private func performAsGuest(_ work: any LoopWork) {
    work.perform()
    if own.state.jobs.count == 1 { runRound() }
  }

  /// The next job that the calling thread brings may be run on it at once.
  func expectGuest() {
    if takesGuests, !isCurrent { guest.store(SystemThread.currentIdentity, ordering: .relaxed) }
  }

  /// A turn on a thread that brings something, while the loop's own sleeps. False: it does not, or somebody else was first.
  ///
  /// - Parameter waits: The thread may wait at the poller then, until the alarm goes off.
  func takeTurn(andWaits waits: Bool = false, asGuestWith work: () -> Void) -> Bool {
    // Not even to try the lock is cheaper where somebody else holds it.
    guard isSleeping.load(ordering: .relaxed) else { return false }
    var successors = TurnSuccessors()
    let isDone: Bool? = turns.withLockIfAvailable {
      defer { endTurn(&successors) }
      guard isSleeping.load(ordering: .relaxed), !isStopping.load(ordering: .relaxed) else { return false }
      beginTurn()
      own.state.isGuests = true
      work()
      endGuestsWork(waits: waits)
      return true
    }
    successors.call()
    return isDone == true
  }

  /// Goes on on the loop's own thread: sockets are opened there, in its namespace and with its rights.
  func leaveGuest() async {
    while own.state.isGuests { await Waiter.suspend { waiter in post { waiter.wake() } } }
  }

  private func endGuestsWork(waits: Bool) {
    let sleepsUntil = own.state.sleepsUntil
    let guestsEnd = waits ? own.state.now.advanced(byNanoseconds: GuestWaits.nanoseconds) : .never
    own.state.alarm.goOff(by: guestsEnd < sleepsUntil ? guestsEnd : sleepsUntil)
    if !own.state.followers.isEmpty { callFollowers() }
    // What is left is the loop's, which may have meant to sleep for longer.
    if hasWork || own.state.soonest < sleepsUntil { wake() }
  }

  /// What a thread has waited for goes on, whether it was a guest that waited or the loop.
  ///
  /// - Parameter moment: When the answer came.
  public func goesOn(since moment: Deadline) {
    if moment.advanced(byNanoseconds: GuestWaits.quickNanoseconds) < kernel.now() { guests.learn(wasWorthIt: false) }
  }

  /// Whether other tasks have had the thread of one that let them come: then they want it, and guests are to wait less often.
  ///
  /// - Parameters:
  ///   - moment: When it let them come.
  ///   - answer: When what it had waited for came. In twice as long as it took to get from there to here, however slow the
  ///     machine, a thread is had again that nobody else wants.
  public func othersCame(since moment: Deadline, after answer: Deadline) -> Bool {
    let most = max(2 * (moment.nanoseconds - min(answer, moment).nanoseconds), GuestWaits.othersNanoseconds)
    guard moment.advanced(byNanoseconds: most) < kernel.now() else { return false }
    guests.learn(wasWorthIt: false)
    return true
  }

  /// Waits for what is awaited, if that is worth it. False: it has not come, and no guest will look for it.
  ///
  /// - Parameter moment: When the guest's turn began, in which the alarm was set for that. Nil: it has taken none.
  private func waits(for awaited: any AwaitedByGuest, since moment: Deadline?) -> Bool {
    guard !awaited.hasCome, !isCurrent, isSleeping.load(ordering: .relaxed) else { return awaited.hasCome }
    var comesToTheLoop = false
    guests.wait { place in
      if bell.hasMissedSomething() { place.choice.lookedInVain() }
      if place.looks(loopClock: clock.load(ordering: .relaxed)) {
        guard bell.isForGuests() else {
          place.choice.couldNotLook()
          comesToTheLoop = true
          return nil
        }
        guard let hasCome = finds(awaited, at: &place) else { return nil }
        if hasCome { return true }
      }
      return guests.sleep { sleeps(for: awaited, at: &place, since: moment) }
    }
    return comesToTheLoop || awaited.hasCome
  }

  /// Sleeps until it has come. Returns whether that was worth it; nil: nobody knows.
  private func sleeps(
    for awaited: any AwaitedByGuest, at place: inout GuestWaits.Place, since moment: Deadline?
  ) -> Bool? {
    let milliseconds = moment == nil ? Int32(GuestWaits.nanoseconds / 1_000_000) : -1
    let began = moment ?? kernel.now()
    for _ in 0..<GuestWaits.waitsMax where !awaited.hasCome {
      guard let hasEvents = place.poller.wait(milliseconds: milliseconds) else { return nil }
      guard hasEvents else { return false }
      guard let turn = takeEvents(of: place.poller) else { return nil }
      guard turn < began.advanced(byNanoseconds: GuestWaits.quickNanoseconds) else { return false }
    }
    return true
  }

  /// A turn for what a guest has waited for, and when it was. Nil: the guest is to go, or the loop is wanted itself.
  func takeEvents(of poller: borrowing Poller.Guest) -> Deadline? {
    var isLoopWanted = false
    var now = Deadline.never
    var successors = TurnSuccessors()
    turns.withLock {
      defer { endTurn(&successors) }
      guard !isStopping.load(ordering: .relaxed) else { return isLoopWanted = true }
      beginTurn()
      now = own.state.now
      own.state.isGuests = true
      for index in 0..<poller.eventCount {
        if let event = poller.event(at: index) { take(event) } else { isLoopWanted = true }
      }
      runJobs()
      endGuestsWork(waits: true)
    }
    successors.call()
    // Who woke it has been told that it is awake.
    if isLoopWanted { bell.wake(or: waker) }
    return isLoopWanted ? nil : now
  }
}
