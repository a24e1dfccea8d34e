extension TestServer {
  /// What a route answers. The server adds what the wire needs: the reason phrase, the framing fields, `Connection`.
  ///
  /// Whatever `fields` holds is sent as it stands. A `Content-Length` or `Transfer-Encoding` there replaces the server's
  /// own, true or not: after a false length the server closes the connection, as nothing could follow.
  public struct Response: Sendable {
    /// 200 to 999.
    public var status: Int
    /// Nil for the usual one; may be empty.
    public var reason: String?
    public var fields: Fields
    public var body: Body
    public var framing: Framing
    /// Behind the last chunk; `framing` must be chunked.
    public var trailers: Fields = [:]
    /// Sent before it, in order (RFC 9110, section 15.2).
    public var interim: [Interim] = []
    /// Ends the connection after this response, whatever the request asked for.
    public var closesConnection = false

    public init(
      status: Int = 200, fields: Fields = [:], body: Body = .bytes([]), framing: Framing = .length
    ) {
      self.status = status
      self.fields = fields
      self.body = body
      self.framing = framing
    }

    /// Plain text in UTF-8.
    public static func text(_ text: String, status: Int = 200) -> Response {
      Response(status: status, fields: ["Content-Type": "text/plain; charset=utf-8"], body: .text(text))
    }

    public static func json(_ value: JSON, status: Int = 200) -> Response {
      Response(status: status, fields: ["Content-Type": "application/json"], body: .text(value.text + "\n"))
    }

    /// The deterministic bytes of ``TestServer/content(count:)``.
    public static func content(count: Int) -> Response {
      Response(fields: ["Content-Type": "application/octet-stream"], body: .content(0..<max(count, 0)))
    }

    /// A redirect (302 unless told otherwise) to an absolute or a relative URL.
    public static func redirect(to location: String, status: Int = 302) -> Response {
      Response(status: status, fields: ["Location": location])
    }
  }

  /// A response before the response, such as 103 Early Hints.
  public struct Interim: Hashable, Sendable {
    /// 100 to 199.
    public var status: Int
    public var fields: Fields

    public init(status: Int, fields: Fields = [:]) {
      self.status = status
      self.fields = fields
    }
  }

  /// Where a response's body comes from.
  public enum Body: Sendable {
    case bytes([UInt8])
    /// A part of ``TestServer/content(_:)``, of any size, in constant memory.
    case content(Range<Int>)
    /// Written piece by piece on the connection's thread. `count`: how many bytes it will be, if that is known; if
    /// not, `.length` framing becomes chunked. An error that the closure throws resets the connection and is recorded
    /// in ``TestServer/failures``, except the writer's own.
    case stream(count: Int? = nil, @Sendable (BodyWriter) throws -> Void)

    public static func text(_ text: String) -> Body { .bytes(Array(text.utf8)) }

    /// How many bytes it has, if that is known beforehand.
    var count: Int? {
      switch self {
      case .bytes(let bytes): bytes.count
      case .content(let range): range.count
      case .stream(let count, _): count
      }
    }
  }

  /// How the end of a body is told (RFC 9112, section 6).
  public enum Framing: Hashable, Sendable {
    /// `Content-Length`.
    case length
    /// `Transfer-Encoding: chunked`, in chunks of at most so many bytes, each with the extension text behind its size
    /// (such as `;name=value`). A client of HTTP/1.0 gets `.untilClose` instead.
    case chunked(chunkBytesMax: Int = 16_384, chunkExtension: String = "")
    /// The connection's end is the body's.
    case untilClose
  }
}
