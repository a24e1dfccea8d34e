import LarkspurBytes

extension ResponseHead {
  /// The lengths of the names below.
  private static let framingNameLengths: UInt32 = 1 << 10 | 1 << 14 | 1 << 17

  /// Reads the fields that decide where the body ends and whether the connection lives on.
  mutating func decideFraming(
    in bytes: Span<UInt8>, base: Int, request: RequestContext
  ) throws(ResponseError) {
    // RFC 9110 15.2.2: the server switches only to what the client offered.
    if status == 101, !request.offersUpgrade { throw .upgradeUnsolicited }
    if status == 101 || request.method == .connect && 200..<300 ~= status {
      // RFC 9110 9.3.6, RFC 9112 6.3: what the fields say of a body is ignored, there is none.
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
        if Word.connection.matches(head, entry.name) {
          says.read(head, entry.value)
        } else if Word.keepAlive.matches(head, entry.name) {
          hasKeepAlive = true
        }
      case 14 where Word.contentLength.matches(head, entry.name):
        let repeated = length
        length = try ContentLength(head, entry.value)
        guard repeated == nil || repeated == length else { throw .contentLengthConflicting }
      case 17 where Word.transferEncoding.matches(head, entry.name):
        codings.read(head, entry.value)
      default:
        continue
      }
    }
    contentLength = length?.value

    // RFC 9112 6.1: an HTTP/1.0 message with Transfer-Encoding has faulty framing. The field is ignored, and
    // so is the connection afterwards.
    let isChunked = codings.isPresent && minorVersion > 0
    if isChunked, !codings.isChunkedOnce { throw .transferCodingUnsupported }

    switch (status, request.method) {
    case (204, _), (304, _), (_, .head): framing = .none
    case _ where isChunked: framing = .chunked
    case _: framing = length.map { $0.value == 0 ? .none : .length($0.value) } ?? .untilClose
    }

    // RFC 9110 8.6, RFC 9112 6.1: a 204 announces no body. A server that announces one may send it too, and late:
    // no further request goes where the answer would begin with it.
    let announcesWrongly = status == 204 && (codings.isPresent || (length?.value ?? 0) > 0)
    // RFC 9112 9.3: `close` wins over `keep-alive`; HTTP/1.0 lives on only by `keep-alive`. RFC 9112 6.1:
    // Transfer-Encoding beside Content-Length may be an attack, and the connection ends with the response.
    isPersistent =
      !says.close && !request.closesConnection && (minorVersion > 0 || says.keepAlive)
      && !(codings.isPresent && (length != nil || minorVersion == 0))
      && framing != .untilClose && !announcesWrongly
  }
}

/// The one number of `Content-Length`. Repeats are accepted when they are identical, digit by digit: a proxy
/// that read "010" as octal would see another body than we do.
private struct ContentLength: Equatable {
  var value: Int
  var digits: Int

  /// Reads a field's value: a number, or a list of one and the same number.
  init(_ head: Span<UInt8>, _ value: Range<Int>) throws(ResponseError) {
    // What almost every server sends needs no taking apart.
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

  /// Nil: not digits only, or too large.
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

  /// The only coding that we implement, applied once (RFC 9112 6.1 forbids more).
  var isChunkedOnce: Bool { chunked == 1 && others == 0 }

  mutating func read(_ head: Span<UInt8>, _ value: Range<Int>) {
    isPresent = true
    var elements = ListElements(value)
    while let element = elements.next(in: head) {
      if Word.chunked.matches(head, element) { chunked += 1 } else { others += 1 }
    }
  }
}

private struct ConnectionOptions {
  private(set) var close = false
  private(set) var keepAlive = false

  mutating func read(_ head: Span<UInt8>, _ value: Range<Int>) {
    // What most servers send needs no taking apart.
    if Word.keepAlive.matches(head, value) {
      keepAlive = true
      return
    }
    var elements = ListElements(value)
    while let element = elements.next(in: head) {
      if Word.close.matches(head, element) { close = true }
      if Word.keepAlive.matches(head, element) { keepAlive = true }
    }
  }
}

/// The elements of a comma-separated value, trimmed; empty ones included. (None of the lists read here may
/// hold a quoted comma.)
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
