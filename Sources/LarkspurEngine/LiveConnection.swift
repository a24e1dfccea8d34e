import LarkspurTransport

/// A connection that a program uses in both directions for as long as it likes: a WebSocket or a stream. It belongs to
/// its loop.
package protocol LiveConnection: AnyObject, Sendable {
  var loop: ClientLoop { get }
  /// The load that uses the connection, until it is complete. Completion handlers of operations and the calls of the load's
  /// delegate come in one order.
  var owner: AnyObject? { get }
  /// Starts an operation. The connection finishes it, at once or later.
  func start(_ operation: LiveOperation)
  /// Drops an operation whose caller no longer waits.
  func forget(_ operation: LiveOperation)
}
