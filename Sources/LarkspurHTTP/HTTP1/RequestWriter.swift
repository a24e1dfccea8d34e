import LarkspurBytes

/// Writes a request head. What would change the message's shape (CR, LF, NUL, white space where none belongs)
/// is refused with an error that says which part; nothing is ever split, escaped or repaired.
///
/// ```swift
/// var writer = try RequestWriter(method: "GET", target: "/index.html", host: "example.org")
/// try writer.field("Accept", "*/*")
/// let request = writer.finish()
/// ```
package struct RequestWriter: Sendable {
  /// How the body's length is told (RFC 9112 6).
  package enum Body: Hashable, Sendable {
    /// No body. Methods that usually carry one (POST, PUT, PATCH) say `Content-Length: 0` (RFC 9110 8.6).
    case none
    case length(UInt)
    /// The chunked coding: see `ChunkedEncoder`.
    case chunked
  }

  private var bytes: [UInt8] = []
  private var context = RequestContext()
  private var usuallyHasBody = false

  package init(method: String, target: String, host: String) throws(RequestError) {
    guard isToken(method) else { throw .methodInvalid(method) }
    guard isTarget(target) else { throw .targetInvalid(target) }
    switch method {
    case "HEAD": context.method = .head
    case "CONNECT": context.method = .connect
    case "POST", "PUT", "PATCH": usuallyHasBody = true
    default: break
    }
    bytes.reserveCapacity(512)
    bytes.append(contentsOf: method.utf8)
    bytes.append(ASCII.space)
    bytes.append(contentsOf: target.utf8)
    bytes.append(contentsOf: " HTTP/1.1\r\n".utf8)
    // RFC 9110 7.2: Host comes first, and is sent even when it is empty.
    guard isFieldValue(host) else { throw .fieldValueInvalid(name: "Host") }
    append("Host", host)
  }

  package mutating func field(_ name: String, _ value: String) throws(RequestError) {
    guard isToken(name) else { throw .fieldNameInvalid(name) }
    guard isFieldValue(value) else { throw .fieldValueInvalid(name: name) }
    let span = name.utf8Span.span
    // RFC 9112 3.2: a second Host line makes a request bad, and is how two servers come to see two hosts.
    guard !isReserved(name), !host.matches(span, span.indices) else { throw .fieldReserved(name: name) }
    if upgrade.matches(span, span.indices) { context.offersUpgrade = true }
    if connection.matches(span, span.indices) {
      // RFC 9112 9.6: after `close` no further request is sent, whatever the server says.
      let options = value.split(separator: ",").map { $0.lowercased().filter { $0 != " " && $0 != "\t" } }
      if options.contains("close") { context.closesConnection = true }
    }
    if expect.matches(span, span.indices), value.lowercased() == "100-continue" { context.expectsContinue = true }
    append(name, value)
  }

  /// Ends the head.
  package consuming func finish(body: Body = .none) -> RequestHead {
    switch body {
    case .none:
      context.expectsContinue = false
      if usuallyHasBody { append("Content-Length", "0") }
    case .length(let length): append("Content-Length", String(length))
    case .chunked: append("Transfer-Encoding", "chunked")
    }
    bytes.append(ASCII.cr)
    bytes.append(ASCII.lf)
    return RequestHead(bytes: bytes, context: context, body: body)
  }

  private mutating func append(_ name: String, _ value: String) {
    bytes.append(contentsOf: name.utf8)
    bytes.append(ASCII.colon)
    bytes.append(ASCII.space)
    bytes.append(contentsOf: value.utf8)
    bytes.append(ASCII.cr)
    bytes.append(ASCII.lf)
  }
}

/// A request head, ready to be sent as often as one likes.
package struct RequestHead: Hashable, Sendable {
  package let bytes: [UInt8]
  package let context: RequestContext
  private let body: RequestWriter.Body

  /// Whether the body has to come in the chunked coding.
  package var isChunked: Bool { if case .chunked = body { true } else { false } }

  init(bytes: [UInt8], context: RequestContext, body: RequestWriter.Body) {
    self.bytes = bytes
    self.context = context
    self.body = body
  }

  /// Whether a body of so many bytes is what the head announces. Any other would end in the next request, or be it.
  package func allows(bodyBytes count: Int) -> Bool {
    switch body {
    case .none: count == 0
    case .length(let length): length == UInt(count)
    case .chunked: true
    }
  }
}

/// Puts the chunked coding on a request body (RFC 9112 7.1).
package enum ChunkedEncoder {
  /// What goes before a chunk's data. `count` is above zero: an empty chunk would end the body.
  package static func start(ofChunk count: Int) -> [UInt8] {
    Array((String(count, radix: 16) + "\r\n").utf8)
  }

  /// What goes behind a chunk's data.
  package static let endOfChunk: [UInt8] = [ASCII.cr, ASCII.lf]

  /// The last chunk and the trailer section.
  package static func end(trailers: [(name: String, value: String)] = []) throws(RequestError) -> [UInt8] {
    var bytes = Array("0\r\n".utf8)
    for (name, value) in trailers {
      guard isToken(name) else { throw .fieldNameInvalid(name) }
      guard isFieldValue(value) else { throw .fieldValueInvalid(name: name) }
      // RFC 9110 6.5.1: these would come too late, and a receiver that merged them would lose its place.
      guard !isReserved(name) else { throw .fieldReserved(name: name) }
      bytes.append(contentsOf: "\(name): \(value)\r\n".utf8)
    }
    bytes.append(contentsOf: endOfChunk)
    return bytes
  }
}

private func isToken(_ text: String) -> Bool {
  let span = text.utf8Span.span
  return !span.isEmpty && Scan.endOfToken(in: span, from: 0, to: span.count) == span.count
}

/// Whether a field of this name says where the body ends.
private func isReserved(_ name: String) -> Bool {
  let span = name.utf8Span.span
  return contentLength.matches(span, span.indices) || transferEncoding.matches(span, span.indices)
}

private let upgrade: CaselessWord = "upgrade"
private let host: CaselessWord = "host"
private let expect: CaselessWord = "expect"
private let connection: CaselessWord = "connection"
private let contentLength: CaselessWord = "content-length"
private let transferEncoding: CaselessWord = "transfer-encoding"

private func isFieldValue(_ text: String) -> Bool {
  let span = text.utf8Span.span
  return Scan.endOfFieldValue(in: span, from: 0, to: span.count) == span.count
}

/// A target is what a URL leaves after percent-encoding: visible ASCII (RFC 9112 3.2).
private func isTarget(_ text: String) -> Bool {
  let span = text.utf8Span.span
  for index in span.indices where span[index] <= 0x20 || span[index] >= 0x7f { return false }
  return !span.isEmpty
}
