import FuzzOracles
import LarkspurBytes
import LarkspurHTTP
import Testing

/// All lines of a section end with CRLF, or all with LF. Mixtures and a lone CR are errors everywhere: two parsers that
/// see different lines see different responses.
@Suite struct LineEndTests {
  @Test(arguments: [
    // LF in place of each CRLF of a head.
    "HTTP/1.1 200 OK\nA: b\r\n\r\n", "HTTP/1.1 200\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\r\n\n",
    "HTTP/1.1 200 OK\n\r\n", "HTTP/1.1 200 OK\r\nA:\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\n\r\n",
    // LF inside a field.
    "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "HTTP/1.1 200 OK\r\nA\n: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\n c\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\nA: b\r\n\r\n",
    // CRLF after a status line that ends with LF.
    "HTTP/1.1 200 OK\nA: b\n\r\n", "HTTP/1.1 200\n\r\n", "HTTP/1.1 200 \nA: b\n c\r\n\n", "HTTP/1.1 200 OK\nA:\r\n\n",
    "HTTP/1.1 200 OK\nA: b\nC: d\r\n\n",
  ])
  func bareLF(response: String) {
    #expect(read(response).entries == [.failed(.bareLF)])
  }

  /// CVE-2023-30589: a lone CR does not end a field.
  @Test(arguments: [
    "HTTP/1.1 200 OK\rA: b\r\n\r\n", "HTTP/1.1 200\rA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\rC: d\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n\rC: d\r\n\r\n",
    "HTTP/1.1 200 OK\r\nA: b\r\n\r\r\n",
    "HTTP/1.1 200 OK\r\r\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: \r b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r c\r\n\r\n",
    "HTTP/1.1 200 OK\nA: b\r\r\n\n", "HTTP/1.1 200 OK\nA: b\rC: d\n\n", "HTTP/1.1 200 OK\nA: b\n\r\r\n",
    "HTTP/1.1 200 OK\nA: b\n\rC: d\n\n",
  ])
  func bareCR(response: String) {
    #expect(read(response).entries == [.failed(.bareCR)])
  }

  /// A CR inside a name is reported as an invalid name character.
  @Test func inAFieldName() {
    #expect(read("HTTP/1.1 200 OK\r\nA\r: b\r\n\r\n").error == .fieldNameInvalid)
    #expect(read("HTTP/1.1 200 OK\r\nA\r\n: b\r\n\r\n").error == .fieldNameInvalid)
    #expect(read("HTTP/1.1 200 OK\nA\r: b\n\n").error == .fieldNameInvalid)
    #expect(read("HTTP/1.1 200 OK\nA\n: b\n\n").error == .fieldNameInvalid)
  }

  /// CVE-2025-22871: a lone LF does not end the line of a chunk size.
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

  // MARK: - Bare LF line ends

  /// RFC 9112 2.2: a recipient may take a single LF for a line end.
  @Test(arguments: [
    ("HTTP/1.1 200 OK\nContent-Length: 2\nA: b\n\nhi", "OK"), ("HTTP/1.1 200\nContent-Length: 2\nA: b\n\nhi", ""),
    ("HTTP/1.1 200 \nA:b \t\nContent-Length:2\n\nhi", ""),
    ("HTTP/1.1 200 All right\nA: \n \n\tb\nContent-Length:\n 2\n\nhi", "All right"),
  ])
  func linesMayAllEndWithLF(response: String, reason: String) throws {
    let transcript = read(response + "HTTP/1.1 204 X\r\n\r\n", requests: [.get, .get])
    #expect(transcript.error == nil)
    #expect(transcript.heads.map(\.status) == [200, 204])
    let head = try #require(transcript.heads.first)
    #expect(head.reason == reason && head.framing == .length(2) && head.isPersistent)
    #expect(head.fields.filter { $0.name == "A" }.map(\.value) == ["b"])
    #expect(transcript.lines.contains("body hi"))
  }

  @Test func aHeadOfLFAlone() {
    #expect(read("HTTP/1.1 204\n\n").lines == ["head 1.1 204 , none, persistent", "end"])
    // Bytes after the empty line are content, whatever ends their lines.
    #expect(read("HTTP/1.1 200 OK\n\n\r\nA: b\r\n\n").lines.dropFirst() == ["body \r\nA: b\r\n\n", "end"])
  }

  /// Each head may have its own kind of line ends: a proxy's interim response does not come from the server.
  @Test(arguments: ["\r\n", "\n"], ["\r\n", "\n"]) func eachHeadDecidesForItself(first: String, second: String) {
    let interim = "HTTP/1.1 103 X\(first)Link: a\(first)\(first)"
    let final = "HTTP/1.1 200 X\(second)A: b\(second)Content-Length: 0\(second)\(second)"
    let transcript = read(interim + final + interim + final, requests: [.get, .get])
    #expect(transcript.error == nil)
    #expect(transcript.interims.map(\.status) == [103, 103] && transcript.heads.map(\.status) == [200, 200])
  }

  @Test func behindCONNECTAndUpgradesTheRestIsTheOtherProtocols() {
    let connected = read("HTTP/1.1 200 Connected\nVia: x\n\n\u{16}\r\n", requests: [.connect])
    #expect(connected.lines.last == "tunnel \u{16}\r\n")
    let upgraded = read("HTTP/1.1 101 X\nUpgrade: x\n\n\n", requests: [.upgrade])
    #expect(upgraded.lines.last == "tunnel \n")
  }

  /// Chunk lines always end with CRLF. Where the head's lines end with LF, the trailer section may have either kind.
  @Test(
    arguments: [
      ("5\r\nhello\r\n0\r\n\r\n", nil), ("5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n", nil), ("5\r\nhello\r\n0\r\n\n", nil),
      ("5\r\nhello\r\n0\r\nA: b\n c\n\n", nil),
      ("5\r\nhello\r\n0\r\nA: b\n\r\n", .bareLF), ("5\r\nhello\r\n0\r\nA: b\r\n\n", .bareLF),
      ("5\r\nhello\r\n0\r\nA: b\nC: d\r\n\n", .bareLF), ("5\r\nhello\r\n0\r\nA: b\r\nC: d\n\r\n", .bareLF),
      ("5\r\nhello\r\n0\r\nA: b\n\r\r", .bareCR),
      ("5\nhello\r\n0\r\n\r\n", .bareLF), ("5\r\nhello\r\n0\n\n", .bareLF), ("5\r\nhello\n0\r\n\r\n", .chunkEndMissing),
      ("5;a\nhello\r\n0\r\n\r\n", .chunkExtensionInvalid),
    ] as [(String, ResponseError?)])
  func chunksBehindAHeadOfLF(body: String, error: ResponseError?) {
    let transcript = read("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n\(body)")
    #expect(transcript.error == error)
    if body.contains("A: b"), error == nil {
      #expect(transcript.entries.last == .end(trailers: [.init(name: "A", value: "b c")]))
    }
  }

  /// The limits apply to lines of either kind.
  @Test func limitsHoldForThem() {
    var limits = Limits()
    limits.headBytesMax = 30
    #expect(read("HTTP/1.1 204 OK\nA: 456789012\n\n", limits: limits).error == nil)
    #expect(read("HTTP/1.1 204 OK\nA: 4567890123\n\n", limits: limits).error == .headTooLarge(limit: 30))
    limits = Limits()
    limits.fieldLineBytesMax = 16
    #expect(read("HTTP/1.1 204 OKAY\nA: 4567890123456\n\n", limits: limits).error == .fieldLineTooLong(limit: 16))
    #expect(read("HTTP/1.1 204 OK\nA: 4567890123456\n\n", limits: limits).error == nil)
    #expect(read("HTTP/1.1 204 OK\nA: 45678901234567\n\n", limits: limits).error == .fieldLineTooLong(limit: 16))
    limits = Limits()
    limits.fieldsMax = 2
    #expect(read("HTTP/1.1 204 OK\nA: 1\nB: 2\n\n", limits: limits).error == nil)
    #expect(read("HTTP/1.1 204 OK\nA: 1\nB: 2\nC: 3\n\n", limits: limits).error == .tooManyFields(limit: 2))
  }
}
