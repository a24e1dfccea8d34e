import LarkspurBytes
import LarkspurHTTP

extension HTTPClient.ResponseBody {
  /// The lines of the body as text. A line ends with LF, CR or CR LF, and does not contain its ending. Empty lines count.
  /// Invalid UTF-8 becomes U+FFFD.
  ///
  /// - Parameter bytesMax: The largest number of bytes in a line. 64 KiB by default.
  /// - Returns: The lines, which throw ``HTTPClientError/Code/tooLarge`` for a longer one.
  public func lines(upTo bytesMax: Int = 64 * 1024) -> Lines { Lines(body: self, bytesMax: bytesMax) }

  /// The events of a body that is an event stream (WHATWG HTML, section 9.2, "Server-sent events"). An event or a line
  /// beyond 16 MiB throws ``HTTPClientError/Code/tooLarge``. Nothing connects again when the stream ends.
  ///
  /// - Parameter lastEventID: The ID of the latest event of an earlier connection, which events without an ID have.
  public func events(after lastEventID: String = "") -> Events { Events(body: self, lastEventID: lastEventID) }

  /// The lines of a body.
  public struct Lines: AsyncSequence {
    public typealias Element = String
    public typealias Failure = HTTPClientError

    let body: HTTPClient.ResponseBody
    let bytesMax: Int

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: body, bytesMax: bytesMax) }

    /// The reader of the lines.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private var reader: PieceReader<LineCutter>

      init(body: HTTPClient.ResponseBody, bytesMax: Int) {
        reader = PieceReader(body: body, parser: LineCutter(lineBytesMax: bytesMax))
      }

      /// Returns the next line, or `nil` at the end of the body.
      public mutating func next() async throws(HTTPClientError) -> String? { try await next(isolation: #isolation) }

      /// Returns the next line, or `nil` at the end of the body.
      public mutating func next(isolation actor: isolated (any Actor)?) async throws(HTTPClientError) -> String? {
        try await reader.next()
      }
    }
  }

  /// An event of an event stream.
  public struct Event: Hashable, Sendable {
    /// The value of `event`, or `message` if that is absent or empty.
    public var type: String
    /// The values of `data`, joined by line feeds.
    public var data: String
    /// The latest ID that the stream has set, with this event or before it. Empty if there is none.
    public var lastEventID: String

    /// Creates an event.
    public init(type: String, data: String, lastEventID: String) {
      self.type = type
      self.data = data
      self.lastEventID = lastEventID
    }
  }

  /// The events of a body.
  public struct Events: AsyncSequence {
    public typealias Element = Event
    public typealias Failure = HTTPClientError

    let body: HTTPClient.ResponseBody
    let lastEventID: String

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: body, lastEventID: lastEventID) }

    /// The reader of the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
      private var reader: PieceReader<EventStreamParser>

      init(body: HTTPClient.ResponseBody, lastEventID: String) {
        reader = PieceReader(body: body, parser: EventStreamParser(lastEventID: lastEventID))
      }

      /// Returns the next event, or `nil` at the end of the body.
      public mutating func next() async throws(HTTPClientError) -> Event? { try await next(isolation: #isolation) }

      /// Returns the next event, or `nil` at the end of the body.
      public mutating func next(isolation actor: isolated (any Actor)?) async throws(HTTPClientError) -> Event? {
        try await reader.next()
      }
    }
  }
}

/// A parser of pieces of any size.
private protocol PieceParser {
  associatedtype Element
  associatedtype Failure: Error

  /// Returns the next element, or `nil` if the whole piece has been read.
  mutating func element(in bytes: Span<UInt8>, from position: inout Int) throws(Failure) -> Element?
  /// Returns the element that the end of the body completes, or `nil` if there is none.
  mutating func last() -> Element?
  /// The text of an error.
  func description(of failure: Failure) -> String
}

/// Reads the pieces of a body with a parser.
private struct PieceReader<Parser: PieceParser> {
  let body: HTTPClient.ResponseBody
  var parser: Parser
  private var piece: [UInt8] = []
  private var position = 0

  init(body: HTTPClient.ResponseBody, parser: Parser) {
    self.body = body
    self.parser = parser
  }

  /// Returns the next element, or `nil` at the end of the body.
  mutating func next() async throws(HTTPClientError) -> Parser.Element? {
    while true {
      if let element = try parse() { return element }
      guard let next = try await body.load.next() else { return parser.last() }
      piece = next
      position = 0
    }
  }

  private mutating func parse() throws(HTTPClientError) -> Parser.Element? {
    let piece = piece
    var position = position
    defer { self.position = position }
    do throws(Parser.Failure) {
      return try parser.element(in: piece.span, from: &position)
    } catch {
      throw body.tooLarge(parser.description(of: error))
    }
  }
}

extension LineCutter: PieceParser {
  fileprivate mutating func element(in bytes: Span<UInt8>, from position: inout Int) throws(TooLong) -> String? {
    guard let part = try next(in: bytes, from: &position) else { return nil }
    let line = take(endingWith: bytes.extracting(part))
    let text = String(decoding: line, as: UTF8.self)
    reuse(consume line)
    return text
  }

  fileprivate mutating func last() -> String? {
    beginning.isEmpty ? nil : String(decoding: take(endingWith: Span()), as: UTF8.self)
  }

  fileprivate func description(of failure: TooLong) -> String {
    "a line of the body is longer than \(lineBytesMax) bytes"
  }
}

extension EventStreamParser: PieceParser {
  fileprivate mutating func element(
    in bytes: Span<UInt8>, from position: inout Int
  ) throws(EventStreamError) -> HTTPClient.ResponseBody.Event? {
    try next(in: bytes, from: &position).map {
      HTTPClient.ResponseBody.Event(type: $0.type, data: $0.data, lastEventID: $0.lastEventID)
    }
  }

  fileprivate func last() -> HTTPClient.ResponseBody.Event? { nil }

  fileprivate func description(of failure: EventStreamError) -> String { "\(failure)" }
}
