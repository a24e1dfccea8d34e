// Steps that send event streams. The steps between them may wait for a signal, pause, or break the connection.

extension TestServer.Step {
  /// Sends the head of a response with an event stream.
  ///
  /// - Parameters:
  ///   - fields: Fields to add. Its `Content-Type` and `Cache-Control` replace the step's own.
  ///   - framing: `.chunked` or `.untilClose`; `.length` becomes `.chunked`. HTTP/1.0 clients get `.untilClose`.
  public static func startEvents(_ fields: TestServer.Fields = [:], framing: TestServer.Framing = .chunked()) -> Self {
    Self(.startEvents(fields, framing), "startEvents")
  }

  /// Sends events. Without a ``startEvents(_:framing:)`` before it, the step sends the head of the response first.
  ///
  /// - Parameters:
  ///   - events: The events, in order.
  ///   - lineEnd: The end of each line: LF, CRLF or CR.
  ///   - count: The number of bytes in one piece. Each piece is a separate chunk and a separate TCP segment.
  public static func events(
    _ events: [TestServer.StreamEvent], lineEnd: String = "\n", inPiecesOf count: Int = .max
  ) -> Self {
    Self(.events(events, lineEnd: lineEnd, pieceBytes: max(count, 1)), "events")
  }

  /// Ends the response: with the last chunk, after which the connection can take the next request, or by closing the
  /// connection.
  public static let endEvents = Self(.endEvents, "endEvents")
}
