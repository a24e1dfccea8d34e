import FuzzOracles
import LarkspurHTTP
import Testing

@Suite struct ChunkedBodyTests {
  private func read(
    _ body: String, requests: [RequestContext] = [.get], sourceLocation: SourceLocation = #_sourceLocation
  ) -> Transcript {
    LarkspurHTTPTests.read(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(body)", requests: requests, sourceLocation: sourceLocation
    )
  }

  @Test func chunksBecomeOneBody() {
    let transcript = read("5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n")
    #expect(transcript.entries.dropFirst() == [.body(Array("hello world".utf8)), .end(trailers: [])])
  }

  @Test func anEmptyBody() {
    #expect(read("0\r\n\r\n").entries.dropFirst() == [.end(trailers: [])])
  }

  /// Data that looks like framing is data.
  @Test func dataIsNotLookedAt() {
    #expect(read("9\r\n0\r\n\r\n\r\n0\r\r\n0\r\n\r\n").body == Array("0\r\n\r\n\r\n0\r".utf8))
  }

  // MARK: - Sizes

  @Test(arguments: ["2", "02", "0000000000000002"]) func oneToSixteenDigits(size: String) {
    #expect(read("\(size)\r\nhi\r\n0000000000000000\r\n\r\n").lines.suffix(2) == ["body hi", "end"])
  }

  @Test func digitsInAnyLetterCase() {
    #expect(read("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n").body.count == 20)
    let data = repeated("x", 0xfF)
    #expect(read("fF\r\n\(data)\r\n0\r\n\r\n").body.count == 0xff)
  }

  @Test(arguments: [
    "00000000000000002", "00000000000000000", "10000000000000000", "8000000000000000", "ffffffffffffffff",
    "fffffffffffffffffff",
  ])
  func tooLarge(size: String) {
    #expect(read("\(size)\r\nhi\r\n0\r\n\r\n").error == .chunkSizeTooLarge)
    #expect(read("\(size)").error == (size.count > 16 ? .chunkSizeTooLarge : .truncated(.chunkedBody)))
  }

  @Test func theLargest() {
    let transcript = read("7fffffffffffffff\r\nhi")
    #expect(transcript.body == Array("hi".utf8))
    #expect(transcript.error == .truncated(.chunkedBody))
  }

  @Test(arguments: [
    "", " 2", "2 ", "2\t", "\t2", "x", "0x2", "-2", "+2", "2,", "g", "2g", "２", "2 ;a", "\"2\"", "2\0", "\u{b}2", ";a",
  ])
  func notASize(size: String) {
    #expect(read("\(size)\r\nhi\r\n0\r\n\r\n").entries.dropFirst() == [.failed(.chunkSizeInvalid)])
    #expect(read("1\r\nx\r\n\(size)\r\n\r\n").error == .chunkSizeInvalid)
  }

  @Test(arguments: ["hix\r\n", "hi", "hi0\r\n", "hi\r\r\n", "hi \r\n"]) func dataLongerThanItsSize(data: String) {
    let transcript = read("2\r\n\(data)0\r\n\r\n")
    #expect(transcript.entries.dropFirst() == [.body(Array("hi".utf8)), .failed(.chunkEndMissing)])
  }

  // MARK: - Extensions

  @Test(arguments: [
    ";a", ";a=b", ";a=\"b\"", ";a=\"\"", ";a;b;c", "; a", "; a = b", ";\ta\t=\t\"b\"", ";a ;b", ";a=b ;c",
    ";a=\"b\" ; c",
    ";a=\"; \\\" \\\\ , =\"", ";a=\"b;c\"", ";a=\"größe\"", ";!#$%&'*+-.^_`|~=0", ";a=\"\t\"",
  ])
  func extensionsAreIgnored(text: String) {
    #expect(read("2\(text)\r\nhi\r\n0\(text)\r\n\r\n").lines.suffix(2) == ["body hi", "end"])
  }

  @Test(arguments: [
    ";", ";;", ";a;", "; ", ";=b", ";a=", ";a= ", ";a=;b", ";a b", ";a=b c", ";a=\"b", ";a=\"b\\\"", ";a=\"b\"c",
    ";a=b\"c\"",
    ";a=(b)", ";(a)", ";a\0", ";a=\"\0\"", ";a=\"\\\u{1}\"", ";a ", ";a=b ", ";a=\"b\" ", ";größe", ";a=größe", ";a==b",
    ";a=b=c",
  ])
  func malformedExtensions(text: String) {
    #expect(read("2\(text)\r\nhi\r\n0\r\n\r\n").error == .chunkExtensionInvalid)
    #expect(read("2\r\nhi\r\n0\(text)\r\n\r\n").error == .chunkExtensionInvalid)
  }

  /// A quoted string cannot contain the end of the line.
  @Test func aLineEndInAQuotedString() {
    #expect(read("2;a=\"\r\nhi\"\r\n0\r\n\r\n").error == .chunkExtensionInvalid)
    #expect(read("2;a=\"\nhi\"\r\n0\r\n\r\n").error == .chunkExtensionInvalid)
  }

  // MARK: - Trailers

  @Test func trailersFollowTheLastChunk() {
    let transcript = read("2\r\nhi\r\n0\r\nDigest: abc\r\nX:\r\n y\r\n\r\n")
    #expect(
      transcript.entries.last == .end(trailers: [.init(name: "Digest", value: "abc"), .init(name: "X", value: "y")]))
  }

  /// RFC 9110 6.5.1: a trailer never counts as a header field.
  /// CVE-2025-53643: trailers are read as trailers, and the next response begins behind them.
  @Test func trailersDecideNothing() {
    let transcript = read(
      "2\r\nhi\r\n0\r\nContent-Length: x\r\nTransfer-Encoding: gzip\r\nConnection: close\r\n\r\nHTTP/1.1 204 X\r\n\r\n",
      requests: [.get, .get])
    #expect(transcript.heads.map(\.status) == [200, 204])
    #expect(transcript.heads.first?.isPersistent == true)
    #expect(transcript.heads.first?.fields.map(\.name) == ["Transfer-Encoding"])
    #expect(transcript.error == nil)
  }

  @Test(arguments: [
    (" X: y", ResponseError.whitespaceBeforeFirstField), ("X : y", .whitespaceInFieldName), ("X", .fieldNameInvalid),
    (": y", .fieldNameInvalid), ("X: \0", .fieldValueInvalid), ("hi", .fieldNameInvalid),
  ])
  func trailersAreHeldToTheSameRules(line: String, error: ResponseError) {
    #expect(read("2\r\nhi\r\n0\r\n\(line)\r\n\r\n").error == error)
  }

  @Test func trailersOfOneResponseAreNotThoseOfTheNext() {
    let transcript = read(
      "0\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", requests: [.get, .get])
    let ends = transcript.entries.filter { if case .end = $0 { true } else { false } }
    #expect(ends == [.end(trailers: [.init(name: "X", value: "y")]), .end(trailers: [])])
  }

  /// Bytes behind the final empty line belong to the next response.
  @Test func whatFollows() {
    #expect(read("0\r\n\r\n\r\n").error == .unsolicitedBytes)
    #expect(read("0\r\n\r\n0\r\n\r\n", requests: [.get, .get]).error == .notHTTP)
  }
}
