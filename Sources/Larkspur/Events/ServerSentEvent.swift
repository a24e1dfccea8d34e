import Foundation
import LarkspurHTTP

/// An event that a server has sent on an event stream (WHATWG HTML, section 9.2, "Server-sent events").
public struct ServerSentEvent: Hashable, Sendable {
  /// The last event ID: that of this event or, if the event has none, that of the latest one before it that has. `nil`
  /// if there is none, or if the server has set the empty ID.
  ///
  /// A program that resumes a stream by itself sends this ID in the field `Last-Event-ID`.
  public var id: String?
  /// The type, which is `message` if the server has not named one.
  public var event: String
  /// The data. Several lines of data are joined by line feeds.
  public var data: String
  /// How long the server asks clients to wait before they connect again, if this event says so. A
  /// ``URLSessionEventSource`` does so by itself.
  public var retry: Duration?

  /// Creates an event, for tests.
  public init(id: String? = nil, event: String = "message", data: String, retry: Duration? = nil) {
    self.id = id
    self.event = event
    self.data = data
    self.retry = retry
  }

  init(_ event: EventStreamEvent) {
    self.init(
      id: event.lastEventID.isEmpty ? nil : event.lastEventID, event: event.type, data: event.data,
      retry: event.retryMilliseconds.map { .milliseconds($0) })
  }
}
