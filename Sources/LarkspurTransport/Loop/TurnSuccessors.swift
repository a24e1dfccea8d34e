/// Goes on with what a turn has brought: it wakes somebody on another thread. Who is woken may want the loop at once, and finds
/// it asleep by then; and all that a turn brings go together.
public protocol TurnSuccessor: AnyObject, Sendable {
  func turnIsOver()
  /// Of a caller in Swift's pool whom no guest waits for, if that is all whom it wakes: then it does not matter on which thread,
  /// nor who is first. (A number: how large Swift's own type is, the library says at run time.)
  var callersPriority: TaskPriority.RawValue? { get }
}

/// Who is to be called when a turn is over. Most often that is one, who needs no list.
struct TurnSuccessors {
  private var first: (any TurnSuccessor)?
  private var others: [any TurnSuccessor] = []
  /// Where there are several: how many of them wake callers in Swift's pool, and the highest priority of those.
  private(set) var callersCount = 0
  private(set) var callersPriority = TaskPriority.RawValue.min

  var isEmpty: Bool { first == nil }
  var count: Int { first == nil ? 0 : others.count + 1 }

  mutating func append(_ successor: any TurnSuccessor) {
    guard let first else { return first = successor }
    if others.isEmpty { count(first) }
    count(successor)
    others.append(successor)
  }

  /// Adds them to others that are still to be called.
  mutating func move(to earlier: inout TurnSuccessors) {
    if earlier.isEmpty { return swap(&earlier, &self) }
    if let first { earlier.append(first) }
    for successor in others { earlier.append(successor) }
    self = TurnSuccessors()
  }

  private mutating func count(_ successor: any TurnSuccessor) {
    guard let priority = successor.callersPriority else { return }
    callersCount += 1
    callersPriority = max(callersPriority, priority)
  }

  func call() { call { _ in true } }

  func callCallers() { call { $0.callersPriority != nil } }

  func callOthers() { if callersCount < count { call { $0.callersPriority == nil } } }

  private func call(where isMeant: (any TurnSuccessor) -> Bool) {
    if let first, isMeant(first) { first.turnIsOver() }
    for index in others.indices where isMeant(others[index]) { others[index].turnIsOver() }
  }
}
