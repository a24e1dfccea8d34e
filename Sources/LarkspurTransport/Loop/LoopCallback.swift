/// A piece of work that a loop runs in a tick. It must not block. Performance: running a callback is cheaper than
/// resuming a task (decision 18).
public protocol LoopCallback: AnyObject, Sendable {
  /// Does the work, in a tick of the loop.
  func perform()
}

/// A hook at the end of a tick, so that several causes in one tick have one effect.
protocol EndOfTickHook: AnyObject {
  func tickWillEnd()
}

/// A result for another thread. The loop calls `complete()` after the tick that brought it, when the tick lock is free,
/// so that a thread resumed by it may submit at once and run an inline tick.
public protocol LoopCompletion: AnyObject, Sendable {
  func complete()
}
