import LarkspurBytes

/// Writes a request head. Bytes that would change the structure of the message (CR, LF, NUL, misplaced white space) are
/// refused with an error that names the part; the writer never splits, escapes or repairs anything.
///
/// ```swift
/// var writer = try RequestWriter(method: "GET", target: "/index.html", host: "example.org")
/// try writer.field("Accept", "*/*")
/// let request = writer.finish()
/// ```
public struct RequestWriter: Sendable {
  /// How the length of the body is announced (RFC 9112 6).
  public enum Body: Hashable, Sendable {
    /// No body. Methods that usually have one (POST, PUT, PATCH) announce `Content-Length: 0` (RFC 9110 8.6).
    case none
    case length(UInt)
    /// The chunked coding: see `ChunkedEncoder`.
    case chunked
  }

  /// Class of a request method, which decides whether the request may be repeated or pipelined.
  enum Method: Hashable, Sendable {
    /// A safe method (RFC 9110 9.2.1) except TRACE: the request reads, and changes nothing.
    case safe
    /// Another idempotent method (RFC 9110 9.2.2): repeating the request has no further effect.
    case idempotent
    case other

    init(_ name: String) {
      switch name {
      case "GET", "HEAD", "OPTIONS": self = .safe
      case "PUT", "DELETE", "TRACE": self = .idempotent
      default: self = .other
      }
    }
  }

  fileprivate var bytes: [UInt8] = []
  private let method: Method
  fileprivate var context = RequestContext()
  private var usuallyHasBody = false
  private let recipient: RequestHead.Recipient

  /// Starts a head with its request line and its `Host` field.
  ///
  /// - Parameters:
  ///   - target: The request target. To a proxy it is in absolute form, `http://host/path`, or, with CONNECT,
  ///     `host:port` (RFC 9112 3.2).
  ///   - host: The value of `Host`, which may be empty.
  ///   - recipient: The first reader of the head.
  public init(
    method: String, target: String, host: String, to recipient: RequestHead.Recipient = .origin
  ) throws(RequestError) {
    try self.init(method, target, recipient)
    try start(host: host)
  }

  /// Starts a head with a request line and fields that have been checked and written before.
  public init(
    method: String, target: String, _ fields: SerializedFields, to recipient: RequestHead.Recipient = .origin
  ) throws(RequestError) {
    try self.init(method, target, recipient)
    bytes.append(contentsOf: fields.bytes)
    context.adopt(fields.context)
  }

  /// Writes the method and the target.
  private init(_ method: String, _ target: String, _ recipient: RequestHead.Recipient) throws(RequestError) {
    self.recipient = recipient
    self.method = Method(method)
    // Performance: most methods are GET, and comparisons of unequal strings are not cheap.
    if method != "GET" {
      guard isToken(method) else { throw .methodInvalid(method) }
      switch method {
      case "HEAD": context.method = .head
      case "CONNECT": context.method = .connect
      case "POST", "PUT", "PATCH": usuallyHasBody = true
      default: break
      }
    }
    guard isTarget(target), recipient == .origin || method == "CONNECT" || target.hasPrefix("http://") else {
      throw .targetInvalid(target)
    }
    bytes.reserveCapacity(512)
    bytes.append(copying: method.utf8Span.span)
    bytes.append(ASCII.space)
    bytes.append(copying: target.utf8Span.span)
  }

  /// Ends the request line and writes `Host`.
  private mutating func start(host: String) throws(RequestError) {
    bytes.append(contentsOf: " HTTP/1.1\r\n".utf8)
    // RFC 9110 7.2: Host comes first, and is sent even when it is empty.
    guard isFieldValue(host) else { throw .fieldValueInvalid(name: "Host") }
    append("Host", host)
  }

  public mutating func field(_ name: String, _ value: String) throws(RequestError) {
    guard isToken(name) else { throw .fieldNameInvalid(name) }
    guard isFieldValue(value) else { throw .fieldValueInvalid(name: name) }
    let span = name.utf8Span.span
    // RFC 9112 3.2: a second Host line makes a request invalid, and two servers may see two different hosts.
    guard !isReserved(name), !KnownToken.host.matches(span, span.indices) else { throw .fieldReserved(name: name) }
    // RFC 9110 11.7.2: this field is for the proxy, and must not reach a server behind it.
    guard recipient == .proxy || !isForProxies(name) else { throw .fieldForProxies(name: name) }
    if KnownToken.upgrade.matches(span, span.indices) { context.offersUpgrade = true }
    if KnownToken.connection.matches(span, span.indices) {
      // RFC 9112 9.6: after `close` no further request is sent, whatever the server answers.
      let options = value.split(separator: ",").map { $0.lowercased().filter { $0 != " " && $0 != "\t" } }
      if options.contains("close") { context.closesConnection = true }
    }
    if KnownToken.expect.matches(span, span.indices), value.lowercased() == "100-continue" {
      context.expectsContinue = true
    }
    append(name, value)
  }

  /// Ends the head.
  public consuming func finish(body: Body = .none) -> RequestHead {
    switch body {
    case .none:
      context.expectsContinue = false
      if usuallyHasBody { append("Content-Length", "0") }
    case .length(let length): append("Content-Length", String(length))
    case .chunked: append("Transfer-Encoding", "chunked")
    }
    bytes.append(ASCII.cr)
    bytes.append(ASCII.lf)
    return RequestHead(bytes: bytes, context: context, recipient: recipient, body: body, method: method)
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

/// The part of a head that many requests to one host share, checked and written once: everything after the target.
public struct SerializedFields: Sendable {
  fileprivate let bytes: [UInt8]
  fileprivate let context: RequestContext

  public init(host: String, _ fields: FieldList) throws(RequestError) {
    var writer = try RequestWriter(method: "GET", target: "/", host: host)
    for field in fields { try writer.field(field.name, field.value) }
    bytes = Array(writer.bytes["GET /".utf8.count...])
    context = writer.context
  }
}

extension RequestContext {
  /// Adds the facts that the fields of `other` imply.
  fileprivate mutating func adopt(_ other: RequestContext) {
    if other.offersUpgrade { offersUpgrade = true }
    if other.closesConnection { closesConnection = true }
    if other.expectsContinue { expectsContinue = true }
  }
}

/// A finished request head, which may be sent any number of times.
public struct RequestHead: Hashable, Sendable {
  /// The first reader of a head. A connection sends only heads that are meant for its peer.
  public enum Recipient: Hashable, Sendable {
    case origin
    /// A proxy, which gets a request for a resource or for a tunnel.
    case proxy
  }

  public let bytes: [UInt8]
  public let context: RequestContext
  public let recipient: Recipient
  private let body: RequestWriter.Body
  private let method: RequestWriter.Method

  /// Whether the body has to be sent in the chunked coding.
  public var isChunked: Bool { if case .chunked = body { true } else { false } }

  init(
    bytes: [UInt8], context: RequestContext, recipient: Recipient, body: RequestWriter.Body,
    method: RequestWriter.Method
  ) {
    self.bytes = bytes
    self.context = context
    self.recipient = recipient
    self.body = body
    self.method = method
  }

  /// Whether the request may be sent again although it may have been processed (RFC 9110 9.2.2).
  public var isIdempotent: Bool { method != .other }

  /// Whether the request may be sent again after a lost connection, as long as no response has arrived: it is
  /// idempotent, or its body waits for the server's consent, without which nothing of the body is sent.
  public var mayBeSentAgain: Bool { isIdempotent || context.expectsContinue }

  /// Whether the request may follow a request that has not been answered.
  public var isPipelinable: Bool {
    // A queue of heads has no room for a body.
    method == .safe && body == .none && !context.closesConnection && !context.offersUpgrade
  }

  /// Returns whether the head announces a body of `count` bytes, or a chunked one. The server would read a longer
  /// body's rest as the next request, and the next request as the rest of a shorter body.
  public func allows(bodyBytes count: Int) -> Bool {
    switch body {
    case .none: count == 0
    case .length(let length): length == UInt(count)
    case .chunked: true
    }
  }
}

/// Encodes a request body in the chunked coding (RFC 9112 7.1).
public enum ChunkedEncoder {
  /// Returns the bytes to send before a chunk's data.
  ///
  /// - Parameter count: The size of the data in bytes, above zero: an empty chunk would end the body.
  public static func start(ofChunk count: Int) -> [UInt8] {
    Array((String(count, radix: 16) + "\r\n").utf8)
  }

  /// The bytes to send after a chunk's data.
  public static let endOfChunk: [UInt8] = [ASCII.cr, ASCII.lf]

  /// Returns the last chunk and the trailer section.
  public static func end(trailers: FieldList = []) throws(RequestError) -> [UInt8] {
    var bytes = Array("0\r\n".utf8)
    for field in trailers {
      let (name, value) = (field.name, field.value)
      guard isFieldValue(value) else { throw .fieldValueInvalid(name: name) }
      try check(trailer: name)
      bytes.append(contentsOf: "\(name): \(value)\r\n".utf8)
    }
    bytes.append(contentsOf: endOfChunk)
    return bytes
  }

  /// Checks whether a field of this name may stand in the trailer section of a request.
  public static func check(trailer name: String) throws(RequestError) {
    guard isToken(name) else { throw .fieldNameInvalid(name) }
    // RFC 9110 6.5.1: these fields come too late in trailers, and a receiver that merges them into the head misreads
    // the end of the body.
    guard !isReserved(name) else { throw .fieldReserved(name: name) }
    guard !isForProxies(name) else { throw .fieldForProxies(name: name) }
    let lowercased = name.lowercased()
    guard !lowercased.hasPrefix("if-"), !neededBeforeTheBody.contains(lowercased) else {
      throw .fieldNotForTrailers(name: name)
    }
  }

  /// Fields that are evaluated before the content (RFC 9110 6.5.1): for framing, routing, authentication, modifiers of
  /// the request, controls, and the format of the content.
  private static let neededBeforeTheBody: Set<String> = [
    "authorization", "cache-control", "connection", "content-encoding", "content-range", "content-type", "cookie",
    "expect", "host", "keep-alive", "max-forwards", "pragma", "proxy-authenticate", "proxy-connection", "range", "te",
    "trailer", "upgrade", "www-authenticate",
  ]
}

/// Whether a text is a token (RFC 9110 5.6.2).
func isToken(_ text: String) -> Bool {
  let span = text.utf8Span.span
  return !span.isEmpty && Scan.endOfToken(in: span, from: 0, to: span.count) == span.count
}

/// Returns whether a field of this name delimits the body.
private func isReserved(_ name: String) -> Bool {
  let span = name.utf8Span.span
  return KnownToken.contentLength.matches(span, span.indices) || KnownToken.transferEncoding.matches(span, span.indices)
}

private func isForProxies(_ name: String) -> Bool {
  let span = name.utf8Span.span
  return KnownToken.proxyAuthorization.matches(span, span.indices)
}

private func isFieldValue(_ text: String) -> Bool {
  let span = text.utf8Span.span
  return Scan.endOfFieldValue(in: span, from: 0, to: span.count) == span.count
}

/// Returns whether the text is a request target: visible ASCII, as percent-encoding leaves it (RFC 9112 3.2).
private func isTarget(_ text: String) -> Bool {
  let span = text.utf8Span.span
  for index in span.indices where span[index] <= 0x20 || span[index] >= 0x7f { return false }
  return !span.isEmpty
}
