import Foundation
import LarkspurEngine

/// The part of a load that uses the connection for another protocol than HTTP. It belongs to the load's loop.
///
/// Performance: a load that waits for an event of its connection has no task of Swift's, which takes more memory than
/// all else of an idle connection. The event calls `Load.perform`, and the load gets a task again.
protocol LiveLoad: AnyObject {
  /// Whether an HTTP request opens the connection.
  var beginsWithRequest: Bool { get }
  /// Adds the fields of the opening request.
  func addFields(to load: NetworkLoad) throws(URLError)
  /// Accepts the response to the opening request, or throws the error that ends the load.
  func admit(_ response: HTTPURLResponse) throws(URLError)
  /// Whether the connection is open and has no events yet.
  var awaitsEvent: Bool { get }
  /// Opens the connection, or handles the event that has arrived.
  ///
  /// - Returns: Whether the connection is over.
  func proceed(for load: Load) async throws(URLError) -> Bool
  /// Ends the connection, whose event follows, because the load has been interrupted.
  func interrupt(_ error: URLError)
  /// Fails the operations that are left, when the task is complete.
  func ended(_ failure: (any Error)?)
}

extension Load {
  /// Why the stages stop while another protocol uses the connection.
  func stop(of live: any LiveLoad) -> Stop { live.awaitsEvent ? .wait(.event) : .need(.live) }

  /// Lets another protocol use the connection, up to its end or to the wait for an event.
  func runLive() async throws(URLError) {
    guard let live else { throw Self.inconsistency }
    cancelWait = nil
    guard try await !live.proceed(for: self) else { return enter(.complete) }
    // The load may have been interrupted while it did not wait for the connection, as in a call of the delegate.
    if let interruption { return live.interrupt(interruption) }
    cancelWait = { [self] in live.interrupt(interruption ?? .make(.cancelled)) }
  }
}

extension LiveOperation {
  /// Calls a completion handler on the delegate queue, after all calls for earlier events of the connection.
  ///
  /// - Parameter owner: The load of the connection, or `nil` if the operation has reached none or the load is complete.
  func call(_ handler: @escaping @Sendable () -> Void, on queue: DelegateQueue?, for owner: AnyObject?) {
    // In the tick, as the delegate's calls are: a call that the connection causes later does not overtake this one.
    guard let load = owner as? Load else {
      queue?.insist(handler)
      return
    }
    load.calls.insist(handler)
  }
}
