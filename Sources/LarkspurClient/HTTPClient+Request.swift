import LarkspurBytes
import LarkspurCoding
import LarkspurEngine
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
    /// The coding that compresses the body while it is sent, with `Content-Encoding`. With `nil`, the default, the body is
    /// sent unchanged. A client cannot know whether a server accepts the coding: some answer 415 (RFC 9110 12.5.3).
    ///
    /// - Bytes of at most 64 KiB are compressed at once, and sent with their new length; if they would not become shorter,
    ///   they are sent as they are. Longer ones, and bodies that are written or iterated, are compressed as they are sent, in
    ///   chunks: a server that speaks HTTP/1.0 only cannot receive them. Their declared length is checked, and not sent.
    /// - Files are sent by the kernel, and never compressed.
    /// - A request that sets `Content-Encoding` itself, or gets it from ``Options/fields``, is not compressed again.
    /// - A ``Recorder`` counts the bytes of the compressed body. Digest authentication with `auth-int` is not possible.
    public var bodyCompression: BodyCompression?
    var trailers: RequestTrailers?
    /// Gets the times and the numbers of bytes of each attempt to send the request. `nil`, the default, for none.
    public var recorder: Recorder?

    /// Creates a request. Nothing of it is checked before it is sent.
    public init(_ url: String, method: String = "GET", fields: FieldList = [], body: RequestBody = .none) {
      self.method = method
      self.url = url
      self.fields = fields
      self.body = body
    }

    /// Sets the trailer fields of a body that is written or iterated (RFC 9110 6.5): values that are known only when the
    /// body has been sent, such as its digest. By default there are none.
    ///
    /// The request fails with ``HTTPClientError/Code/invalidRequest`` before anything is sent if its body has another form or
    /// is of known length, or if a name is not allowed in trailers: fields for framing, routing, authentication, conditions
    /// and controls, and those that describe the content. If `values` throws or returns another name, the request fails with
    /// ``HTTPClientError/Code/bodyFailed``, and the server gets no complete body.
    ///
    /// - Parameters:
    ///   - names: The names of the fields, which the request's `Trailer` field announces. An empty list removes the
    ///     trailers.
    ///   - values: Returns the values by name when the body has been written. A name may be left out. Called on any thread,
    ///     and again if the body is sent again.
    public mutating func setTrailers(
      _ names: [String], values: @escaping @Sendable () async throws -> [String: String]
    ) {
      trailers = names.isEmpty ? nil : RequestTrailers(names, values)
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
    /// Compresses the pieces, or `nil` to send them as they are.
    var compressor: CompressingWriter?

    /// Sends the next piece. Returns when there is room for the next piece: the memory for unsent bytes is bounded.
    ///
    /// - Throws: ``HTTPClientError/Code/cancelled`` if the server needs no more of the body.
    public func write(_ piece: [UInt8]) async throws(HTTPClientError) {
      do {
        if let compressor { try await compressor.write(piece) } else { try await writer.write(piece) }
      } catch let error as TransportError {
        throw HTTPClientError(error, url: "")
      } catch {
        throw HTTPClientError(.bodyFailed, "\(error)")
      }
    }

    /// Adds a trailer field to a body that is sent in chunks, without an announcement (``Request/setTrailers(_:values:)``
    /// has one). A field that cannot be sent fails the request when the body ends.
    public func trailer(_ name: String, _ value: String) async { await writer.trailer(name, value) }
  }
}
