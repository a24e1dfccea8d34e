import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// A request whose response has begun to arrive. It is good until the connection's next `send`.
public struct Exchange {
  /// Nobody waits longer for a body that is thrown away than for a new connection.
  public static let drainTimeMax = Duration.milliseconds(250)

  public let connection: Connection
  let number: UInt64

  private var isPresent: Bool { connection.exchangeNumber == number }

  public var status: Int { isPresent ? connection.status : 0 }

  /// Ends the exchange from any thread, and with it the connection. Nil when the connection is closed already.
  public var canceller: Canceller? { isPresent ? connection.canceller(of: number) : nil }

  /// The server's address, or the proxy's.
  public var peer: SocketAddress? { connection.dialRecord?.peer }

  /// What is known of it in numbers so far. Nil: it is over, and another one has begun.
  public var metrics: ExchangeMetrics? { connection.metrics(of: number) }

  /// Of the response's protocol.
  public var version: String { isOfHTTP10 ? "HTTP/1.0" : "HTTP/1.1" }

  var isOfHTTP10: Bool { isPresent && connection.minorVersion == 0 }

  public var fields: FieldTable { isPresent ? connection.fields : FieldTable() }

  public var head: ResponseHead { isPresent ? connection.head : ResponseHead() }

  /// What `Content-Length` says, if it is there.
  public var contentLength: Int? { isPresent ? connection.head.contentLength : nil }

  /// The head as it came: status line, fields, empty line.
  public var headBytes: [UInt8] { isPresent ? connection.headBytes : [] }

  /// The value of the first field called `name`, which is given in lower case.
  public func value(of name: StaticString) -> String? {
    let bytes = headBytes
    guard let entry = head.fields.first(named: CaselessWord(name), in: bytes.span) else { return nil }
    return FieldValue.text(entry.value, in: bytes.span)
  }

  /// The value of the first trailer called `name`, which is given in lower case. Trailers come with the body's end.
  public func trailer(_ name: StaticString) -> String? {
    guard isPresent else { return nil }
    let bytes = connection.trailerBytes
    guard let entry = connection.trailers.first(named: CaselessWord(name), in: bytes.span) else { return nil }
    return FieldValue.text(entry.value, in: bytes.span)
  }

  /// Waits for the next piece of the body and lends it to `consume`, which runs at once, on the loop's thread.
  /// False: the body is complete, and so is the request. Nothing is received while nobody asks.
  public func receivePiece(_ consume: (Span<UInt8>) -> Void) async throws(TransportError) -> Bool {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    return try await connection.receivePiece(consume)
  }

  /// The same for a piece that has come: no task waits for it, and most small bodies come together with their heads. Nil:
  /// there is nothing to be had without waiting.
  public func takePiece(_ consume: (Span<UInt8>) -> Void) throws(TransportError) -> Bool? {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    return try connection.takePiece(consume)
  }

  /// Lends the next piece of the body to `consume`, if it is there.
  ///
  /// - Returns: `false` if the body is complete, or `nil` if `callback` will be performed when it is worth asking again.
  public func takePiece(
    for callback: any LoopCallback, _ consume: (Span<UInt8>) -> Void
  ) throws(TransportError) -> Bool? {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    return try connection.takePiece(for: callback, consume)
  }

  /// Moves the next piece of the body into the file, as `receiveBody(into:)` does, and returns its length. Nil: the body is
  /// complete.
  public func receivePiece(into file: OpenFile) async throws(TransportError) -> Int? {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    return try await connection.receivePiece(into: file)
  }

  /// The same for what has come. 0: the body is complete. Nil: there is nothing to be had without waiting.
  public func takePiece(into file: OpenFile) throws(TransportError) -> Int? {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    return try connection.takePiece(into: file)
  }

  /// Whether something of the body is still to come; or of the request to be sent, if the server answers while it reads.
  public var isReceiving: Bool { isPresent && connection.isReceiving }

  /// Lends each piece of the body to `consume` as it comes, to the body's end.
  public func receiveBody(_ consume: (Span<UInt8>) -> Void) async throws(TransportError) {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    // With its last piece the exchange is over, and need not be asked again.
    while try await connection.receivePiece(consume), isPresent, connection.isReceiving {}
  }

  /// Writes the body into a file, from the file's own position on, and returns how many bytes that were. `progress` is
  /// told how many there are so far. Over plain TCP a body that is not chunked goes there through a pipe, without a stop
  /// in our memory. Writing blocks the loop, so the file is a regular one. A file that takes no more fails the exchange.
  public func receiveBody(
    into file: OpenFile, progress: (Int) -> Void = { _ in }
  ) async throws(TransportError) -> Int {
    guard isPresent else { throw .localMisuse(.exchangeOver) }
    var total = 0
    while let count = try await connection.receivePiece(into: file) {
      total += count
      progress(total)
      guard isPresent, connection.isReceiving else { break }
    }
    return total
  }

  /// Reads the body to its end, and throws it away.
  public func discardBody() async throws(TransportError) {
    try await receiveBody { _ in }
  }

  /// The whole body. One that is larger than `bytesMax` is an error, and the connection is closed.
  public func collectBody(bytesMax: Int) async throws(TransportError) -> [UInt8] {
    var body: [UInt8] = []
    var isTooLarge = false
    while try await receivePiece({ piece in
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
