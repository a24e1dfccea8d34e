import FuzzOracles
import LarkspurHTTP
import Testing

/// Several responses on one connection, and bytes that answer no request.
@Suite struct PipelineTests {
  private static let three =
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nAAAHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    + "4\r\nBBBB\r\n0\r\n\r\nHTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"

  @Test func threeInOneBuffer() {
    let transcript = read(Self.three, requests: [.get, .get, .get])
    #expect(
      transcript.lines == [
        "head 1.1 200 OK, length(3), persistent", "  Content-Length: 3", "body AAA", "end",
        "head 1.1 201 Created, chunked, persistent", "  Transfer-Encoding: chunked", "body BBBB", "end",
        "head 1.1 304 Not Modified, none, persistent", "  ETag: x", "end",
      ])
  }

  @Test func eachHasItsOwnRequest() {
    let transcript = read(
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
      requests: [.head, .get])
    #expect(transcript.endCount == 2)
    #expect(transcript.body == Array("abc".utf8))
  }

  @Test func oneMoreThanWasAskedFor() {
    let transcript = read(Self.three, requests: [.get, .get])
    #expect(transcript.endCount == 2)
    #expect(transcript.error == .unsolicitedBytes)
  }

  @Test func oneFewerThanWasAskedFor() {
    let transcript = read(Self.three, requests: [.get, .get, .get, .get])
    #expect(transcript.endCount == 3)
    #expect(transcript.error == .truncated(.beforeHead))
  }

  /// After a response with `Connection: close`, further bytes answer no request.
  @Test func nothingCountsBehindClose() {
    let transcript = read(
      "HTTP/1.1 204 X\r\nConnection: close\r\n\r\nHTTP/1.1 204 X\r\n\r\n", requests: [.get, .get])
    #expect(transcript.endCount == 1)
    #expect(transcript.error == .unsolicitedBytes)
  }

  @Test(arguments: ["\r\n", "\n", "\0", " ", "x", "HTTP/1.1 200 OK\r\n\r\n"]) func bytesBehindAResponse(rest: String) {
    let transcript = read("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi\(rest)")
    #expect(transcript.endCount == 1, "the response itself is complete")
    #expect(transcript.error == .unsolicitedBytes)
  }

  @Test func bytesBeforeAnyRequest() {
    #expect(read("HTTP/1.1 408 Request Timeout\r\n\r\n", requests: []).entries == [.failed(.unsolicitedBytes)])
    #expect(read("", requests: []).entries == [])
  }
}
