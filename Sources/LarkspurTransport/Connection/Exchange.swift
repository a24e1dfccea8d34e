import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// A request whose response has begun to arrive. An exchange is valid until the connection's next `send`. It belongs to
/// the connection's loop.
public struct Exchange {
  /// The longest time spent on a body that is thrown away so that the connection can be reused. A new connection is
  /// cheaper than a longer wait.
  public static let drainTimeMax = Duration.milliseconds(250)

  public let connection: Connection
  let number: UInt64

  private var isPresent: Bool { connection.exchangeNumber == number }

  public var status: Int { isPresent ? connection.status : 0 }

  /// A handle that cancels the exchange from any thread and thereby closes the connection. `nil` once the connection is
  /// closed or serves another exchange.
  public var canceller: Canceller? { isPresent ? connection.canceller(of: number) : nil }

  /// The address of the server, or of the proxy. `nil` if the connection was not opened by a pool.
  public var peer: SocketAddress? { connection.dialRecord?.peer }

  /// The metrics of the exchange so far, or `nil` if another exchange has begun.
  public var metrics: ExchangeMetrics? { connection.metrics(of: number) }

  /// The protocol version of the response.
  public var version: String { isOfHTTP10 ? "HTTP/1.0" : "HTTP/1.1" }

  var isOfHTTP10: Bool { isPresent && connection.minorVersion == 0 }

  public var fields: FieldTable { isPresent ? connection.fields : FieldTable() }

  public var head: ResponseHead { isPresent ? connection.head : ResponseHead() }

  /// The value of `Content-Length`, or `nil` if there is none.
  public var contentLength: Int? { isPresent ? connection.head.contentLength : nil }

  /// The bytes of the head as received: status line, fields, empty line.
  public var headBytes: [UInt8] { isPresent ? connection.headBytes : [] }

  /// Returns the value of the first field called `name`, or `nil` if there is none.
  ///
  /// - Parameter name: The field's name in lower case.
  public func value(of name: StaticString) -> String? {
    let bytes = headBytes
    guard let entry = head.fields.first(named: CaseInsensitiveToken(name), in: bytes.span) else { return nil }
    return FieldValue.text(entry.value, in: bytes.span)
  }

  /// Returns the value of the first trailer called `name`, or `nil` if there is none. Trailers come with the body's
  /// end.
  ///
  /// - Parameter name: The field's name in lower case.
  public func trailer(_ name: StaticString) -> String? {
    guard isPresent else { return nil }
    let bytes = connection.trailerBytes
    guard let entry = connection.trailers.first(named: CaseInsensitiveToken(name), in: bytes.span) else { return nil }
    return FieldValue.text(entry.value, in: bytes.span)
  }

  /// The trailer section and the positions of its fields, or `nil` if none has arrived. Trailers come with the body's end.
  public var trailers: (bytes: [UInt8], fields: FieldTable)? {
    guard isPresent else { return nil }
    let bytes = connection.trailerBytes
    return bytes.isEmpty ? nil : (bytes, connection.trailers)
  }

  /// Lends the next piece of the body to `consume`, if it is there. `consume` runs at once, on the loop's thread. Nothing
  /// is received while no caller asks for it.
  ///
  /// - Parameter callback: The callback that runs when another call may succeed, or `nil` for none.
  /// - Returns: `true` if a piece was lent, `false` if the body is complete and the request has been sent, or `nil` if
  ///   nothing can be had without waiting.
  public func takeData(
    for callback: (any LoopCallback)?, _ consume: (Span<UInt8>) -> Void
  ) throws(TransportError) -> Bool? {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    return try connection.takeData(for: callback, consume)
  }

  /// Writes the next piece of the body into a regular file, at the file's position, if the piece is there. Over plain TCP
  /// a body that is not chunked moves through a pipe (`splice`) and not through user memory. Writing blocks the loop. A
  /// write error fails the exchange.
  ///
  /// - Parameter callback: The callback that runs when another call may succeed, or `nil` for none.
  /// - Returns: The length of the piece, 0 if the body is complete, or `nil` if nothing can be had without waiting.
  public func takeData(into file: OpenFile, for callback: (any LoopCallback)?) throws(TransportError) -> Int? {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    return try connection.takeData(into: file, for: callback)
  }

  /// Whether part of the body has not arrived, or part of the request has not been sent because the server answers
  /// while it reads.
  public var isReceiving: Bool { isPresent && connection.isReceiving }

  /// Waits for the next piece of the body and lends it to `consume`. See `takeData`.
  ///
  /// - Returns: `false` if the body is complete, and the request has been sent.
  @inline(never)
  public func receiveData(_ consume: (Span<UInt8>) -> Void) async throws(TransportError) -> Bool {
    try await TaskCallback.awaiting { (callback) throws(TransportError) in
      try takeData(for: callback, consume)
    }
  }

  /// Receives and returns the whole body. If the body is larger than `bytesMax`, closes the connection and throws.
  public func collectBody(bytesMax: Int) async throws(TransportError) -> [UInt8] {
    var body: [UInt8] = []
    var isTooLarge = false
    while try await receiveData({ piece in
      isTooLarge = body.count + piece.count > bytesMax
      guard !isTooLarge else { return }
      body.append(copying: piece)
    }) {
      guard !isTooLarge else {
        connection.close()
        throw .localMisuse(.bodyTooLarge)
      }
    }
    return body
  }
}
