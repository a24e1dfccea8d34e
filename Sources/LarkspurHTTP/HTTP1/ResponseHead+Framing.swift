import LarkspurBytes

extension ResponseHead {
  /// The lengths of the names below.
  private static let framingNameLengths: UInt32 = 1 << 10 | 1 << 14 | 1 << 17

  /// Reads the fields that decide where the body ends and whether the connection lives on.
  mutating func decideFraming(
    in bytes: Span<UInt8>, base: Int, request: RequestContext
  ) throws(ResponseError) {
    let head = bytes.extracting(base..<(base + byteCount))
    var length: ContentLength?
    var codings = TransferCodings()
    var says = ConnectionOptions()
    var index = fields.index(from: 0, nameLengths: Self.framingNameLengths)
    while index < fields.count {
      let entry = fields[index]
      index = fields.index(from: index + 1, nameLengths: Self.framingNameLengths)
      switch entry.nameCount {
      case 10 where Scan.matches(head, entry.name, lowercase: "connection"):
        forEachElement(of: entry.value, in: head) { says.read(head, $0) }
      case 14 where Scan.matches(head, entry.name, lowercase: "content-length"):
        try ContentLength.read(head, entry.value, into: &length)
      case 17 where Scan.matches(head, entry.name, lowercase: "transfer-encoding"):
        codings.isPresent = true
        forEachElement(of: entry.value, in: head) { codings.read(head, $0) }
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
    case (101, _):
      // RFC 9110 15.2.2: the server switches only to what the client offered.
      guard request.offersUpgrade else { throw .upgradeUnsolicited }
      framing = .tunnel
    case (200..<300, .connect): framing = .tunnel
    case (204, _), (304, _), (_, .head): framing = .none
    case _ where isChunked: framing = .chunked
    case _: framing = length.map { $0.value == 0 ? .none : .length($0.value) } ?? .untilClose
    }

    // RFC 9112 9.3: `close` wins over `keep-alive`; HTTP/1.0 lives on only by `keep-alive`. RFC 9112 6.1:
    // Transfer-Encoding beside Content-Length may be an attack, and the connection ends with the response.
    isPersistent =
      !says.close && (minorVersion > 0 || says.keepAlive) && !(codings.isPresent && (length != nil || minorVersion == 0))
      && framing != .untilClose && framing != .tunnel
  }
}

/// The one number of `Content-Length`. Repeats are accepted when they are identical, digit by digit: a proxy
/// that read "010" as octal would see another body than we do.
private struct ContentLength: Equatable {
  var value: Int
  var digits: Int

  static func read(_ head: Span<UInt8>, _ value: Range<Int>, into length: inout ContentLength?) throws(ResponseError) {
    var failure: ResponseError?
    var known = length
    var isEmpty = true
    forEachElement(of: value, in: head) { element in
      isEmpty = false
      guard let this = parse(head, element) else {
        failure = failure ?? .contentLengthInvalid
        return
      }
      if let known, known != this { failure = failure ?? .contentLengthConflicting }
      known = this
    }
    if let failure { throw failure }
    if isEmpty { throw .contentLengthInvalid }
    length = known
  }

  private static func parse(_ head: Span<UInt8>, _ element: Range<Int>) -> ContentLength? {
    guard !element.isEmpty else { return nil }
    var value = 0
    for index in element {
      let byte = head[index]
      guard ASCII.isDigit(byte) else { return nil }
      let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflow2) = tens.addingReportingOverflow(Int(byte - UInt8(ascii: "0")))
      guard !overflow, !overflow2 else { return nil }
      value = sum
    }
    return ContentLength(value: value, digits: element.count)
  }
}

private struct TransferCodings {
  var isPresent = false
  private var chunked = 0
  private var others = 0

  /// The only coding that we implement, applied once (RFC 9112 6.1 forbids more).
  var isChunkedOnce: Bool { chunked == 1 && others == 0 }

  mutating func read(_ head: Span<UInt8>, _ element: Range<Int>) {
    if Scan.matches(head, element, lowercase: "chunked") { chunked += 1 } else { others += 1 }
  }
}

private struct ConnectionOptions {
  var close = false
  var keepAlive = false

  mutating func read(_ head: Span<UInt8>, _ element: Range<Int>) {
    if Scan.matches(head, element, lowercase: "close") { close = true }
    if Scan.matches(head, element, lowercase: "keep-alive") { keepAlive = true }
  }
}

/// The elements of a comma-separated value, trimmed; empty ones included. (None of the lists read here may
/// hold a quoted comma.)
private func forEachElement(of value: Range<Int>, in head: Span<UInt8>, _ body: (Range<Int>) -> Void) {
  var start = value.lowerBound
  var index = start
  while true {
    if index == value.upperBound || head[index] == UInt8(ascii: ",") {
      var from = start
      var to = index
      while from < to, ASCII.isWhitespace(head[from]) { from += 1 }
      while to > from, ASCII.isWhitespace(head[to - 1]) { to -= 1 }
      body(from..<to)
      guard index < value.upperBound else { return }
      start = index + 1
    }
    index += 1
  }
}
