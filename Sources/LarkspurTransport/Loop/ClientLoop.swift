import LarkspurBytes
import LarkspurIO
import Synchronization

/// One thread that waits for sockets and runs the tasks that use them.
///
/// Theory of operation. A loop only ever says that something is ready: the task that waits for it then does
/// the reading, the parsing and the writing itself, on the loop's thread, because the loop is the task's
/// executor. What needs no task is work, which the loop calls. One turn is
///
/// ```
///  wake the tasks whose channels became ready -> take the mail -> expire deadlines -> wake those who have yielded
///    -> do work and run jobs -> call followers -> call successors -> wait (epoll)
/// ```
///
/// Threads. Channels, connections, the chunk pool and the deadlines belong to the thread that takes a turn, and are not
/// locked one by one: the turn is. From any thread one may `enqueue` a job (Swift does, whenever a task is to go on here),
/// and `post` a cancellation or a channel that lost its owner: all of it goes through the mailbox. The wake-up descriptor is
/// written only when the loop sleeps.
///
/// Guests. Waking the sleeping thread costs more than a request does. A thread that submits something while the loop sleeps
/// takes a turn itself, up to the first wait: see `perform`. Only the loop's thread waits for the kernel.
///
/// ```swift
/// let loop = try ClientLoop()
/// try await loop.run {
///   let connection = try await Connection.open(host: "example.org", port: 80, on: loop)
///   ...
/// }
/// ```
public final class ClientLoop: @unchecked Sendable {
  // Any thread.
  private let mailbox = Mutex(Mailbox())
  /// Somebody has put something into the mailbox.
  private let hasMail = Atomic(false)
  /// Whether the loop waits, or is about to: a thread that adds mail then wakes it.
  let isSleeping = Atomic(false)
  let isStopping = Atomic(false)
  /// Held while a turn is taken, and not while the loop waits.
  let turns = AdaptiveMutex()
  /// The thread that takes a turn.
  private let owner = Atomic<UInt64>(0)
  /// The thread whose next job may be run on it at once.
  let guest = Atomic<UInt64>(0)
  let takesGuests: Bool
  let waker: Poller.Waker
  let watcher: Poller.Watcher
  public let kernel: any Kernel
  /// How many connections keep OpenSSL's buffers.
  let bufferKeepers = Atomic(0)

  /// What belongs to the thread that takes a turn.
  let own: Confined<State>

  /// What belongs to the loop's own thread, also while it waits.
  let waiting: Confined<Waiting>

  struct Waiting: ~Copyable {
    var poller: Poller
    /// How many events the last wait has brought that are still to be looked at.
    var eventCount = 0
    /// The successors of the turn that is over.
    var successors: [any TurnSuccessor] = []
  }

  struct State: ~Copyable {
    var jobs: [UnownedJob] = []
    var work: [any LoopWork] = []
    var slots: [Slot] = []
    var freeSlots: [UInt32] = []
    var deadlines = DeadlineHeap()
    /// The heap's soonest deadline.
    var soonest = Deadline.never
    /// How long the loop sleeps at most.
    var sleepsUntil = Deadline.never
    /// Ends the loop's sleeps in time.
    var alarm: Alarm
    /// Channels that have used up their share of this turn.
    var yielding: [Channel] = []
    /// Who wants to be called when this turn's jobs have run.
    var followers: [any TurnFollower] = []
    /// Who is to be called when the turn is over.
    var successors: [any TurnSuccessor] = []
    var chunks = ChunkPool()
    /// What idle connections have let go of, for those that become busy.
    var responses: [ResponseStorage] = []
    /// On the way from sockets to files: made when it is needed, and always empty between two steps.
    var pipe: Pipe?
    var failedAddresses = FailedAddresses()
    var now: Deadline
    var turn: UInt64 = 0
    /// Whether the turn is taken on another thread than the loop's.
    var isGuests = false
  }

  /// The clock as it was read at the beginning of this turn.
  public var now: Deadline { own.state.now }

  /// Counts the turns, so that a channel can tell whether its share is a new one.
  public var turn: UInt64 { own.state.turn }

  /// Jobs may make jobs; after so many rounds of them the sockets are looked after again.
  private static let jobRoundsMax = 16

  private struct Mailbox {
    var jobs: [UnownedJob] = []
    var work: [any LoopWork] = []
    var cancellations: [Cancellation] = []
    /// Channels whose owner let go of them on another thread.
    var abandoned: [Abandoned] = []
    var calls: [@Sendable () -> Void] = []
  }

  /// A channel on its way to the loop, which is then the only one to use it.
  private struct Abandoned: @unchecked Sendable {
    var channel: Channel
  }

  /// What a channel is used for is to end, if it is still used for that.
  struct Cancellation {
    var slot: UInt32
    var registration: UInt32
    var use: Channel.Use
  }

  /// A place that deadlines and events are addressed to. The registration changes with each occupant, so that
  /// what is meant for an earlier one can be told.
  struct Slot {
    var registration: UInt32 = 0
    var channel: Channel?
    var timer: (() -> Void)?
  }

  typealias Place = (slot: UInt32, registration: UInt32)

  /// A timer that has been started.
  public struct Timer: Sendable {
    var slot: UInt32
    var registration: UInt32
  }

  /// A loop without a thread: its owner calls `takeTurn`. For tests with a scripted kernel.
  public convenience init(withoutThreadOn kernel: any Kernel) throws(Errno) {
    try self.init(on: kernel, takesGuests: false)
  }

  private init(on kernel: any Kernel, takesGuests: Bool) throws(Errno) {
    self.kernel = kernel
    self.takesGuests = takesGuests
    let poller = try Poller(kernel: kernel)
    waker = poller.waker
    watcher = poller.watcher
    own = Confined(State(alarm: try Alarm(at: poller, kernel: kernel), now: kernel.now()))
    waiting = Confined(Waiting(poller: poller))
  }

  /// A loop on a thread of its own, which runs until `stop`.
  public convenience init(
    name: String = "larkspur-loop", on kernel: any Kernel = LinuxKernel.shared
  ) throws(Errno) {
    try self.init(on: kernel, takesGuests: true)
    let thread = try SystemThread(name: name) { [self] in
      while !isStopping.load(ordering: .acquiring) { takeTurn() }
      turns.withLock {
        defer { swap(&own.state.successors, &waiting.state.successors) }
        owner.store(SystemThread.currentIdentity, ordering: .relaxed)
        // Nobody will look after these any more, and they hold on to the loop as it does to them.
        takeMail()
        for slot in own.state.slots { slot.channel?.close() }
        var left: [any LoopWork] = []
        swap(&left, &own.state.work)
      }
      callSuccessors()
    }
    thread.detach()
  }

  /// Ends the loop's thread after its present turn. Tasks that still wait on it will never go on, so first let
  /// them end.
  public func stop() {
    isStopping.store(true, ordering: .releasing)
    waker.wake()
  }

  /// Runs `operation` on the loop, and comes back with what it returns: one hop in and one hop out.
  public func run<T: Sendable, E: Error>(
    _ operation: @concurrent @Sendable () async throws(E) -> T
  ) async throws(E) -> T {
    expectGuest()
    return try await withTaskExecutorPreference(self, operation: operation)
  }

  /// For a signal handler, which cannot use the mailbox: what it wakes is the loop's owner, whose `takeTurn` returns.
  public var signalWaker: Poller.Waker { waker }

  /// Whether the calling thread has the loop: its own, or a guest's.
  public var isCurrent: Bool { owner.load(ordering: .relaxed) == SystemThread.currentIdentity }

  /// Whether the calling task has the loop and prefers it: what it awaits here goes on here, too.
  public var isPreferred: Bool {
    guard isCurrent else { return false }
    // Safe: the task is asked while it runs.
    return unsafe withUnsafeCurrentTask { unsafe $0?.unownedTaskExecutor == asUnownedTaskExecutor() }
  }

  // MARK: - One turn

  /// One turn; it waits only when there is nothing to do, and no successor to call.
  public func takeTurn(mayWait: Bool = true) {
    let isIdle = turns.withLock {
      defer { endTurn(&waiting.state.successors) }
      beginTurn()
      own.state.isGuests = false
      takeEvents()
      takeMail()
      expireDeadlines()
      if !own.state.yielding.isEmpty { wakeYielding() }
      runJobs()
      if !own.state.followers.isEmpty { callFollowers() }
      guard mayWait, !hasWork else { return false }
      own.state.sleepsUntil = own.state.soonest
      own.state.alarm.goOff(by: own.state.soonest)
      // The order matters: first say that we sleep, then look for mail. Who posts does it the other way round,
      // so that one of the two always sees the other.
      isSleeping.store(true, ordering: .sequentiallyConsistent)
      return !hasMail.load(ordering: .sequentiallyConsistent)
    }
    if !waiting.state.successors.isEmpty { callSuccessors() }
    wait(milliseconds: isIdle ? -1 : 0)
    isSleeping.store(false, ordering: .relaxed)
  }

  func beginTurn() {
    owner.store(SystemThread.currentIdentity, ordering: .relaxed)
    own.state.turn &+= 1
    own.state.now = kernel.now()
  }

  /// - Parameter successors: An empty list, which gets those that are to be called now that the lock is free.
  func endTurn(_ successors: inout [any TurnSuccessor]) {
    if !own.state.successors.isEmpty { swap(&own.state.successors, &successors) }
    // The loop is nobody's now. One without a thread is its owner's, also between its turns.
    if takesGuests { owner.store(0, ordering: .relaxed) }
  }

  var hasWork: Bool { !own.state.jobs.isEmpty || !own.state.work.isEmpty || !own.state.yielding.isEmpty }

  /// - Parameter milliseconds: How long it waits at most. -1: until the alarm goes off.
  func wait(milliseconds: Int32) {
    do throws(Errno) {
      waiting.state.eventCount = try waiting.state.poller.wait(milliseconds: milliseconds)
    } catch {
      // epoll_wait fails only for a bad descriptor or address: nothing that a peer or a caller can bring about.
      assertionFailure("epoll_wait: \(error)")
    }
  }

  private func takeEvents() {
    for index in 0..<waiting.state.eventCount {
      guard let event = waiting.state.poller.event(at: index) else { continue }
      take(event)
    }
    waiting.state.eventCount = 0
  }

  func take(_ event: PollerEvent) {
    guard event.slot != Alarm.slot else { return own.state.alarm.wentOff() }
    channel(at: event.slot, registration: event.registration)?
      .became(readable: event.isReadable, writable: event.isWritable, hungUp: event.isHungUp)
  }

  private func wakeYielding() {
    var channels: [Channel] = []
    swap(&channels, &own.state.yielding)
    for channel in channels { channel.becameReady() }
  }

  func callFollowers() {
    var followers: [any TurnFollower] = []
    swap(&followers, &own.state.followers)
    for follower in followers { follower.turnEnded() }
    // The storage serves the next turns.
    followers.removeAll(keepingCapacity: true)
    if own.state.followers.isEmpty { swap(&followers, &own.state.followers) }
  }

  private func takeMail() {
    guard hasMail.load(ordering: .relaxed), hasMail.exchange(false, ordering: .sequentiallyConsistent) else { return }
    var mail = Mailbox()
    mailbox.withLock { swap(&$0, &mail) }
    own.state.jobs.append(contentsOf: mail.jobs)
    own.state.work.append(contentsOf: mail.work)
    for cancellation in mail.cancellations {
      channel(at: cancellation.slot, registration: cancellation.registration)?.cancelled(cancellation.use)
    }
    for abandoned in mail.abandoned { abandoned.channel.close() }
    for call in mail.calls { call() }
  }

  func run(_ job: UnownedJob) { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }

  func runJobs() {
    for _ in 0..<Self.jobRoundsMax {
      if !own.state.work.isEmpty { performWork() }
      guard !own.state.jobs.isEmpty || !own.state.work.isEmpty else { return }
      runRound()
    }
  }

  /// Jobs make jobs: those are behind `count`, and are the next round's.
  func runRound() {
    let count = own.state.jobs.count
    for index in 0..<count { run(own.state.jobs[index]) }
    if own.state.jobs.count == count {
      for _ in 0..<count { own.state.jobs.removeLast() }
    } else {
      own.state.jobs.removeFirst(count)
    }
  }

  private func performWork() {
    var work: [any LoopWork] = []
    swap(&work, &own.state.work)
    for each in work { each.perform() }
    // The storage serves the next rounds. (Most often there was one.)
    while !work.isEmpty { work.removeLast() }
    if own.state.work.isEmpty { swap(&work, &own.state.work) }
  }

  private func expireDeadlines() {
    while own.state.soonest <= own.state.now, let due = own.state.deadlines.popDue(at: own.state.now) {
      own.state.soonest = own.state.deadlines.soonest
      let slot = own.state.slots[Int(due.slot)]
      guard slot.registration == due.registration else { continue }
      slot.channel?.deadlineEntryExpired(due.deadline)
      slot.timer?()
    }
  }

  // MARK: - From any thread

  func post(_ cancellation: Cancellation) {
    mailbox.withLock { $0.cancellations.append(cancellation) }
    mailArrived()
  }

  func post(abandoned channel: Channel) {
    let abandoned = Abandoned(channel: channel)
    mailbox.withLock { $0.abandoned.append(abandoned) }
    mailArrived()
  }

  /// Has `call` made on the loop's thread.
  public func post(_ call: @escaping @Sendable () -> Void) {
    mailbox.withLock { $0.calls.append(call) }
    mailArrived()
  }

  func post(_ work: any LoopWork) {
    mailbox.withLock { $0.work.append(work) }
    mailArrived()
  }

  private func mailArrived() {
    hasMail.store(true, ordering: .sequentiallyConsistent)
    wake()
  }

  func wake() {
    if isSleeping.exchange(false, ordering: .sequentiallyConsistent) { waker.wake() }
  }
}

/// Something to be done by whoever has the loop: at once, and without waiting. To wake a task for it costs ten times as much.
public protocol LoopWork: AnyObject, Sendable {
  func perform()
}

/// Puts something off to the end of a turn, so that several causes in one turn have one effect.
protocol TurnFollower: AnyObject {
  func turnEnded()
}

extension ClientLoop: TaskExecutor {
  // (Swift's own takes a way through the runtime each time.)
  public func asUnownedTaskExecutor() -> UnownedTaskExecutor { unsafe UnownedTaskExecutor(ordinary: self) }

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if isCurrent { return own.state.jobs.append(job) }
    let thread = SystemThread.currentIdentity
    if guest.load(ordering: .relaxed) == thread {
      guest.store(0, ordering: .relaxed)
      // (When that turn is over the loop may be gone, for the runtime holds no executor: nothing here may want it then.)
      if takeTurn(asGuestWith: { run(job) }) { return }
    }
    mailbox.withLock { $0.jobs.append(job) }
    mailArrived()
  }
}
