import LarkspurBytes
import LarkspurHTTP

/// A request for a pool: what is sent, and how it may be.
package struct PoolRequest {
  package var head: RequestHead
  package var body: [UInt8] = []
  /// The larger one goes first.
  package var priority: UInt8 = 128
  /// For everything, from the wait for a connection to the last byte of the body.
  package var deadline = Deadline.never

  package init(_ head: RequestHead) { self.head = head }
}
