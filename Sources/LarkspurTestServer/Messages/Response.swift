extension TestServer {
  /// A route's response. The server adds the reason phrase, the framing fields and `Connection`.
  ///
  /// The server sends everything in `fields` unchanged. A `Content-Length` or `Transfer-Encoding` there replaces the
  /// server's own, even if it is wrong; after a wrong length the server closes the connection, as nothing could follow.
  public struct Response: Sendable {
    /// The status, from 200 to 999.
    public var status: Int
    /// The reason phrase, which may be empty, or `nil` for the standard one.
    public var reason: String?
    /// The fields of the head, sent unchanged.
    public var fields: Fields
    /// The body. A response to HEAD, a 204 and a 304 are sent without it.
    public var body: Body
    /// The way in which the end of the body is marked.
    public var framing: Framing
    /// The fields behind the last chunk. They are sent only if `framing` is chunked.
    public var trailers: Fields = [:]
    /// Interim responses to send before this one, in order (RFC 9110, section 15.2).
    public var interim: [Interim] = []
    /// Whether the connection ends after this response, whatever the request's fields are.
    public var closesConnection = false

    /// Creates a response, an empty 200 by default.
    public init(
      status: Int = 200, fields: Fields = [:], body: Body = .bytes([]), framing: Framing = .length
    ) {
      self.status = status
      self.fields = fields
      self.body = body
      self.framing = framing
    }

    /// Returns a response of plain text in UTF-8.
    public static func text(_ text: String, status: Int = 200) -> Response {
      Response(status: status, fields: ["Content-Type": "text/plain; charset=utf-8"], body: .text(text))
    }

    /// Returns a response of JSON text in UTF-8, with a line break at its end.
    public static func json(_ value: JSON, status: Int = 200) -> Response {
      Response(status: status, fields: ["Content-Type": "application/json"], body: .text(value.text + "\n"))
    }

    /// Returns a response with the deterministic bytes of ``TestServer/content(count:)``.
    public static func content(count: Int) -> Response {
      Response(fields: ["Content-Type": "application/octet-stream"], body: .content(0..<max(count, 0)))
    }

    /// Returns a redirect, with status 302 by default, to an absolute or a relative URL.
    public static func redirect(to location: String, status: Int = 302) -> Response {
      Response(status: status, fields: ["Location": location])
    }
  }

  /// An interim response, such as 103 Early Hints.
  public struct Interim: Hashable, Sendable {
    /// The status, from 100 to 199.
    public var status: Int
    /// The fields of the head, sent unchanged.
    public var fields: Fields

    /// Creates an interim response.
    public init(status: Int, fields: Fields = [:]) {
      self.status = status
      self.fields = fields
    }
  }

  /// The source of a response's body.
  public enum Body: Sendable {
    /// These bytes.
    case bytes([UInt8])
    /// A part of ``TestServer/content(_:)``, of any size, in constant memory.
    case content(Range<Int>)
    /// A body that the closure writes piece by piece on the connection's thread.
    ///
    /// `count` is the number of bytes, if known. If it is `nil`, `.length` framing becomes chunked. An error that the
    /// closure throws, other than the writer's own, is recorded in ``TestServer/failures`` and resets the connection;
    /// in a script it fails the step ``TestServer/Step/respond(_:)`` instead.
    case stream(count: Int? = nil, @Sendable (BodyWriter) throws -> Void)

    /// Returns a body of text in UTF-8.
    public static func text(_ text: String) -> Body { .bytes(Array(text.utf8)) }

    /// The number of bytes, or `nil` if not known beforehand.
    var count: Int? {
      switch self {
      case .bytes(let bytes): bytes.count
      case .content(let range): range.count
      case .stream(let count, _): count
      }
    }
  }

  /// The way in which the end of a body is marked (RFC 9112, section 6).
  public enum Framing: Hashable, Sendable {
    /// `Content-Length`.
    case length
    /// `Transfer-Encoding: chunked`, in chunks of at most `chunkBytesMax` bytes. Each has `chunkExtension` behind its
    /// size, such as `;name=value`. An HTTP/1.0 client gets `.untilClose` instead.
    case chunked(chunkBytesMax: Int = 16_384, chunkExtension: String = "")
    /// The body ends with the connection.
    case untilClose
  }
}
