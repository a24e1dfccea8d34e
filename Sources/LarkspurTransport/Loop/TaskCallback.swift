/// A callback that resumes a task: the way of a task to wait by a call that subscribes a callback. It belongs to the
/// loop's thread.
public final class TaskCallback: LoopCallback, @unchecked Sendable {
  private var continuation: TaskContinuation?
  /// Whether the callback has run and no wait has noticed it.
  private var hasRun = false

  /// Repeats `take` until it returns a value, and suspends the task in between. Call it in a task on the loop.
  ///
  /// - Parameter take: Returns `nil` if nothing can be had without waiting. If it has got a callback, it has then
  ///   subscribed that callback.
  @inline(__always)
  public static func awaiting<T>(
    _ take: ((any LoopCallback)?) throws(TransportError) -> T?
  ) async throws(TransportError) -> T {
    // Performance: what is there already needs no callback.
    if let taken = try take(nil) { return taken }
    let callback = TaskCallback()
    while true {
      if let taken = try take(callback) { return taken }
      await callback.wait()
    }
  }

  private func wait() async {
    if !hasRun { await TaskContinuation.suspend { continuation = $0 } }
    hasRun = false
  }

  public func perform() {
    hasRun = true
    continuation.take()?.resume()
  }
}
