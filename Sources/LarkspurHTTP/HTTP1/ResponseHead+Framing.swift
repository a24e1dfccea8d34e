import LarkspurBytes

extension ResponseHead {
  /// The lengths of the field names that `decideFraming` reads, as the bits of a mask.
  private static let framingNameLengths: UInt32 = 1 << 10 | 1 << 14 | 1 << 17

  /// Reads the fields that decide where the body ends and whether the connection may be used again.
  mutating func decideFraming(
    in bytes: Span<UInt8>, base: Int, request: RequestContext
  ) throws(ResponseError) {
    // RFC 9110 15.2.2: the server switches only to a protocol that the client offered.
    if status == 101, !request.offersUpgrade { throw .upgradeUnsolicited }
    if status == 101 || request.method == .connect && 200..<300 ~= status {
      // RFC 9110 9.3.6, RFC 9112 6.3: there is no body, and fields that describe one are ignored.
      framing = .tunnel
      return
    }

    let head = bytes.extracting(base..<(base + byteCount))
    var length: ContentLength?
    var codings = TransferCodings()
    var says = ConnectionOptions()
    var index = fields.index(from: 0, nameLengths: Self.framingNameLengths)
    while index < fields.count {
      let entry = fields[index]
      index = fields.index(from: index + 1, nameLengths: Self.framingNameLengths)
      switch entry.nameCount {
      case 10:
        if KnownToken.connection.matches(head, entry.name) {
          says.read(head, entry.value)
        } else if KnownToken.keepAlive.matches(head, entry.name) {
          hasKeepAlive = true
        }
      case 14 where KnownToken.contentLength.matches(head, entry.name):
        let repeated = length
        length = try ContentLength(head, entry.value)
        guard repeated == nil || repeated == length else { throw .contentLengthConflicting }
      case 17 where KnownToken.transferEncoding.matches(head, entry.name):
        codings.read(head, entry.value)
      default:
        continue
      }
    }
    contentLength = length?.value

    // RFC 9112 6.1: an HTTP/1.0 message with Transfer-Encoding has faulty framing. The field is ignored, and the
    // connection is not used again.
    let isChunked = codings.isPresent && minorVersion > 0
    if isChunked, !codings.isChunkedOnce { throw .transferCodingUnsupported }

    switch (status, request.method) {
    case (204, _), (304, _), (_, .head): framing = .none
    case _ where isChunked: framing = .chunked
    case _: framing = length.map { $0.value == 0 ? .none : .length($0.value) } ?? .untilClose
    }

    // RFC 9110 8.6, RFC 9112 6.1: a 204 must not announce a body. A server that announces one may also send it, late,
    // and its bytes would be taken for the next response: the connection is not used again.
    let announcesWrongly = status == 204 && (codings.isPresent || (length?.value ?? 0) > 0)
    // RFC 9112 9.3: `close` wins over `keep-alive`; an HTTP/1.0 connection stays open only with `keep-alive`. RFC 9112
    // 6.1: Transfer-Encoding beside Content-Length may be an attack, and the connection ends with the response.
    isPersistent =
      !says.close && !request.closesConnection && (minorVersion > 0 || says.keepAlive)
      && !(codings.isPresent && (length != nil || minorVersion == 0))
      && framing != .untilClose && !announcesWrongly
  }
}

/// The number of `Content-Length`. Repeated numbers are accepted if they have the same digits: a proxy that reads "010"
/// as octal would see another body than this parser.
private struct ContentLength: Equatable {
  var value: Int
  var digits: Int

  /// Reads a field value: a number, or a list that repeats one number.
  init(_ head: Span<UInt8>, _ value: Range<Int>) throws(ResponseError) {
    // Performance: almost every server sends a single number, which needs no list parsing.
    if let number = Self(digits: head, value) {
      self = number
      return
    }
    var elements = ListElements(value)
    var first: ContentLength?
    while let element = elements.next(in: head) {
      guard let this = ContentLength(digits: head, element) else { throw .contentLengthInvalid }
      guard first == nil || first == this else { throw .contentLengthConflicting }
      first = this
    }
    guard let first else { throw .contentLengthInvalid }
    self = first
  }

  /// Fails if the element is empty, has a byte that is not a digit, or does not fit in an `Int`.
  private init?(digits head: Span<UInt8>, _ element: Range<Int>) {
    guard !element.isEmpty else { return nil }
    var value = 0
    for index in element {
      let byte = head[index]
      guard ASCII.isDigit(byte) else { return nil }
      let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflow2) = tens.addingReportingOverflow(Int(byte &- UInt8(ascii: "0")))
      guard !overflow, !overflow2 else { return nil }
      value = sum
    }
    self.value = value
    digits = element.count
  }
}

private struct TransferCodings {
  private(set) var isPresent = false
  private var chunked = 0
  private var others = 0

  /// Whether `chunked`, the only implemented coding, is the only one and applied once (RFC 9112 6.1 forbids more).
  var isChunkedOnce: Bool { chunked == 1 && others == 0 }

  mutating func read(_ head: Span<UInt8>, _ value: Range<Int>) {
    isPresent = true
    var elements = ListElements(value)
    while let element = elements.next(in: head) {
      if KnownToken.chunked.matches(head, element) { chunked += 1 } else { others += 1 }
    }
  }
}

private struct ConnectionOptions {
  private(set) var close = false
  private(set) var keepAlive = false

  mutating func read(_ head: Span<UInt8>, _ value: Range<Int>) {
    // Performance: most servers send `keep-alive` alone, which needs no list parsing.
    if KnownToken.keepAlive.matches(head, value) {
      keepAlive = true
      return
    }
    var elements = ListElements(value)
    while let element = elements.next(in: head) {
      if KnownToken.close.matches(head, element) { close = true }
      if KnownToken.keepAlive.matches(head, element) { keepAlive = true }
    }
  }
}

/// The elements of a comma-separated field value, trimmed, including empty ones. Quoted commas separate as well:
/// `Content-Length` and `Connection` may not have any, and a transfer coding with a parameter is refused in any case.
private struct ListElements {
  private var start: Int?
  private let end: Int

  init(_ value: Range<Int>) {
    start = value.lowerBound
    end = value.upperBound
  }

  mutating func next(in head: Span<UInt8>) -> Range<Int>? {
    guard var from = start else { return nil }
    var to = from
    while to < end, head[to] != UInt8(ascii: ",") { to &+= 1 }
    start = to < end ? to + 1 : nil
    while from < to, ASCII.isWhitespace(head[from]) { from += 1 }
    while to > from, ASCII.isWhitespace(head[to - 1]) { to -= 1 }
    return from..<to
  }
}
