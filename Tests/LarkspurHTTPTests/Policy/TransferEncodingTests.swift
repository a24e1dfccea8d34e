import FuzzOracles
import LarkspurHTTP
import Testing

@Suite struct TransferEncodingTests {
  private func read(
    _ lines: String, version: String = "1.1", body: String = "2\r\nhi\r\n0\r\n\r\n",
    requests: [RequestContext] = [.get],
    sourceLocation: SourceLocation = #_sourceLocation
  ) -> Transcript {
    LarkspurHTTPTests.read(
      "HTTP/\(version) 200 OK\r\n\(lines)\r\n\r\n\(body)", requests: requests, sourceLocation: sourceLocation)
  }

  @Test(arguments: ["chunked", "Chunked", "CHUNKED", "\tcHuNkEd "]) func chunkedInAnyLetterCase(coding: String) {
    let transcript = read("Transfer-Encoding:\(coding)")
    #expect(transcript.heads.first?.framing == .chunked)
    #expect(transcript.heads.first?.isPersistent == true)
    #expect(transcript.entries.dropFirst() == [.body(Array("hi".utf8)), .end(trailers: [])])
  }

  /// RFC 9112 6.3: `Transfer-Encoding` overrides `Content-Length`. A message with both may be an attack, so the
  /// connection ends.
  @Test(arguments: [
    "Content-Length: 3\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3",
  ])
  func itBeatsContentLength(lines: String) {
    let transcript = read(lines)
    #expect(transcript.heads.first?.framing == .chunked)
    #expect(transcript.heads.first?.isPersistent == false)
    #expect(transcript.entries.dropFirst() == [.body(Array("hi".utf8)), .end(trailers: [])])
  }

  /// CVE-2022-1705: the value is `chunked` and nothing else, or the response is refused.
  @Test(arguments: [
    "gzip", "identity", "", " ", "chunkedx", "xchunked", "\"chunked\"", "chunked;q=1", "gzip, chunked", "chunked, gzip",
    "chunked, identity", "identity, chunked", "chunked, chunked", "chunked,", ",chunked", "chun\tked", "chunked gzip",
    "chunked\r\nTransfer-Encoding: chunked", "chunked\r\nTransfer-Encoding: gzip", "gzip\r\nTransfer-Encoding: chunked",
    "chunked\r\nTransfer-Encoding:", "\u{212a}chunked", "chun\u{212a}ed",
  ])
  func otherCodings(value: String) {
    #expect(read("Transfer-Encoding: \(value)").entries == [.failed(.transferCodingUnsupported)])
  }

  /// RFC 9112 6.1: HTTP/1.0 does not have the field. The body is framed without it, and the connection ends.
  @Test(arguments: ["chunked", "gzip", ""]) func ignoredInOneDotZero(coding: String) {
    let transcript = read("Transfer-Encoding: \(coding)\r\nConnection: keep-alive", version: "1.0")
    #expect(transcript.heads.first?.framing == .untilClose)
    #expect(transcript.body == Array("2\r\nhi\r\n0\r\n\r\n".utf8))

    let withLength = read(
      "Transfer-Encoding: \(coding)\r\nContent-Length: 12\r\nConnection: keep-alive", version: "1.0")
    #expect(withLength.heads.first?.framing == .length(12))
    #expect(withLength.heads.first?.isPersistent == false)
    #expect(withLength.body == Array("2\r\nhi\r\n0\r\n\r\n".utf8))
    #expect(withLength.error == nil)
  }

  @Test func whereNoBodyFollows() {
    let transcript = read("Transfer-Encoding: chunked", body: "", requests: [.head])
    #expect(transcript.heads.first?.framing == BodyFraming.none)
    #expect(transcript.heads.first?.isPersistent == true)
  }
}
