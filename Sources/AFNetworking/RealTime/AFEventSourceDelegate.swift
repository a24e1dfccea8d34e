import Foundation
import Larkspur

/// The calls that an event source makes to its delegate, on ``AFEventSource/completionQueue``. Each method has a
/// default implementation that does nothing.
public protocol AFEventSourceDelegate: AnyObject {
  /// A connection has opened: the first one, or a later one in place of a connection that has ended.
  func eventSourceDidOpen(_ source: AFEventSource)

  /// An event of any type has arrived. The listeners are called after this call.
  func eventSource(_ source: AFEventSource, didReceiveMessage event: AFServerSentEvent)

  /// The source is closed, because the program has closed it or the server has answered with status 204. The source
  /// does not connect again by itself.
  func eventSourceDidClose(_ source: AFEventSource)

  /// The source has failed, and is closed. This call comes in place of ``eventSourceDidClose(_:)``. Errors after which
  /// the source connects again are not reported.
  func eventSource(_ source: AFEventSource, didFailWithError error: any Error)
}

extension AFEventSourceDelegate {
  /// Does nothing.
  public func eventSourceDidOpen(_ source: AFEventSource) {}

  /// Does nothing.
  public func eventSource(_ source: AFEventSource, didReceiveMessage event: AFServerSentEvent) {}

  /// Does nothing.
  public func eventSourceDidClose(_ source: AFEventSource) {}

  /// Does nothing.
  public func eventSource(_ source: AFEventSource, didFailWithError error: any Error) {}
}
