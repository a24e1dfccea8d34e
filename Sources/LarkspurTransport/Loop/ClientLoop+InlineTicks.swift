import LarkspurIO
import Synchronization

/// Ticks on submitting threads. Performance: waking a parked thread costs more than a request does (decisions 15 and
/// 26).
extension ClientLoop {
  /// Runs a callback on the loop.
  ///
  /// - Parameters:
  ///   - callback: The work. It must not block.
  ///   - inline: Whether the callback may run on the calling thread while the loop's thread is parked. If so, the
  ///     caller must hold no lock.
  public func submit(_ callback: any LoopCallback, inline: Bool) {
    // The caller is inside a tick, and perhaps inside another callback.
    if isCurrent { return loopBound.state.callbacks.append(callback) }
    guard inline, tickInline({ performInline(callback) }) else { return post(callback) }
  }

  /// Runs a callback, and then the job that it has enqueued if there is exactly one. Several jobs are left to the
  /// loop's thread.
  private func performInline(_ callback: any LoopCallback) {
    callback.perform()
    if loopBound.state.jobs.count == 1 { runRound() }
  }

  /// Lets the next job that the calling thread enqueues run on that thread at once.
  public func expectInlineJob() {
    if allowsInlineTicks, !isCurrent { inlineThread.store(SystemThread.currentIdentity, ordering: .relaxed) }
  }

  /// Runs one tick on the calling thread if the loop's own thread is parked. An inline tick takes no events and does
  /// not drain the inbox.
  ///
  /// - Returns: `false` if the loop has no inline ticks or is stopping, if its thread is not parked, or if another
  ///   thread holds the tick lock. `work` has then not been called.
  func tickInline(_ work: () -> Void) -> Bool {
    // Performance: this check is cheaper than an attempt to take a lock that another thread holds.
    guard allowsInlineTicks, inbox.isParked else { return false }
    var completions: [any LoopCompletion] = []
    let hasRun: Bool? = tickLock.withLockIfAvailable {
      defer { endTick(&completions) }
      guard inbox.isParked, !isStopping.load(ordering: .relaxed) else { return false }
      startTick()
      loopBound.state.isInline = true
      work()
      if !loopBound.state.endOfTickHooks.isEmpty { callEndOfTickHooks() }
      // The loop's thread does the rest. The deadline for which its timer was set when it parked may now be too late.
      if hasWork || loopBound.state.soonest < loopBound.state.parkedUntil { inbox.wakeIfParked() }
      return true
    }
    for completion in completions { completion.complete() }
    return hasRun == true
  }

  /// Suspends the calling task until it runs on the loop's own thread. Sockets are opened on that thread, because they
  /// belong to the network namespace and have the rights of the thread that opens them.
  func leaveInlineTick() async {
    while loopBound.state.isInline { await TaskContinuation.suspend { continuation in post { continuation.resume() } } }
  }
}
