import LarkspurIO

/// What follows a turn: those who go on with what it has brought.
extension ClientLoop {
  /// A thread that is woken may take the processor at once, do its bit and sleep again. So callers of Swift's pool whose results
  /// have come together are woken together, by one task there: the loop wakes one thread for them, and not one after the other.
  func callSuccessors() {
    var successors = TurnSuccessors()
    swap(&successors, &waiting.state.successors)
    guard successors.callersCount > 1 else { return successors.call() }
    successors.callOthers()
    Task.detached(priority: TaskPriority(rawValue: successors.callersPriority)) { [successors] in
      successors.callCallers()
    }
  }

  /// Calls `successor` when the turn is over.
  public func callAfterTurn(_ successor: any TurnSuccessor) { own.state.successors.append(successor) }
}
