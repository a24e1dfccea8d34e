/// What a turn has brought for other threads. A successor is called after the turn, when the lock is free: a thread that it wakes
/// may submit work at once, and finds the loop asleep.
public protocol TurnSuccessor: AnyObject, Sendable {
  func turnIsOver()
}

extension ClientLoop {
  /// Calls the successors of the loop's own turns, in the order in which they came.
  func callSuccessors() {
    for successor in waiting.state.successors { successor.turnIsOver() }
    waiting.state.successors.removeAll(keepingCapacity: true)
  }

  /// Calls `successor` when the turn is over.
  public func callAfterTurn(_ successor: any TurnSuccessor) { own.state.successors.append(successor) }
}
