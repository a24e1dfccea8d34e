import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

extension HTTPClient {
  /// A request: a URL, a method, fields and a body.
  public struct Request: Sendable {
    /// The method in its exact spelling (RFC 9110 9.1).
    public var method: String
    /// The URL as text: `http` or `https`, with a host. It is parsed once, when the request is made.
    public var url: String
    /// The request's own fields, in the order in which they are sent. `Content-Length` and `Transfer-Encoding` follow from
    /// the body, and are not taken from here.
    public var fields: FieldList
    /// The body. A GET has none.
    public var body: RequestBody

    /// Creates a request. Nothing of it is checked before it is sent.
    public init(_ url: String, method: String = "GET", fields: FieldList = [], body: RequestBody = .none) {
      self.method = method
      self.url = url
      self.fields = fields
      self.body = body
    }
  }

  /// The body of a request.
  public struct RequestBody: Sendable {
    enum Content: Sendable {
      case none
      case bytes([UInt8])
      case file(String)
      case produced(length: Int?, @Sendable (RequestWriter) async throws -> Void)
    }

    let content: Content
    /// Whether the body can be sent a second time, for a redirection that keeps the method.
    let isRestartable: Bool

    var isNone: Bool { if case .none = content { true } else { false } }

    /// No body.
    public static let none = RequestBody(content: .none, isRestartable: true)

    /// Bytes in memory.
    public static func bytes(_ bytes: [UInt8]) -> RequestBody {
      RequestBody(content: .bytes(bytes), isRestartable: true)
    }

    /// Text in UTF-8.
    public static func text(_ text: String) -> RequestBody { bytes(Array(text.utf8)) }

    /// The content of a regular file, which goes from the file to the socket by `sendfile`, without TLS. If the file
    /// changes while it is sent, the request fails.
    public static func file(_ path: String) -> RequestBody {
      RequestBody(content: .file(path), isRestartable: true)
    }

    /// The bytes that a closure writes until it returns. The closure runs in a task, beside the response; that task is
    /// cancelled when the server needs no more of the body. An error that it throws fails the request.
    ///
    /// - Parameters:
    ///   - length: The number of bytes, or `nil` to send the body in chunks.
    ///   - produce: May be called again, for a redirection that keeps the body: it then begins from the start.
    public static func produced(
      length: Int? = nil, _ produce: @escaping @Sendable (RequestWriter) async throws -> Void
    ) -> RequestBody {
      RequestBody(content: .produced(length: length, produce), isRestartable: true)
    }

    /// The bytes of an asynchronous sequence, which is iterated once. A redirection that keeps the body therefore fails.
    ///
    /// - Parameters:
    ///   - pieces: The pieces of the body, of any size. An error that the sequence throws fails the request.
    ///   - length: The number of bytes, or `nil` to send the body in chunks.
    public static func sequence<S: AsyncSequence & Sendable>(
      _ pieces: S, length: Int? = nil
    ) -> RequestBody where S.Element == [UInt8] {
      RequestBody(
        content: .produced(length: length) { writer in for try await piece in pieces { try await writer.write(piece) }
        },
        isRestartable: false)
    }
  }

  /// The writer of a request's body. The closure of ``RequestBody/produced(length:_:)`` gets one.
  public struct RequestWriter: Sendable {
    let writer: BodyWriter

    /// Sends the next piece. Returns when there is room for another one: the memory for unsent bytes is bounded.
    ///
    /// - Throws: ``HTTPClientError/Code/cancelled`` if the server needs no more of the body.
    public func write(_ piece: [UInt8]) async throws(HTTPClientError) {
      do throws(TransportError) {
        try await writer.write(piece)
      } catch {
        throw HTTPClientError(error, url: "")
      }
    }

    /// Adds a trailer field to a body that is sent in chunks. A field that cannot be sent fails the request when the body
    /// ends.
    public func trailer(_ name: String, _ value: String) async { await writer.trailer(name, value) }
  }
}

extension HTTPClient.RequestBody {
  /// Returns the body for the transport, and how its length is announced.
  func transportBody(url: String) throws(HTTPClientError) -> (
    LarkspurTransport.RequestBody, LarkspurHTTP.RequestWriter.Body
  ) {
    switch content {
    case .none: return (.none, .none)
    case .bytes(let bytes): return (.bytes(bytes), .length(UInt(bytes.count)))
    case .file(let path):
      do throws(Errno) {
        let file = try OpenFile(readingRegular: path)
        let length = try file.status().size
        return (.file(file, offset: 0, length: length), .length(UInt(length)))
      } catch {
        throw HTTPClientError(.bodyFailed, "the file \(path) cannot be read: \(error)", url: url)
      }
    case .produced(let length, let produce):
      if let length, length < 0 { throw HTTPClientError(.invalidRequest, "a body has no negative length", url: url) }
      let body = LarkspurTransport.RequestBody.produced(length: length) { writer in
        // The producer is the program's code, and may block: it does not run on the loop's thread.
        try await withTaskExecutorPreference(globalConcurrentExecutor) {
          try await produce(HTTPClient.RequestWriter(writer: writer))
        }
      }
      return (body, length.map { .length(UInt($0)) } ?? .chunked)
    }
  }
}
