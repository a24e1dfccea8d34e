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
      let body: HTTPClient.ResponseBody
      let bytesMax: Int
      private var piece: [UInt8] = []
      private var position = 0
      private var line: [UInt8] = []
      /// Whether the latest line ended with CR, so that an LF belongs to its ending.
      private var skipsLineFeed = false

      init(body: HTTPClient.ResponseBody, bytesMax: Int) {
        self.body = body
        self.bytesMax = bytesMax
      }

      /// Returns the next line, or `nil` at the end of the body.
      public mutating func next() async throws(HTTPClientError) -> String? { try await next(isolation: #isolation) }

      /// Returns the next line, or `nil` at the end of the body.
      public mutating func next(isolation actor: isolated (any Actor)?) async throws(HTTPClientError) -> String? {
        while true {
          if position == piece.count {
            guard let next = try await body.load.next() else { return line.isEmpty ? nil : takeLine() }
            piece = next
            position = 0
          }
          if skipsLineFeed, piece[position] == UInt8(ascii: "\n") { position += 1 }
          skipsLineFeed = false
          let end = Scan.endOfLine(in: piece.span, from: position, to: piece.count)
          guard end - position <= bytesMax - line.count else {
            throw body.tooLarge("a line of the body is longer than \(bytesMax) bytes")
          }
          line += piece[position..<end]
          position = end
          guard end < piece.count else { continue }
          skipsLineFeed = piece[end] == UInt8(ascii: "\r")
          position += 1
          return takeLine()
        }
      }

      private mutating func takeLine() -> String {
        defer { line.removeAll(keepingCapacity: true) }
        return String(decoding: line, as: UTF8.self)
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
      let body: HTTPClient.ResponseBody
      private var parser: EventStreamParser
      private var piece: [UInt8] = []
      private var position = 0

      init(body: HTTPClient.ResponseBody, lastEventID: String) {
        self.body = body
        parser = EventStreamParser(lastEventID: lastEventID)
      }

      /// Returns the next event, or `nil` at the end of the body.
      public mutating func next() async throws(HTTPClientError) -> Event? { try await next(isolation: #isolation) }

      /// Returns the next event, or `nil` at the end of the body.
      public mutating func next(isolation actor: isolated (any Actor)?) async throws(HTTPClientError) -> Event? {
        while true {
          do throws(EventStreamError) {
            if let event = try parse() {
              return Event(type: event.type, data: event.data, lastEventID: event.lastEventID)
            }
          } catch {
            throw body.tooLarge("\(error)")
          }
          guard let next = try await body.load.next() else { return nil }
          piece = next
          position = 0
        }
      }

      private mutating func parse() throws(EventStreamError) -> EventStreamEvent? {
        let piece = piece
        var position = position
        defer { self.position = position }
        return try parser.next(in: piece.span, from: &position)
      }
    }
  }
}
