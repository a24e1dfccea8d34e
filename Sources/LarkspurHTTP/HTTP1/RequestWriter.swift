import LarkspurBytes

/// Writes a request head. What would change the message's shape (CR, LF, NUL, white space where none belongs)
/// is refused with an error that says which part; nothing is ever split, escaped or repaired.
///
/// ```swift
/// var writer = try RequestWriter(method: "GET", target: "/index.html", host: "example.org")
/// try writer.field("Accept", "*/*")
/// let request = writer.finish()
/// ```
public struct RequestWriter: Sendable {
  /// How the body's length is told (RFC 9112 6).
  public enum Body: Hashable, Sendable {
    /// No body. Methods that usually carry one (POST, PUT, PATCH) say `Content-Length: 0` (RFC 9110 8.6).
    case none
    case length(UInt)
    /// The chunked coding: see `ChunkedEncoder`.
    case chunked
  }

  /// What may be done with a request when its fate is not known.
  enum Method: Hashable, Sendable {
    /// RFC 9110 9.2.1, but for TRACE: it asks, and changes nothing.
    case safe
    /// RFC 9110 9.2.2: several times is as good as once.
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

  /// To a proxy the target goes in absolute form, `http://host/path`, or with CONNECT as `host:port` (RFC 9112 3.2).
  public init(
    method: String, target: String, host: String, to recipient: RequestHead.Recipient = .origin
  ) throws(RequestError) {
    try self.init(method, target, recipient)
    try begin(host: host)
  }

  /// A head that goes on with what has been checked and written before.
  public init(
    method: String, target: String, _ common: CommonFields, to recipient: RequestHead.Recipient = .origin
  ) throws(RequestError) {
    try self.init(method, target, recipient)
    bytes.append(contentsOf: common.bytes)
    context.adopt(common.context)
  }

  /// With the method and the target written.
  private init(_ method: String, _ target: String, _ recipient: RequestHead.Recipient) throws(RequestError) {
    self.recipient = recipient
    self.method = Method(method)
    // Most are GET, and no string is cheap to compare with one that it is not.
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

  /// Ends the request line.
  private mutating func begin(host: String) throws(RequestError) {
    bytes.append(contentsOf: " HTTP/1.1\r\n".utf8)
    // RFC 9110 7.2: Host comes first, and is sent even when it is empty.
    guard isFieldValue(host) else { throw .fieldValueInvalid(name: "Host") }
    append("Host", host)
  }

  public mutating func field(_ name: String, _ value: String) throws(RequestError) {
    guard isToken(name) else { throw .fieldNameInvalid(name) }
    guard isFieldValue(value) else { throw .fieldValueInvalid(name: name) }
    let span = name.utf8Span.span
    // RFC 9112 3.2: a second Host line makes a request bad, and is how two servers come to see two hosts.
    guard !isReserved(name), !Word.host.matches(span, span.indices) else { throw .fieldReserved(name: name) }
    // RFC 9110 11.7.2: for the proxy, and for nobody behind it.
    guard recipient == .proxy || !isForProxies(name) else { throw .fieldForProxies(name: name) }
    if Word.upgrade.matches(span, span.indices) { context.offersUpgrade = true }
    if Word.connection.matches(span, span.indices) {
      // RFC 9112 9.6: after `close` no further request is sent, whatever the server says.
      let options = value.split(separator: ",").map { $0.lowercased().filter { $0 != " " && $0 != "\t" } }
      if options.contains("close") { context.closesConnection = true }
    }
    if Word.expect.matches(span, span.indices), value.lowercased() == "100-continue" { context.expectsContinue = true }
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

/// What many requests to one host have in common, checked and written once: all that comes behind the target.
public struct CommonFields: Sendable {
  fileprivate let bytes: [UInt8]
  fileprivate let context: RequestContext

  public init(host: String, _ fields: [(name: String, value: String)]) throws(RequestError) {
    var writer = try RequestWriter(method: "GET", target: "/", host: host)
    for field in fields { try writer.field(field.name, field.value) }
    bytes = Array(writer.bytes["GET /".utf8.count...])
    context = writer.context
  }
}

extension RequestContext {
  /// What the fields say that have been added.
  fileprivate mutating func adopt(_ other: RequestContext) {
    if other.offersUpgrade { offersUpgrade = true }
    if other.closesConnection { closesConnection = true }
    if other.expectsContinue { expectsContinue = true }
  }
}

/// A request head, ready to be sent as often as one likes.
public struct RequestHead: Hashable, Sendable {
  /// Who reads the head first. A connection sends only what is for its other end.
  public enum Recipient: Hashable, Sendable {
    case origin
    /// A proxy that is asked for the resource, or for a tunnel.
    case proxy
  }

  public let bytes: [UInt8]
  public let context: RequestContext
  public let recipient: Recipient
  private let body: RequestWriter.Body
  private let method: RequestWriter.Method

  /// Whether the body has to come in the chunked coding.
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

  /// Whether the request may be sent again without knowing what became of it (RFC 9110 9.2.2).
  public var isIdempotent: Bool { method != .other }

  /// The same of one whose body waits for the server's consent: without it nothing of the body has left.
  public var mayBeSentAgain: Bool { isIdempotent || context.expectsContinue }

  /// Whether the request may follow another one that has not been answered.
  public var isPipelinable: Bool {
    // A body wants a framing of its own, which a queue of heads does not give it.
    method == .safe && body == .none && !context.closesConnection && !context.offersUpgrade
  }

  /// Whether a body of so many bytes is what the head announces. Any other would end in the next request, or be it.
  public func allows(bodyBytes count: Int) -> Bool {
    switch body {
    case .none: count == 0
    case .length(let length): length == UInt(count)
    case .chunked: true
    }
  }
}

/// Puts the chunked coding on a request body (RFC 9112 7.1).
public enum ChunkedEncoder {
  /// What goes before a chunk's data. `count` is above zero: an empty chunk would end the body.
  public static func start(ofChunk count: Int) -> [UInt8] {
    Array((String(count, radix: 16) + "\r\n").utf8)
  }

  /// What goes behind a chunk's data.
  public static let endOfChunk: [UInt8] = [ASCII.cr, ASCII.lf]

  /// The last chunk and the trailer section.
  public static func end(trailers: [(name: String, value: String)] = []) throws(RequestError) -> [UInt8] {
    var bytes = Array("0\r\n".utf8)
    for (name, value) in trailers {
      guard isToken(name) else { throw .fieldNameInvalid(name) }
      guard isFieldValue(value) else { throw .fieldValueInvalid(name: name) }
      // RFC 9110 6.5.1: these would come too late, and a receiver that merged them would lose its place.
      guard !isReserved(name) else { throw .fieldReserved(name: name) }
      guard !isForProxies(name) else { throw .fieldForProxies(name: name) }
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
  return Word.contentLength.matches(span, span.indices) || Word.transferEncoding.matches(span, span.indices)
}

private func isForProxies(_ name: String) -> Bool {
  let span = name.utf8Span.span
  return Word.proxyAuthorization.matches(span, span.indices)
}

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
