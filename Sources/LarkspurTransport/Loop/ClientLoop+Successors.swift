import LarkspurIO

/// What follows a turn: those who go on with what it has brought.
extension ClientLoop {
  /// Whether something has come while callers waited for others: they are called after the next turn, or a later one.
  func findsMoreInAPause() -> Bool {
    guard waiting.state.successors.areCallers,
      waiting.state.coalescing.pauses(before: waiting.state.successors.count)
    else { return false }
    kernel.pause(nanoseconds: WakeCoalescing.nanoseconds)
    wait(milliseconds: 0)
    return waiting.state.eventCount > 0
  }

  /// A thread that is woken may take the processor at once, do its bit and sleep again. So callers of Swift's pool whose results
  /// have come together are woken together, by one task there: the loop wakes one thread for them, and not one after the other.
  func callSuccessors() {
    var successors = TurnSuccessors()
    swap(&successors, &waiting.state.successors)
    waiting.state.coalescing.endPause(with: successors.count)
    guard successors.callersCount > 1 else { return successors.call() }
    successors.callOthers()
    Task.detached(priority: TaskPriority(rawValue: successors.callersPriority)) { [successors] in
      successors.callCallers()
    }
  }

  /// Calls `successor` when the turn is over: at once, or a moment later, together with others.
  public func callAfterTurn(_ successor: any TurnSuccessor) { own.state.successors.append(successor) }

  /// How many requests are on their way. For tests: what is left behind is a leak.
  public var requestsOnTheirWay: Int { own.state.requestCount }

  /// So many more are, or so many less.
  func countRequests(_ change: Int) { own.state.requestCount += change }
}
