extension TestServer {
  /// A route's event stream, which continues where the client's `Last-Event-ID` says.
  ///
  /// ```swift
  /// var stream = TestServer.EventStream(["one", "two", "three"])
  /// stream.eventsPerResponse = 2                        // then the response ends, and the client reconnects
  /// stream.retry = 1                                    // after one millisecond
  /// server.eventStream("/feed", stream)                 // the third request gets a 204: there is no more
  /// ```
  ///
  /// Events without an ID get their number, from 1 on. A request whose `Last-Event-ID` is unknown or missing gets the
  /// stream from its beginning. A request after the last event gets a 204, after which clients do not reconnect.
  public struct EventStream: Hashable, Sendable {
    /// The way in which each response ends.
    public enum Ending: Hashable, Sendable {
      /// In order. The connection can take the next request.
      case response
      /// The connection closes without the last chunk.
      case close
      /// The connection is reset. Events that the client's kernel has not yet received are lost, and come again.
      case reset
    }

    /// All events of the stream, in order.
    public var events: [StreamEvent]
    /// The maximum number of events in one response, or `nil` for no maximum.
    public var eventsPerResponse: Int?
    /// The reconnection time in milliseconds that each response begins with, or `nil` for none.
    public var retry: Int?
    /// The number of bytes in one chunk and TCP segment: with 1 the stream drips. `nil` sends all events at once.
    public var pieceBytes: Int?
    /// The way in which each response ends.
    public var ending: Ending

    /// Creates a stream. By default one response has all events, and ends in order.
    public init(
      _ events: [StreamEvent], eventsPerResponse: Int? = nil, retry: Int? = nil, pieceBytes: Int? = nil,
      ending: Ending = .response
    ) {
      self.events = events
      self.eventsPerResponse = eventsPerResponse
      self.retry = retry
      self.pieceBytes = pieceBytes
      self.ending = ending
    }

    /// Returns the response to a request, as a script.
    func answer(to request: Request) -> Router.Answer {
      var numbered = events
      for index in numbered.indices where numbered[index].id == nil { numbered[index].id = String(index + 1) }
      var rest = numbered[...]
      if let lastID = request.fields["Last-Event-ID"], let index = numbered.lastIndex(where: { $0.id == lastID }) {
        rest = numbered[(index + 1)...]
      }
      if rest.isEmpty { return .response(Response(status: 204)) }
      if request.method == "HEAD" {
        return .response(Response(fields: ["Content-Type": "text/event-stream"], framing: .chunked()))
      }
      let opening = retry.map { [StreamEvent(retry: $0)] } ?? []
      var steps: [Step] = [
        .events(opening + rest.prefix(max(eventsPerResponse ?? .max, 1)), inPiecesOf: pieceBytes ?? .max)
      ]
      switch ending {
      case .response:
        steps.append(.endEvents)
        if request.asksToKeepAlive, request.version != "HTTP/1.0" { steps.append(.serveRoutes) }
      case .close: steps.append(.close)
      case .reset: steps.append(.reset)
      }
      return .script(Script(steps))
    }
  }
}
