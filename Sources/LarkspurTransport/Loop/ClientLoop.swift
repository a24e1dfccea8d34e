import LarkspurBytes
import LarkspurIO
import Synchronization

/// An event loop: one tick lock and one poller.
///
/// A *tick* takes events, drains the inbox, expires deadlines, wakes the channels that have yielded, runs callbacks and
/// jobs, calls the end-of-tick hooks, releases the lock, and then completes the results that it brought. The loop's own
/// thread ticks whenever something is ready. A submitting thread may run an *inline tick* while the loop's thread is
/// parked, so that a request leaves at once: only the submitted work, at most one job and the end-of-tick hooks, with no
/// events, inbox or deadlines. A task whose preferred executor is the loop runs on the loop's thread and crosses no
/// thread.
///
/// ```
///  events -> inbox -> deadlines -> channels that have yielded -> callbacks and jobs -> end-of-tick hooks
///   -> (lock released) -> completions -> epoll_wait
/// ```
///
/// Channels, connections, pools, chunks and deadlines belong to the thread that ticks and have no locks. Jobs
/// (`enqueue`) and callbacks of other threads go through the inbox or run in an inline tick; their cancellations, calls
/// and abandoned channels always go through the inbox. Only the loop's thread waits for the kernel.
///
/// ```swift
/// let loop = try ClientLoop()
/// try await loop.run {
///   let connection = try await Connection.open(host: "example.org", port: 80, on: loop)
///   ...
/// }
/// ```
public final class ClientLoop: @unchecked Sendable {
  // The properties up to `bufferKeepers` may be used from any thread.
  let inbox: Inbox
  let isStopping = Atomic(false)
  /// Held during a tick. Free while the loop's thread waits for the kernel.
  let tickLock = AdaptiveMutex()
  /// The identity of the thread that ticks, or 0.
  private let owner = Atomic<UInt64>(0)
  /// The identity of the thread whose next job may run inline, or 0.
  let inlineThread = Atomic<UInt64>(0)
  let allowsInlineTicks: Bool
  private let waker: Poller.Waker
  let watcher: Poller.Watcher
  public let kernel: any Kernel
  /// The number of TLS layers that keep OpenSSL's buffers.
  let bufferKeepers = Atomic(0)

  /// State that belongs to the thread that ticks.
  let loopBound: LoopBound<State>

  /// State that belongs to the loop's own thread, also while it waits.
  private let waiting: LoopBound<Waiting>

  private struct Waiting: ~Copyable {
    var poller: Poller
    /// The number of events that the latest wait has returned and that no tick has taken.
    var eventCount = 0
    /// The results of the latest tick, which are completed after it.
    var completions: [any LoopCompletion] = []
  }

  struct State: ~Copyable {
    var jobs: [UnownedJob] = []
    var callbacks: [any LoopCallback] = []
    var slots: [Slot] = []
    var freeSlots: [UInt32] = []
    var deadlines = DeadlineHeap()
    /// The heap's soonest deadline.
    var soonest = Deadline.never
    /// The value of `soonest` when the loop's thread parked.
    var parkedUntil = Deadline.never
    /// The timer that ends a wait of the loop's thread at the soonest deadline.
    var pollerTimer: PollerTimer
    /// Channels whose subscribers are woken in the next tick: their share of this one is used up, or they were ready
    /// already.
    var yielding: [Channel] = []
    var endOfTickHooks: [any EndOfTickHook] = []
    var completions: [any LoopCompletion] = []
    var chunks = ChunkPool()
    /// Response storages of idle connections, for reuse by connections that become busy.
    var responses: [ResponseStorage] = []
    /// The pipe that moves bytes from sockets to files. Created on first use, and empty between two steps.
    var pipe: Pipe?
    var failedAddresses = FailedAddresses()
    var now: Deadline
    var tickNumber: UInt64 = 0
    /// Whether the tick runs on another thread than the loop's own.
    var isInline = false
  }

  /// The time at the beginning of this tick.
  public var now: Deadline { loopBound.state.now }

  /// The number of ticks so far. A channel compares it with its own: a new number means a new share of the tick.
  public var tickNumber: UInt64 { loopBound.state.tickNumber }

  /// Maximum number of rounds of callbacks and jobs in one tick, because jobs may enqueue jobs. Then the sockets
  /// are polled again.
  private static let jobRoundsMax = 16

  /// Cancels one use of a channel, if the channel still has that use.
  struct Cancellation {
    var slot: UInt32
    var registration: UInt32
    var use: Channel.Use
  }

  /// The slot of a channel or timer. Events and deadlines name the slot by its `SlotID`. The registration changes with
  /// each occupant, so that events for an earlier occupant are recognised and dropped.
  struct Slot {
    var registration: UInt32 = 0
    var channel: Channel?
    var timer: (() -> Void)?
  }

  typealias SlotID = (slot: UInt32, registration: UInt32)

  /// A timer that has been started.
  public struct Timer: Sendable {
    var slot: UInt32
    var registration: UInt32
  }

  /// Creates a loop without a thread. Its owner calls `tick`.
  ///
  /// - Parameter allowsInlineTicks: Whether callbacks that are submitted between two ticks run at once. If so, the
  ///   owner uses `submit` for all its work and does not access what belongs to the loop between two ticks.
  public convenience init(withoutThreadOn kernel: any Kernel, allowsInlineTicks: Bool = false) throws(Errno) {
    try self.init(on: kernel, allowsInlineTicks: allowsInlineTicks)
  }

  private init(on kernel: any Kernel, allowsInlineTicks: Bool) throws(Errno) {
    self.kernel = kernel
    self.allowsInlineTicks = allowsInlineTicks
    let poller = try Poller(kernel: kernel)
    waker = poller.waker
    watcher = poller.watcher
    inbox = Inbox(waking: poller.waker)
    loopBound = LoopBound(State(pollerTimer: try PollerTimer(at: poller, kernel: kernel), now: kernel.now()))
    waiting = LoopBound(Waiting(poller: poller))
  }

  /// Creates a loop with a dedicated thread, which runs until `stop`.
  public convenience init(
    name: String = "larkspur-loop", on kernel: any Kernel = LinuxKernel.shared
  ) throws(Errno) {
    try self.init(on: kernel, allowsInlineTicks: true)
    let thread = try SystemThread(name: name) { [self] in
      while !isStopping.load(ordering: .acquiring) { tick() }
      tickLock.withLock {
        defer { swap(&loopBound.state.completions, &waiting.state.completions) }
        owner.store(SystemThread.currentIdentity, ordering: .relaxed)
        // No tick follows. The remaining items and the loop refer to each other, so the cycle is broken here.
        drainInbox()
        for slot in loopBound.state.slots { slot.channel?.close() }
        var left: [any LoopCallback] = []
        swap(&left, &loopBound.state.callbacks)
      }
      completeResults()
    }
    thread.detach()
  }

  /// Ends the loop's thread after its current tick. A task that still waits on the loop never resumes, so let all tasks
  /// end first.
  public func stop() {
    isStopping.store(true, ordering: .releasing)
    waker.wake()
  }

  /// Runs `operation` on the loop and returns its result. This costs one hop in and one hop out.
  public func run<T: Sendable, E: Error>(
    _ operation: @concurrent @Sendable () async throws(E) -> T
  ) async throws(E) -> T {
    expectInlineJob()
    return try await withTaskExecutorPreference(self, operation: operation)
  }

  /// A handle that ends the current wait from a signal handler, which cannot use the inbox.
  public var signalWaker: Poller.Waker { waker }

  /// Whether the calling thread is in a tick of this loop.
  public var isCurrent: Bool { owner.load(ordering: .relaxed) == SystemThread.currentIdentity }

  /// Whether the calling task is in a tick and has this loop as its preferred executor, so that it resumes here after
  /// each wait.
  public var isPreferred: Bool {
    guard isCurrent else { return false }
    // Safe: the task reference is used only while that task runs.
    return unsafe withUnsafeCurrentTask { unsafe $0?.unownedTaskExecutor == asUnownedTaskExecutor() }
  }

  // MARK: - One tick

  /// Runs one tick on the loop's thread, and then waits for the kernel if there is nothing left to do.
  ///
  /// - Parameter mayWait: Whether this may wait. If `false`, the kernel is only polled.
  public func tick(mayWait: Bool = true) {
    let isIdle = tickLock.withLock {
      defer { endTick(&waiting.state.completions) }
      startTick()
      loopBound.state.isInline = false
      takeEvents()
      drainInbox()
      expireDeadlines()
      if !loopBound.state.yielding.isEmpty { wakeYielding() }
      runJobs()
      if !loopBound.state.endOfTickHooks.isEmpty { callEndOfTickHooks() }
      guard mayWait, !hasWork else { return false }
      loopBound.state.parkedUntil = loopBound.state.soonest
      loopBound.state.pollerTimer.arm(by: loopBound.state.soonest)
      return inbox.park()
    }
    if !waiting.state.completions.isEmpty { completeResults() }
    wait(milliseconds: isIdle ? -1 : 0)
    inbox.unpark()
  }

  func startTick() {
    owner.store(SystemThread.currentIdentity, ordering: .relaxed)
    loopBound.state.tickNumber &+= 1
    loopBound.state.now = kernel.now()
  }

  /// - Parameter completions: An empty list, which receives the tick's results.
  func endTick(_ completions: inout [any LoopCompletion]) {
    if !loopBound.state.completions.isEmpty { swap(&loopBound.state.completions, &completions) }
    // Without inline ticks the owner keeps access to the loop between two ticks.
    if allowsInlineTicks { owner.store(0, ordering: .relaxed) }
  }

  var hasWork: Bool {
    !loopBound.state.jobs.isEmpty || !loopBound.state.callbacks.isEmpty || !loopBound.state.yielding.isEmpty
  }

  /// - Parameter milliseconds: The longest wait, or -1 to wait until an event, a wake-up or the timer.
  private func wait(milliseconds: Int32) {
    do throws(Errno) {
      waiting.state.eventCount = try waiting.state.poller.wait(milliseconds: milliseconds)
    } catch {
      // epoll_wait fails only for a bad descriptor or address, which no peer or caller can cause.
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

  private func take(_ event: PollerEvent) {
    guard event.slot != PollerTimer.slot else { return loopBound.state.pollerTimer.fired() }
    channel(at: event.slot, registration: event.registration)?
      .became(readable: event.isReadable, writable: event.isWritable, hungUp: event.isHungUp)
  }

  private func wakeYielding() {
    var channels: [Channel] = []
    swap(&channels, &loopBound.state.yielding)
    for channel in channels { channel.becameReady() }
  }

  func callEndOfTickHooks() {
    var hooks: [any EndOfTickHook] = []
    swap(&hooks, &loopBound.state.endOfTickHooks)
    for hook in hooks { hook.tickWillEnd() }
    // Performance: the storage is reused in the next ticks.
    hooks.removeAll(keepingCapacity: true)
    if loopBound.state.endOfTickHooks.isEmpty { swap(&hooks, &loopBound.state.endOfTickHooks) }
  }

  /// Completes the results of the loop's own ticks, in their order.
  private func completeResults() {
    for completion in waiting.state.completions { completion.complete() }
    waiting.state.completions.removeAll(keepingCapacity: true)
  }

  /// Completes a result after this tick.
  public func completeAfterTick(_ completion: any LoopCompletion) { loopBound.state.completions.append(completion) }

  private func drainInbox() {
    guard let items = inbox.drain() else { return }
    loopBound.state.jobs.append(contentsOf: items.jobs)
    loopBound.state.callbacks.append(contentsOf: items.callbacks)
    for cancellation in items.cancellations {
      channel(at: cancellation.slot, registration: cancellation.registration)?.cancelled(cancellation.use)
    }
    for abandoned in items.abandoned { abandoned.channel.close() }
    for call in items.calls { call() }
  }

  func run(_ job: UnownedJob) { unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }

  private func runJobs() {
    for _ in 0..<Self.jobRoundsMax {
      if !loopBound.state.callbacks.isEmpty { performCallbacks() }
      guard !loopBound.state.jobs.isEmpty || !loopBound.state.callbacks.isEmpty else { return }
      runRound()
    }
  }

  /// Runs the jobs that are queued now. Jobs that they enqueue run in the next round.
  func runRound() {
    let count = loopBound.state.jobs.count
    for index in 0..<count { run(loopBound.state.jobs[index]) }
    if loopBound.state.jobs.count == count {
      for _ in 0..<count { loopBound.state.jobs.removeLast() }
    } else {
      loopBound.state.jobs.removeFirst(count)
    }
  }

  private func performCallbacks() {
    var callbacks: [any LoopCallback] = []
    swap(&callbacks, &loopBound.state.callbacks)
    for callback in callbacks { callback.perform() }
    // Performance: the storage is reused in the next rounds. Most often there was one callback.
    while !callbacks.isEmpty { callbacks.removeLast() }
    if loopBound.state.callbacks.isEmpty { swap(&callbacks, &loopBound.state.callbacks) }
  }

  private func expireDeadlines() {
    while loopBound.state.soonest <= loopBound.state.now,
      let due = loopBound.state.deadlines.popDue(at: loopBound.state.now)
    {
      loopBound.state.soonest = loopBound.state.deadlines.soonest
      let slot = loopBound.state.slots[Int(due.slot)]
      guard slot.registration == due.registration else { continue }
      slot.channel?.deadlineEntryExpired(due.deadline)
      slot.timer?()
    }
  }

  // MARK: - From any thread

  func post(_ cancellation: Cancellation) { inbox.add { $0.cancellations.append(cancellation) } }

  func post(abandoned channel: Channel) {
    let abandoned = Inbox.AbandonedChannel(channel: channel)
    inbox.add { $0.abandoned.append(abandoned) }
  }

  /// Runs `call` in the next tick of the loop's own thread.
  public func post(_ call: @escaping @Sendable () -> Void) { inbox.add { $0.calls.append(call) } }

  func post(_ callback: any LoopCallback) { inbox.add { $0.callbacks.append(callback) } }
}

extension ClientLoop: TaskExecutor {
  /// Performance: the runtime's own default goes through a protocol witness at each hop.
  public func asUnownedTaskExecutor() -> UnownedTaskExecutor { unsafe UnownedTaskExecutor(ordinary: self) }

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if isCurrent { return loopBound.state.jobs.append(job) }
    if inlineThread.load(ordering: .relaxed) == SystemThread.currentIdentity {
      inlineThread.store(0, ordering: .relaxed)
      // Safe although the loop may be released after that tick: the runtime holds no executor, and nothing here refers
      // to the loop then.
      if tickInline({ run(job) }) { return }
    }
    inbox.add { $0.jobs.append(job) }
  }
}
