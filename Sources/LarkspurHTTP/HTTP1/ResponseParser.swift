import LarkspurBytes

/// The HTTP/1.x response parser: bytes in, positions out.
///
/// Theory of operation. `begin` says what was asked. The owner then calls `next` with the bytes that are not
/// consumed yet, as often as it likes, and each call returns one event. A head and a trailer section have to
/// stay in one place until they are complete; until then `next` answers `needMore` and leaves `consumed` where
/// it is, and remembers how far it has looked. The same bytes give the same events however they are cut, but
/// for the borders between two pieces of a body.
///
/// ```
///  idle --begin--> statusLine -> fields --1xx--> statusLine        (event: interim)
///                                  |
///                                  +--no body----------------------> ending --> idle   (head, end)
///                                  +--length ----------> body -----> ending --> idle   (head, body..., end)
///                                  +--chunked ---------> body ----------------> idle   (head, body..., end)
///                                  +--until close -----> body --peerClosed--> idle
///                                  +--101, CONNECT----> tunnel                          (head)
/// ```
///
/// It does not know: sockets, time, whether the connection is used again, what a status means. Bytes while idle
/// are an error: they answer no request. After an error it stays failed.
///
/// Nothing is allocated per response once the field tables have grown to what the server sends.
public struct ResponseParser: ~Copyable {
  public enum Event: Hashable {
    /// The bytes given so far do not complete anything.
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

  // Without payloads: a state is compared and left several times a response.
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

  /// The latest head. It may be swapped against another one to keep it without a copy.
  public var head = ResponseHead()
  public private(set) var trailers = FieldTable()

  private var state = State.idle
  /// What `failed` failed with.
  private var failure = ResponseError.unsolicitedBytes
  /// What is missing of a counted body while the state is `length`.
  private var remaining = 0
  /// Of use while the state is `fields`.
  private var lines = FieldLineParser(from: 0, lineEnd: .crlf)
  /// How the latest head's status line ends, and so each of its lines.
  private var lineEnd = FieldLineParser.LineEnd.crlf
  /// Of use while the state is `chunked`.
  private var chunked = ChunkedDecoder()
  private var request = RequestContext()
  private var position = 0
  private var interimCount = 0
  private let limits: Limits

  public init(limits: Limits = Limits()) {
    // Positions are kept in 32 bits.
    var limits = limits
    limits.headBytesMax = min(limits.headBytesMax, Int(Int32.max) / 2)
    limits.fieldLineBytesMax = min(limits.fieldLineBytesMax, limits.headBytesMax)
    limits.trailerBytesMax = min(limits.trailerBytesMax, Int(Int32.max) / 2)
    self.limits = limits
  }

  /// Expects the response to a request. False if a response is still in the way.
  public mutating func begin(_ request: RequestContext) -> Bool {
    guard state == .idle else { return false }
    self.request = request
    interimCount = 0
    startHead()
    return true
  }

  /// Whether no response is expected: whatever arrives now is an error.
  public var isIdle: Bool {
    state == .idle
  }

  /// Whether all of the response has been read, so that `next` will answer `end` without another byte.
  ///
  /// (Mutating, as is all that is asked often of what is large: else it is copied first.)
  public mutating func isComplete() -> Bool {
    state == .ending
  }

  /// Ends a response that is complete, in place of `next`. False: it is not.
  public mutating func finish() -> Bool {
    guard state == .ending else { return false }
    state = .idle
    return true
  }

  /// How many bytes may go past the parser: those of a body that is delimited by its length or by the stream's end.
  public var passableBytes: Int {
    switch state {
    case .length: remaining
    case .untilClose: .max
    default: 0
    }
  }

  /// So many bytes of the body have gone past, and no more than might.
  public mutating func passed(_ count: Int) {
    guard state == .length else { return }
    remaining -= min(max(count, 0), remaining)
    if remaining == 0 { state = .ending }
  }

  /// Whether the connection has become another protocol's. Bytes from `consumed` on belong to it.
  public var isTunnel: Bool {
    state == .tunnel
  }

  /// Reads on from `consumed`, and moves it past what is done with.
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

  /// The peer has closed its side, and all that it sent has been given to `next`; `unread` bytes of it are an
  /// incomplete head or trailer section. Returns whether the response is complete with that.
  public mutating func peerClosed(unread: Int) throws(ResponseError) -> Bool {
    let place: ResponseError.Place
    switch state {
    case .idle, .tunnel: return false
    case .untilClose, .ending:
      state = .idle
      return true
    case .statusLine where unread == 0 && interimCount == 0: place = .beforeHead
    case .statusLine, .reason, .statusLF, .afterInterim: place = .statusLine
    case .fields: place = .head
    case .length: place = .body(missing: remaining)
    case .chunked: place = chunked.place
    case .failed: throw failure
    }
    state = .failed
    failure = .truncated(place)
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
  /// Reads `HTTP/1.x SP 3DIGIT [ SP reason ] CRLF`, or LF in place of CRLF. Returns `false` if more bytes are needed.
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
      // Up to the byte behind the status every byte has its place.
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
      // RFC 9110 2.5: a higher minor version is understood as the highest that we know.
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
      guard interimCount <= limits.interimResponsesMax else {
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
