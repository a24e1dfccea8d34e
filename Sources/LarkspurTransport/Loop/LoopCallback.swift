/// Work that a loop calls, and that returns without waiting. A callback costs a tenth of what waking a task costs.
public protocol LoopCallback: AnyObject, Sendable {
  /// Runs in a tick of the loop.
  func perform()
}

/// Work at the end of a tick, so that several causes in one tick have one effect.
protocol EndOfTickHook: AnyObject {
  func tickWillEnd()
}

/// A result for another thread. The loop calls `complete()` behind the tick that brought it, when the tick's lock is free: a
/// thread that is resumed there may submit at once, and runs an inline tick.
public protocol LoopCompletion: AnyObject, Sendable {
  func complete()
}
