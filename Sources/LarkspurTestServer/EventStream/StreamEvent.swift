extension TestServer {
  /// An event of an event stream (`text/event-stream`), as a server writes it.
  ///
  /// ```swift
  /// server.enqueue([
  ///   .expectRequest, .events(["hello", .init("{}", event: "update", id: "7")]), .wait(proceed),
  ///   .events([.init(comment: "still here"), .init(retry: 10), .raw("data: cut off")]), .endEvents,
  /// ])
  /// ```
  public struct StreamEvent: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The data. Each of its lines is a `data` field. Without data, clients dispatch no event.
    public var data: String?
    /// The event's type.
    public var event: String?
    /// The event's ID, which clients send as `Last-Event-ID` when they reconnect.
    public var id: String?
    /// The time in milliseconds that clients wait before they reconnect.
    public var retry: Int?
    /// A line that clients ignore. An event with nothing else keeps connections alive.
    public var comment: String?
    /// The text to send in place of the fields.
    private var rawText: String?

    /// Creates an event of these fields. Fields that are `nil` are not sent.
    public init(
      _ data: String? = nil, event: String? = nil, id: String? = nil, retry: Int? = nil, comment: String? = nil
    ) {
      self.data = data
      self.event = event
      self.id = id
      self.retry = retry
      self.comment = comment
    }

    /// Creates an event that has only data.
    public init(stringLiteral value: String) {
      self.init(value)
    }

    /// Returns text that is sent as written, without an empty line behind it: wrong lines, a byte order mark, half of
    /// an event.
    public static func raw(_ text: String) -> StreamEvent {
      var event = StreamEvent()
      event.rawText = text
      return event
    }

    /// Returns the lines of the event, the empty one at its end included.
    ///
    /// - Parameter lineEnd: The end of each line: LF, CRLF or CR.
    public func text(lineEnd: String = "\n") -> String {
      if let rawText { return rawText }
      var lines: [String] = []
      if let comment { lines.append(": \(comment)") }
      if let event { lines.append("event: \(event)") }
      if let id { lines.append("id: \(id)") }
      if let retry { lines.append("retry: \(retry)") }
      if let data {
        // Swift takes CRLF for one character.
        let parts = data.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r" || $0 == "\r\n" }
        lines += parts.map { "data: \($0)" }
      }
      return (lines + [""]).map { $0 + lineEnd }.joined()
    }
  }
}
