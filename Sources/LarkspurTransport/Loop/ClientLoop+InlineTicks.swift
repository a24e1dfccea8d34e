import LarkspurIO
import Synchronization

/// Ticks on the threads that submit something. Waking a parked thread costs more than a request does.
extension ClientLoop {
  /// Has a callback performed on the loop.
  ///
  /// - Parameters:
  ///   - callback: The work. It waits for nothing.
  ///   - inline: Whether it may run on the calling thread while the loop's thread is parked. The caller then holds no lock.
  public func submit(_ callback: any LoopCallback, inline: Bool) {
    // The caller is inside a tick, and perhaps inside another callback.
    if isCurrent { return own.state.callbacks.append(callback) }
    guard inline, tickInline({ performInline(callback) }) else { return post(callback) }
  }

  /// Performs a callback, and the job that it has made if it made one. A callback that makes more has begun something larger,
  /// which runs on the loop's thread.
  private func performInline(_ callback: any LoopCallback) {
    callback.perform()
    if own.state.jobs.count == 1 { runRound() }
  }

  /// Lets the next job that the calling thread enqueues run on that thread at once.
  public func expectInlineJob() {
    if allowsInlineTicks, !isCurrent { inlineThread.store(SystemThread.currentIdentity, ordering: .relaxed) }
  }

  /// Runs one tick on the calling thread while the loop's own is parked. An inline tick takes no events and does not drain the
  /// inbox.
  ///
  /// - Returns: `false` if the loop's thread is not parked, or another thread has the tick lock. `work` has not been called then.
  func tickInline(_ work: () -> Void) -> Bool {
    // This look is cheaper than to try the lock where another thread holds it.
    guard allowsInlineTicks, inbox.isParked else { return false }
    var completions: [any LoopCompletion] = []
    let hasRun: Bool? = tickLock.withLockIfAvailable {
      defer { endTick(&completions) }
      guard inbox.isParked, !isStopping.load(ordering: .relaxed) else { return false }
      beginTick()
      own.state.isInline = true
      work()
      if !own.state.endOfTickHooks.isEmpty { callEndOfTickHooks() }
      // The loop's thread does the rest. It parked before there was any, and may have to wake sooner now.
      if hasWork || own.state.soonest < own.state.parkedUntil { inbox.wakeIfParked() }
      return true
    }
    for completion in completions { completion.complete() }
    return hasRun == true
  }

  /// Suspends the calling task until it runs on the loop's own thread. Sockets are opened there, in that thread's network
  /// namespace and with its rights.
  func leaveInlineTick() async {
    while own.state.isInline { await Waiter.suspend { waiter in post { waiter.wake() } } }
  }
}
