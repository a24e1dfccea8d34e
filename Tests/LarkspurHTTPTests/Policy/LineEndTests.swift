import FuzzOracles
import LarkspurHTTP
import Testing

/// Lines end with CRLF. A CR or an LF by itself is an error wherever it stands: two parsers that see different
/// lines see different responses.
@Suite struct LineEndTests {
  @Test(arguments: [
    // In place of each CRLF of a head.
    "HTTP/1.1 200 OK\nA: b\r\n\r\n", "HTTP/1.1 200\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\r\n\n",
    "HTTP/1.1 200 OK\n\n", "HTTP/1.1 200 OK\r\nA:\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\n\r\n",
    // Inside a field.
    "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "HTTP/1.1 200 OK\r\nA\n: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\n c\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\nA: b\r\n\r\n",
  ])
  func bareLF(response: String) {
    #expect(read(response).entries == [.failed(.bareLF)])
  }

  /// CVE-2023-30589: a CR by itself does not end a field.
  @Test(arguments: [
    "HTTP/1.1 200 OK\rA: b\r\n\r\n", "HTTP/1.1 200\rA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n\rC: d\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\r\n\r\r\n",
    "HTTP/1.1 200 OK\r\r\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: \r b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r c\r\n\r\n",
  ])
  func bareCR(response: String) {
    #expect(read(response).entries == [.failed(.bareCR)])
  }

  /// A CR inside a name is first of all no token character.
  @Test func inAFieldName() {
    #expect(read("HTTP/1.1 200 OK\r\nA\r: b\r\n\r\n").error == .fieldNameInvalid)
    #expect(read("HTTP/1.1 200 OK\r\nA\r\n: b\r\n\r\n").error == .fieldNameInvalid)
  }

  /// CVE-2025-22871: an LF by itself does not end the line of a chunk's size.
  @Test(arguments: [
    ("5\nhello\r\n0\r\n\r\n", ResponseError.bareLF), ("5\r\nhello\r\n0\n\r\n", .bareLF),
    ("5\rhello\r\n0\r\n\r\n", .bareCR),
    ("5;a\nhello\r\n0\r\n\r\n", .chunkExtensionInvalid), ("5;a\rhello\r\n0\r\n\r\n", .bareCR),
    ("5\r\nhello\n0\r\n\r\n", .chunkEndMissing), ("5\r\nhello\r0\r\n\r\n", .chunkEndMissing),
    ("5\r\nhello\r\n0\r\nA: b\n\r\n", .bareLF), ("5\r\nhello\r\n0\r\nA: b\r\n\n", .bareLF),
    ("5\r\nhello\r\n0\r\n\r\r", .bareCR),
    ("5\r\nhello\r\n0\r\n\n", .bareLF),
  ])
  func inAChunkedBody(body: String, error: ResponseError) {
    #expect(read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(body)").error == error)
  }
}
