import LarkspurHTTP

/// The cases in which our result differs from a suite's. All other cases have to match the suite, and each listed case
/// has to differ as listed, so that an outdated row fails.
struct Deviation: Sendable {
  enum Suite: Sendable {
    case llhttp, goResponses, goErrors, wptStatusCodes, wptContentLengths, chromiumContentLengths, chromiumKeepAlive
  }

  enum Ours: Hashable, Sendable {
    /// We refuse the input, and the suite accepts it.
    case refused(ResponseError)
    /// We accept the input, and the suite refuses it, or accepts it only in a lenient mode.
    case accepted
    /// We close the connection, and the suite would reuse it.
    case closing
    /// We reuse the connection, and the suite would close it.
    case persistent
  }

  var suite: Suite
  /// The suite's name for the case, or the case's input.
  var name: String
  var ours: Ours
  var reason: String

  static func of(_ suite: Suite, _ name: String) -> Deviation? {
    table.first { $0.suite == suite && $0.name == name }
  }

  private static func rows(_ suite: Suite, _ ours: Ours, _ reason: String, _ names: String...) -> [Deviation] {
    names.map { Deviation(suite: suite, name: $0, ours: ours, reason: reason) }
  }

  static let table = [startOfResponses, lengths, codings, persistence].joined().flatMap { $0 }

  private static let startOfResponses: [[Deviation]] = [
    rows(
      .llhttp, .refused(.notHTTP), "CRLF before a status line is what is left of a body longer than it said",
      "HTTP 304 with Content-Length",
      "HTTP 100 first, then 400",
      "Should parse multiple events",
      "Response starting with CRLF"),
    rows(.llhttp, .refused(.notHTTP), "only HTTP is spoken here", "RTSP response", "ICE response"),
    rows(.llhttp, .refused(.versionUnsupported), "HTTP/0.9 has no heads", "HTTP version 0.9"),
    rows(
      .chromiumKeepAlive, .refused(.versionUnsupported), "HTTP/0.9 has no heads",
      "HTTP/0.9 200 OK",
      "HTTP/0.9 200 OK\nconnection: keep-alive\n"),
    rows(
      .goErrors, .refused(.versionUnsupported), "another major version has another syntax",
      "version HTTP/2.0"),
    rows(
      .goErrors, .refused(.statusInvalid), "a status is three digits, from 100 on",
      "status 000 OK",
      "status 001 OK"),
    rows(
      .wptStatusCodes, .refused(.statusInvalid), "a status is three digits, from 100 on",
      "HTTP/1.1 0 OK",
      "HTTP/1.1 1 OK",
      "HTTP/1.1 99 NOT OK",
      "HTTP/1.1 077 77",
      "HTTP/1.1 099 HELLO"),
    rows(
      .llhttp, .accepted, "the lines of a head may all end with LF (RFC 9112 2.2)",
      "Only LFs present and no body",
      "Only LFs present and no body (lenient)",
      "Only LFs present",
      "Only LFs present (lenient)",
      "No carriage ret",
      "No carriage ret (lenient)"),
    rows(
      .goResponses, .refused(.statusInvalid), "one space, as the grammar says",
      "Issue 19989: two spaces between HTTP version and status."),
  ]

  private static let lengths: [[Deviation]] = [
    rows(
      .goErrors, .refused(.contentLengthInvalid), "an empty length is no number",
      "content-length 200 OK Content-Length:\r\nContent-Length:\r\n\r\nGoph"),
    rows(
      .wptContentLengths, .refused(.contentLengthInvalid), "no plain decimal number, and no guess instead",
      "Content-Length: aaaah\r\nContent-Length: aaaah",
      "Content-Length: aaaah, aaaah",
      "Content-Length: aaaah",
      "Content-Length: 42s",
      "Content-Length: 30s",
      "Content-Length: -1",
      "Content-Length: 0x20",
      "Content-Length: \"30\"",
      "Content-Length: "),
    rows(
      .chromiumContentLengths, .refused(.contentLengthInvalid), "no plain decimal number, and no guess instead",
      "HTTP/1.1 200 OK\nContent-Length: \n",
      "HTTP/1.1 200 OK\nContent-Length: abc\n",
      "HTTP/1.1 200 OK\nContent-Length: -10\n",
      "HTTP/1.1 200 OK\nContent-Length:  +10\n",
      "HTTP/1.1 200 OK\nContent-Length: 23xb5\n",
      "HTTP/1.1 200 OK\nContent-Length: 0xA\n"),
    rows(
      .chromiumContentLengths, .refused(.contentLengthInvalid), "it does not fit",
      "HTTP/1.1 200 OK\nContent-Length: 40000000000000000000\n"),
    rows(
      .chromiumContentLengths, .refused(.fieldValueInvalid), "a control character",
      "HTTP/1.1 200 OK\nContent-Length: \u{b}10\n",
      "HTTP/1.1 200 OK\nContent-Length: \u{c}10\n"),
    rows(
      .chromiumContentLengths, .refused(.bareCR), "a CR too many",
      "HTTP/1.1 200 OK\nContent-Length: 34\r\n"),
  ]

  private static let codings: [[Deviation]] = [
    rows(
      .llhttp, .refused(.transferCodingUnsupported), "a coding that we do not know has an end that we do not know",
      "`chunked` before other transfer-encoding",
      "multiple transfer-encoding where chunked is not the last one",
      "`chunkedchunked` transfer-encoding does not enable chunked enconding"),
    rows(
      .goErrors, .refused(.fieldNameInvalid), "the suite reads the size alone; behind it stands what is no trailer",
      "chunk size 0000000000000000"),
  ]

  private static let persistence: [[Deviation]] = [
    rows(
      .goResponses, .closing, "both lengths at once may be an attack (RFC 9112 6.1)",
      "Chunked response with Content-Length."),
    rows(
      .chromiumKeepAlive, .closing, "Proxy-Connection is no field of HTTP",
      "HTTP/1.0 200 OK\nproxy-connection: keep-alive\n"),
    rows(
      .chromiumKeepAlive, .persistent, "Proxy-Connection is no field of HTTP",
      "HTTP/1.1 200 OK\nproxy-connection: close\n",
      "HTTP/1.1 200 OK\nConnection: Upgrade\nProxy-Connection: close\n",
      "HTTP/1.1 200 OK\nProxy-Connection: close\nConnection: Transfer-Encoding\n"),
    rows(
      .chromiumKeepAlive, .closing, "close wins wherever it stands (RFC 9112 9.3)",
      "HTTP/1.1 200 OK\nConnection: keep-alive\nConnection: close\n",
      "HTTP/1.0 200 OK\nConnection: keep-alive\nConnection: close\n"),
  ]
}
