import LarkspurHTTP

extension HTTPClient {
  /// The response to a request: its head, and its body as it comes. It is valid in the closure that it was given to.
  public struct Response {
    /// The status code, from 100 to 999 (RFC 9110 15).
    public let status: Int
    /// The fields, in the order in which they came. The content of a decoded body is not what `Content-Encoding` and
    /// `Content-Length` describe.
    public var fields: FieldList { body.load.fields }
    /// The URL that the response is from: after redirections, the last one.
    public let url: String
    /// The body, which is received as the program asks for it.
    public let body: ResponseBody

    init(_ load: ClientLoad) {
      status = load.head.status
      url = load.request.url
      body = ResponseBody(load)
    }

    /// Returns the value of the field with a name, regardless of case, or `nil` if there is none. Several values are joined
    /// by `, ` (RFC 9110 5.3).
    public func value(of name: String) -> String? {
      let values = fields.values(named: name)
      return values.isEmpty ? nil : values.joined(separator: ", ")
    }
  }

  /// The body of a response: an asynchronous sequence of pieces of bytes, which is read once. At most 64 KiB are in memory
  /// beside the piece that the program has. The server keeps the rest until the program asks for it.
  ///
  /// Reading throws ``HTTPClientError/Code/bodyOver`` after the end of the closure that the response was given to.
  public struct ResponseBody: AsyncSequence {
    public typealias Element = [UInt8]
    public typealias Failure = HTTPClientError

    let load: ClientLoad

    init(_ load: ClientLoad) { self.load = load }

    /// The reader of the body. Two iterators of one body share its pieces.
    public struct AsyncIterator: AsyncIteratorProtocol {
      let load: ClientLoad

      /// Returns the next piece, which is not empty, or `nil` at the end of the body.
      public mutating func next() async throws(HTTPClientError) -> [UInt8]? { try await load.next() }

      /// Returns the next piece, which is not empty, or `nil` at the end of the body.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(HTTPClientError) -> [UInt8]? { try await load.next() }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(load: load) }

    /// Reads the rest of the body, and returns it.
    ///
    /// - Parameter bytesMax: The largest number of bytes to return.
    /// - Throws: ``HTTPClientError/Code/tooLarge`` if there are more.
    public func collect(upTo bytesMax: Int) async throws(HTTPClientError) -> [UInt8] {
      var body: [UInt8] = []
      while let piece = try await load.next() {
        guard piece.count <= bytesMax - body.count else { throw tooLarge("the body is larger than \(bytesMax) bytes") }
        if body.isEmpty { body = piece } else { body += piece }
      }
      return body
    }

    /// The trailer fields that followed a chunked body. Empty until the body has been read to its end.
    public var trailers: FieldList { load.trailers }

    func tooLarge(_ reason: String) -> HTTPClientError { HTTPClientError(.tooLarge, reason, url: load.request.url) }
  }
}
