/// An event of an event stream.
package struct EventStreamEvent: Hashable, Sendable {
  /// The value of `event`, or `message` if that is absent or empty.
  package var type: String
  /// The values of `data`, joined by line feeds.
  package var data: String
  /// The latest ID that the stream has set, with this event or before it. Empty if there is none.
  package var lastEventID: String
  /// The value of `retry` in this event's lines.
  package var retryMilliseconds: UInt64?

  package init(type: String, data: String, lastEventID: String, retryMilliseconds: UInt64?) {
    self.type = type
    self.data = data
    self.lastEventID = lastEventID
    self.retryMilliseconds = retryMilliseconds
  }
}

/// Limits on the memory that an event stream can take. Each is inclusive.
package struct EventStreamLimits: Hashable, Sendable {
  /// The length of a line in bytes, without its ending. Without this limit, a line that never ends uses up the memory.
  /// The default leaves room for an image in base64, which servers send in one line.
  package var lineBytesMax = 16 << 20

  /// The size of an event's data in bytes, with the line feeds between its lines. Without this limit, an event that
  /// never ends uses up the memory, one short line after the other.
  package var eventBytesMax = 16 << 20

  package init() {}
}

/// The reason why an event stream cannot be read further.
package enum EventStreamError: Error, Hashable, Sendable {
  /// The peer sent a line of more bytes than `EventStreamLimits.lineBytesMax`.
  case lineTooLong(limit: Int)
  /// The peer sent an event with more data than `EventStreamLimits.eventBytesMax`.
  case eventTooLarge(limit: Int)
}

extension EventStreamError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .lineTooLong(let limit): "a line of the event stream is longer than \(limit) bytes"
    case .eventTooLarge(let limit): "the data of an event is larger than \(limit) bytes"
    }
  }
}
