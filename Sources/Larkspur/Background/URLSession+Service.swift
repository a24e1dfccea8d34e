import LarkspurTransfers

extension URLSession {
  /// Whether the user's transfer service carries the tasks of this background session out, so that they go on without the
  /// process.
  /// False until the session has found the service: see `getAllTasks`.
  package var isServed: Bool { core.background?.link is TransferClient }

  /// The tasks that have been resumed and are not over, without a wait for the delegate queue.
  package var presentTasks: [URLSessionTask] { core.knownTasks }
}
