import LarkspurTransfers

extension URLSession {
  /// Whether the user's transfer service carries the tasks of this background session out, so that they go on without the
  /// process.
  package var isServed: Bool { core.background?.link is TransferClient }
}
