import Dispatch

extension URLSession {
  /// Whether the user's transfer service carries the tasks of this background session out, so that they go on without the
  /// process.
  /// False until the session has found the service: see `getAllTasks`.
  package var isServed: Bool { core.background?.isServed ?? false }

  /// The tasks that have been resumed and are not over. Unlike `getAllTasks` it needs no turn of the delegate queue, and
  /// blocks while the executor of a background session is searched for: 5 s at most.
  package var presentTasks: [URLSessionTask] {
    let isOpen = DispatchSemaphore(value: 0)
    core.whenOpened { isOpen.signal() }
    isOpen.wait()
    return core.knownTasks
  }
}
