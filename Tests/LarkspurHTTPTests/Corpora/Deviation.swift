import LarkspurHTTP

/// Where we answer otherwise than a suite expects. Everything that is not listed has to be as the suite says,
/// and what is listed has to be as it is listed: a row that is no longer true fails.
struct Deviation: Sendable {
  enum Suite: Sendable {
    case llhttp, goResponses, goErrors, wptStatusCodes, wptContentLengths, chromiumContentLengths, chromiumKeepAlive
  }

  enum Ours: Hashable, Sendable {
    /// The suite accepts it.
    case refused(ResponseError)
    /// The suite would use the connection again.
    case closing
    /// The suite would not.
    case persistent
  }

  var suite: Suite
  /// What the suite calls the case, or its input.
  var name: String
  var ours: Ours
  var reason: String

  static func of(_ suite: Suite, _ name: String) -> Deviation? {
    table.first { $0.suite == suite && $0.name == name }
  }

  private init(_ suite: Suite, _ name: String, _ ours: Ours, _ reason: String) {
    self.suite = suite
    self.name = name
    self.ours = ours
    self.reason = reason
  }

  static let table: [Deviation] = [
    // The start of a response.
    .init(
      .llhttp, "HTTP 304 with Content-Length", .refused(.notHTTP),
      "CRLF before a status line is what a lie about a length leaves"),
    .init(.llhttp, "HTTP 100 first, then 400", .refused(.notHTTP), "CRLF before a status line"),
    .init(.llhttp, "Should parse multiple events", .refused(.notHTTP), "CRLF before a status line"),
    .init(.llhttp, "Response starting with CRLF", .refused(.notHTTP), "CRLF before a status line"),
    .init(.llhttp, "RTSP response", .refused(.notHTTP), "only HTTP is spoken here"),
    .init(.llhttp, "ICE response", .refused(.notHTTP), "only HTTP is spoken here"),
    .init(.llhttp, "HTTP version 0.9", .refused(.versionUnsupported), "HTTP/0.9 has no heads"),
    .init(.chromiumKeepAlive, "HTTP/0.9 200 OK", .refused(.versionUnsupported), "HTTP/0.9 has no heads"),
    .init(
      .chromiumKeepAlive, "HTTP/0.9 200 OK\nconnection: keep-alive\n", .refused(.versionUnsupported),
      "HTTP/0.9 has no heads"),
    .init(
      .goErrors, "version HTTP/2.0", .refused(.versionUnsupported), "a major version other than 1 has another syntax"),
    .init(.goErrors, "status 000 OK", .refused(.statusInvalid), "a status is at least 100"),
    .init(.goErrors, "status 001 OK", .refused(.statusInvalid), "a status is at least 100"),
    .init(.wptStatusCodes, "HTTP/1.1 0 OK", .refused(.statusInvalid), "a status is three digits"),
    .init(.wptStatusCodes, "HTTP/1.1 1 OK", .refused(.statusInvalid), "a status is three digits"),
    .init(.wptStatusCodes, "HTTP/1.1 99 NOT OK", .refused(.statusInvalid), "a status is three digits"),
    .init(.wptStatusCodes, "HTTP/1.1 077 77", .refused(.statusInvalid), "a status is at least 100"),
    .init(.wptStatusCodes, "HTTP/1.1 099 HELLO", .refused(.statusInvalid), "a status is at least 100"),
    .init(
      .goResponses, "Issue 19989: two spaces between HTTP version and status.", .refused(.statusInvalid),
      "one space, as the grammar says"),
    .init(
      .goResponses, "golang.org/issue/4767: don't special-case multipart/byteranges responses", .refused(.bareLF),
      "lines end with CRLF"),

    // Content-Length.
    .init(
      .goErrors, "content-length 200 OK Content-Length:\r\nContent-Length:\r\n\r\nGoph",
      .refused(.contentLengthInvalid),
      "an empty length is not a number"),
    .init(
      .wptContentLengths, "Content-Length: aaaah\r\nContent-Length: aaaah", .refused(.contentLengthInvalid),
      "not a number"),
    .init(.wptContentLengths, "Content-Length: aaaah, aaaah", .refused(.contentLengthInvalid), "not a number"),
    .init(.wptContentLengths, "Content-Length: aaaah", .refused(.contentLengthInvalid), "not a number"),
    .init(.wptContentLengths, "Content-Length: 42s", .refused(.contentLengthInvalid), "not a number"),
    .init(.wptContentLengths, "Content-Length: 30s", .refused(.contentLengthInvalid), "not a number"),
    .init(.wptContentLengths, "Content-Length: -1", .refused(.contentLengthInvalid), "not a number"),
    .init(.wptContentLengths, "Content-Length: 0x20", .refused(.contentLengthInvalid), "not a decimal number"),
    .init(.wptContentLengths, "Content-Length: \"30\"", .refused(.contentLengthInvalid), "not a number"),
    .init(.wptContentLengths, "Content-Length: ", .refused(.contentLengthInvalid), "not a number"),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: \n", .refused(.contentLengthInvalid), "not a number"),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: abc\n", .refused(.contentLengthInvalid), "not a number"
    ),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: -10\n", .refused(.contentLengthInvalid), "not a number"
    ),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length:  +10\n", .refused(.contentLengthInvalid), "digits only"
    ),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: 23xb5\n", .refused(.contentLengthInvalid),
      "not a number"),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: 0xA\n", .refused(.contentLengthInvalid),
      "not a decimal number"),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: 40000000000000000000\n",
      .refused(.contentLengthInvalid),
      "it does not fit"),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: \u{b}10\n", .refused(.fieldValueInvalid),
      "a control character"),
    .init(
      .chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: \u{c}10\n", .refused(.fieldValueInvalid),
      "a control character"),
    .init(.chromiumContentLengths, "HTTP/1.1 200 OK\nContent-Length: 34\r\n", .refused(.bareCR), "a CR too many"),

    // Transfer-Encoding and chunks.
    .init(
      .llhttp, "`chunked` before other transfer-encoding", .refused(.transferCodingUnsupported),
      "a coding that we do not know"),
    .init(
      .llhttp, "multiple transfer-encoding where chunked is not the last one", .refused(.transferCodingUnsupported),
      "a coding that we do not know"),
    .init(
      .llhttp, "`chunkedchunked` transfer-encoding does not enable chunked enconding",
      .refused(.transferCodingUnsupported),
      "a coding that we do not know"),
    .init(
      .goErrors, "chunk size 0000000000000000", .refused(.fieldNameInvalid),
      "the suite reads the size alone; behind it stands a line that is no trailer"),
    .init(.goResponses, "Chunked response with Content-Length.", .closing, "both lengths at once may be an attack"),

    // Keep-alive.
    .init(
      .chromiumKeepAlive, "HTTP/1.0 200 OK\nproxy-connection: keep-alive\n", .closing,
      "Proxy-Connection is no field of HTTP"),
    .init(
      .chromiumKeepAlive, "HTTP/1.1 200 OK\nproxy-connection: close\n", .persistent,
      "Proxy-Connection is no field of HTTP"),
    .init(
      .chromiumKeepAlive, "HTTP/1.1 200 OK\nConnection: Upgrade\nProxy-Connection: close\n", .persistent,
      "Proxy-Connection is no field of HTTP"),
    .init(
      .chromiumKeepAlive, "HTTP/1.1 200 OK\nProxy-Connection: close\nConnection: Transfer-Encoding\n", .persistent,
      "Proxy-Connection is no field of HTTP"),
    .init(
      .chromiumKeepAlive, "HTTP/1.1 200 OK\nConnection: keep-alive\nConnection: close\n", .closing,
      "close wins wherever it stands (RFC 9112 9.3)"),
    .init(
      .chromiumKeepAlive, "HTTP/1.0 200 OK\nConnection: keep-alive\nConnection: close\n", .closing,
      "close wins wherever it stands (RFC 9112 9.3)"),
  ]
}
