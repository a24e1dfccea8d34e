import Foundation
import LarkspurTransport

/// A connection that a program uses in both directions for as long as it likes: a WebSocket or a stream. It belongs to
/// its loop.
protocol LiveConnection: AnyObject, Sendable {
  var loop: ClientLoop { get }
  /// Begins an operation. The connection finishes it, at once or later.
  func begin(_ operation: LiveOperation)
  /// Forgets an operation whose caller no longer waits.
  func forget(_ operation: LiveOperation)
}

/// The part of a load that uses the connection for another protocol than HTTP. It belongs to the load's loop.
protocol LiveLoad: AnyObject {
  /// Whether an HTTP request opens the connection.
  var beginsWithRequest: Bool { get }
  /// Adds the fields of the opening request.
  func complete(_ load: NetworkLoad) throws(URLError)
  /// Accepts the response to the opening request, or throws the error that ends the load.
  func admit(_ response: HTTPURLResponse) throws(URLError)
  /// Opens the connection and uses it to its end.
  func run(for transfer: Transfer) async throws(URLError)
  /// Fails the operations that are left, when the task is complete.
  func ended(_ failure: (any Error)?)
}

extension Transfer {
  /// Lets another protocol use the connection, until its end.
  func runLive() async throws(URLError) {
    guard let live else { throw Self.inconsistency }
    try await live.run(for: self)
    enter(.complete)
  }
}
