import LarkspurBytes

/// The HTTP/1.x response parser: bytes in, positions out.
///
/// Theory of operation. `start` describes the request. The owner then calls `next` with the bytes that are not consumed
/// yet, any number of times, and each call returns one event. The owner has to keep the bytes of a head, and of a
/// trailer section, together until they are complete: until then `next` returns `needMore`, leaves `consumed` where it
/// is, and keeps its position. The way the bytes are split between calls changes no event, except where one piece of a
/// body ends and the next begins.
///
/// ```
///  idle --start--> statusLine -> fields --1xx--> statusLine        (event: interim)
///                                  |
///                                  +--no body----------------------> ending --> idle   (head, end)
///                                  +--length ----------> body -----> ending --> idle   (head, body..., end)
///                                  +--chunked ---------> body ----------------> idle   (head, body..., end)
///                                  +--until close -----> body --peerClosed--> idle
///                                  +--101, CONNECT----> tunnel                          (head)
/// ```
///
/// The parser does not depend on sockets, time, whether the connection is used again, or what a final status means.
/// Bytes while idle are an error, because they answer no request. After an error the parser stays failed.
///
/// Nothing is allocated per response once the field tables have grown to the size of the server's heads.
public struct ResponseParser: ~Copyable {
  public enum Event: Hashable {
    /// The bytes so far complete no event.
    case needMore
    /// A 1xx response other than 101: its head is in `head`, and the final response is still to come.
    case interim
    /// The final response's head is in `head`.
    case head
    /// A piece of the body: a range of the bytes given.
    case body(Range<Int>)
    /// The response is complete. Trailers, if any, are in `trailers`; their section starts at `trailerBase`
    /// in the bytes given.
    case end(trailerBase: Int)
  }

  // Performance: no payloads, because each response compares and changes the state several times.
  private enum State {
    case idle
    case statusLine
    case reason
    case statusLF
    case fields
    case afterInterim
    case length
    case chunked
    case untilClose
    case ending
    case tunnel
    case failed
  }

  /// The latest head. The owner may swap it for another head, to keep it without a copy.
  public var head = ResponseHead()
  public private(set) var trailers = FieldTable()

  private var state = State.idle
  /// The error of the state `failed`.
  private var failure = ResponseError.unsolicitedBytes
  /// Number of missing bytes of a body while the state is `length`.
  private var remaining = 0
  /// The parser of the field lines while the state is `fields`.
  private var lines = FieldLineParser(from: 0, lineEnd: .crlf)
  /// How the status line of the latest head ends, and so each line of that head.
  private var lineEnd = FieldLineParser.LineEnd.crlf
  /// The decoder of the body while the state is `chunked`.
  private var chunked = ChunkedDecoder()
  private var request = RequestContext()
  private var position = 0
  private var interimCount = 0
  /// The number of interim responses that the request's content has earned, beside `Limits.interimResponsesMax`.
  private var earnedInterimCount = 0
  private let limits: Limits

  public init(limits: Limits = Limits()) {
    // Positions are kept in 32 bits.
    var limits = limits
    limits.headBytesMax = min(limits.headBytesMax, Int(Int32.max) / 2)
    limits.fieldLineBytesMax = min(limits.fieldLineBytesMax, limits.headBytesMax)
    limits.trailerBytesMax = min(limits.trailerBytesMax, Int(Int32.max) / 2)
    self.limits = limits
  }

  /// Expects the response to a request.
  ///
  /// - Returns: Whether the parser was idle; if not, the call has no effect.
  public mutating func start(_ request: RequestContext) -> Bool {
    guard state == .idle else { return false }
    self.request = request
    interimCount = 0
    earnedInterimCount = 0
    startHead()
    return true
  }

  /// Notes the number of bytes of the request's content that have been sent (`Limits.bytesPerInterimResponse`).
  public mutating func requestContentSent(bytes count: Int) {
    earnedInterimCount = max(count, 0) / max(limits.bytesPerInterimResponse, 1)
  }

  /// Whether no response is expected, so that any byte is an error.
  public var isIdle: Bool {
    state == .idle
  }

  /// Returns whether the whole response has been read, so that `next` returns `end` without another byte. Always
  /// `false` for a chunked body, whose end `next` returns at once.
  ///
  /// Performance: `mutating`, which avoids a copy of the large value before each call.
  public mutating func isComplete() -> Bool {
    state == .ending
  }

  /// Ends a response that has been read completely, in place of a last call of `next`.
  ///
  /// - Returns: Whether the response was complete.
  public mutating func finish() -> Bool {
    guard state == .ending else { return false }
    state = .idle
    return true
  }

  /// Number of bytes that may bypass the parser: the rest of a body with a length, or any number for a body that the
  /// end of the stream delimits.
  public var passableBytes: Int {
    switch state {
    case .length: remaining
    case .untilClose: .max
    default: 0
    }
  }

  /// Counts bytes of the body that have bypassed the parser.
  ///
  /// - Parameter count: Number of bytes, from 0 to `passableBytes`.
  public mutating func passed(_ count: Int) {
    guard state == .length else { return }
    remaining -= min(max(count, 0), remaining)
    if remaining == 0 { state = .ending }
  }

  /// Whether the connection now carries another protocol, to which the bytes from index `consumed` on belong.
  public var isTunnel: Bool {
    state == .tunnel
  }

  /// Reads from index `consumed`, and moves it past the bytes that are no longer needed.
  ///
  /// - Throws: The error of a response that breaks the rules; from then on, that error in every call.
  public mutating func next(
    in bytes: Span<UInt8>, consumed: inout Int
  ) throws(ResponseError) -> Event {
    do {
      return try step(bytes, &consumed)
    } catch {
      state = .failed
      failure = error
      throw error
    }
  }

  private mutating func step(_ bytes: Span<UInt8>, _ consumed: inout Int) throws(ResponseError) -> Event {
    if state == .afterInterim { startHead() }
    switch state {
    case .idle, .afterInterim:
      guard consumed >= bytes.count else { throw .unsolicitedBytes }
      return .needMore

    case .statusLine, .reason, .statusLF:
      guard try parseStatusLine(bytes, base: consumed) else { return .needMore }
      lines = FieldLineParser(from: position, lineEnd: lineEnd)
      state = .fields
      return try parseFields(bytes, &consumed)

    case .fields:
      return try parseFields(bytes, &consumed)

    case .length:
      guard consumed < bytes.count else { return .needMore }
      let start = consumed
      consumed += min(remaining, bytes.count - start)
      remaining -= consumed - start
      if remaining == 0 { state = .ending }
      return .body(start..<consumed)

    case .chunked:
      switch try chunked.next(in: bytes, consumed: &consumed, limits: limits, trailers: &trailers) {
      case .needMore: return .needMore
      case .data(let range): return .body(range)
      case .complete(let base):
        state = .idle
        return .end(trailerBase: base)
      }

    case .untilClose:
      guard consumed < bytes.count else { return .needMore }
      let start = consumed
      consumed = bytes.count
      return .body(start..<consumed)

    case .ending:
      state = .idle
      return .end(trailerBase: consumed)

    case .tunnel:
      return .needMore

    case .failed:
      throw failure
    }
  }

  /// The server has closed its side, and all its bytes have been given to `next`.
  ///
  /// - Parameter unread: Number of bytes that `next` has not consumed: those of an incomplete head or trailer section.
  /// - Returns: Whether this end completes the response; `false` if no response was expected or a tunnel has begun.
  /// - Throws: `ResponseError.truncated` if the response is incomplete, or the error of an earlier failure.
  public mutating func peerClosed(unread: Int) throws(ResponseError) -> Bool {
    let point: ResponseError.TruncationPoint
    switch state {
    case .idle, .tunnel: return false
    case .untilClose, .ending:
      state = .idle
      return true
    case .statusLine where unread == 0 && interimCount == 0: point = .beforeHead
    case .statusLine, .reason, .statusLF, .afterInterim: point = .statusLine
    case .fields: point = .head
    case .length: point = .body(missing: remaining)
    case .chunked: point = chunked.truncationPoint
    case .failed: throw failure
    }
    state = .failed
    failure = .truncated(point)
    throw failure
  }

  private mutating func startHead() {
    head.reset()
    trailers.removeAll()
    position = 0
    lineEnd = .crlf
    state = .statusLine
  }
}

// MARK: - Head

extension ResponseParser {
  /// Reads `HTTP/1.x SP 3DIGIT [ SP reason ] CRLF`, or LF in place of CRLF.
  ///
  /// - Returns: Whether the line is complete; `false` if more bytes are needed.
  private mutating func parseStatusLine(_ bytes: Span<UInt8>, base: Int) throws(ResponseError) -> Bool {
    if state == .statusLine {
      if position == 0, let line = Scan.plainStatusLine(in: bytes, from: base),
        line.reasonEnd - base <= limits.fieldLineBytesMax, line.reasonEnd + 2 - base <= limits.headBytesMax
      {
        head.minorVersion = line.minorVersion
        head.status = line.status
        head.reason = 13..<(line.reasonEnd - base)
        position = line.reasonEnd + 2 - base
        return true
      }
      // Up to the byte after the status, the parts have fixed positions.
      while position < 13 {
        guard base + position < bytes.count else { return false }
        try checkStatusLineByte(bytes[base + position])
        position += 1
      }
      switch bytes[base + 12] {
      case ASCII.cr: state = .statusLF
      case ASCII.lf:
        lineEnd = .lf
        return true
      default: state = .reason
      }
    }
    if state == .reason {
      let window = base + min(limits.fieldLineBytesMax + 1, limits.headBytesMax)
      let stop = Scan.endOfFieldValue(in: bytes, from: base + position, to: window)
      position = stop - base
      guard stop < window else {
        throw position > limits.fieldLineBytesMax
          ? .fieldLineTooLong(limit: limits.fieldLineBytesMax) : .headTooLarge(limit: limits.headBytesMax)
      }
      guard stop < bytes.count else { return false }
      head.reason = 13..<position
      position += 1
      switch bytes[stop] {
      case ASCII.cr: state = .statusLF
      case ASCII.lf:
        lineEnd = .lf
        return true
      default: throw .reasonInvalid
      }
    }
    guard base + position < bytes.count else { return false }
    guard bytes[base + position] == ASCII.lf else { throw .bareCR }
    position += 1
    return true
  }

  private mutating func checkStatusLineByte(_ byte: UInt8) throws(ResponseError) {
    switch position {
    case 0: guard byte == UInt8(ascii: "H") else { throw .notHTTP }
    case 1, 2: guard byte == UInt8(ascii: "T") else { throw .notHTTP }
    case 3: guard byte == UInt8(ascii: "P") else { throw .notHTTP }
    case 4: guard byte == UInt8(ascii: "/") else { throw .notHTTP }
    case 5: guard byte == UInt8(ascii: "1") else { throw .versionUnsupported }
    case 6: guard byte == UInt8(ascii: ".") else { throw .versionUnsupported }
    case 7:
      guard ASCII.isDigit(byte) else { throw .versionUnsupported }
      // RFC 9110 2.5: a higher minor version is understood as the highest known one.
      head.minorVersion = byte == UInt8(ascii: "0") ? 0 : 1
    case 8: guard byte == ASCII.space else { throw .versionUnsupported }
    case 9, 10, 11:
      guard ASCII.isDigit(byte), position > 9 || byte != UInt8(ascii: "0") else { throw .statusInvalid }
      head.status = head.status * 10 + Int(byte - UInt8(ascii: "0"))
    default:
      guard byte == ASCII.space || byte == ASCII.cr || byte == ASCII.lf else { throw .statusInvalid }
    }
  }

  private mutating func parseFields(_ bytes: Span<UInt8>, _ consumed: inout Int) throws(ResponseError) -> Event {
    let base = consumed
    let bounds = FieldLineParser.Bounds(
      sectionBytesMax: limits.headBytesMax, tooLarge: .headTooLarge(limit: limits.headBytesMax))
    guard try lines.parse(bytes, base: base, bounds: bounds, limits: limits, into: &head.fields) else {
      return .needMore
    }
    head.byteCount = lines.position
    consumed = base + lines.position
    return try finishHead(bytes, base: base)
  }

  private mutating func finishHead(_ bytes: Span<UInt8>, base: Int) throws(ResponseError) -> Event {
    if head.status < 200, head.status != 101 {
      interimCount += 1
      guard interimCount - earnedInterimCount <= limits.interimResponsesMax else {
        throw .tooManyInterimResponses(limit: limits.interimResponsesMax)
      }
      state = .afterInterim
      return .interim
    }
    try head.decideFraming(in: bytes, base: base, request: request)
    switch head.framing {
    case .none: state = .ending
    case .length(let length):
      remaining = length
      state = .length
    case .chunked:
      chunked = ChunkedDecoder(trailersMayEndWithLF: lineEnd == .lf)
      state = .chunked
    case .untilClose: state = .untilClose
    case .tunnel: state = .tunnel
    }
    return .head
  }
}
