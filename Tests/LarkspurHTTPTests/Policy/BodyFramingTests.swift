import FuzzOracles
import LarkspurHTTP
import Testing

/// RFC 9112 6.3: how the end of a body is found.
@Suite struct BodyFramingTests {
  @Test(arguments: [
    "Content-Length: 5", "Transfer-Encoding: chunked", "Content-Length: 5\r\nTransfer-Encoding: chunked", "X: y",
  ])
  func noBodyAfter204And304AndForHEAD(line: String) {
    for (status, request) in [(204, RequestContext.get), (304, .get), (200, .head), (404, .head), (204, .head)] {
      let transcript = read("HTTP/1.1 \(status) X\r\n\(line)\r\n\r\n", requests: [request])
      #expect(transcript.heads.first?.framing == BodyFraming.none)
      #expect(transcript.entries.dropFirst() == [.end(trailers: [])], "\(status) to \(request.method)")
    }
  }

  /// The length of a body that does not follow is still available to the caller.
  @Test func theLengthOfABodyThatDoesNotFollow() {
    let transcript = read("HTTP/1.1 200 OK\r\nContent-Length: 256\r\n\r\n", requests: [.head])
    #expect(transcript.heads.first?.contentLength == 256)
  }

  @Test func aBodyThatShouldNotBeThere() {
    #expect(read("HTTP/1.1 204 X\r\n\r\nbody").error == .unsolicitedBytes)
    #expect(read("HTTP/1.1 304 X\r\nContent-Length: 4\r\n\r\nbody").error == .unsolicitedBytes)
    #expect(read("HTTP/1.1 200 X\r\nContent-Length: 4\r\n\r\nbody", requests: [.head]).error == .unsolicitedBytes)
    // Such a body is not taken for the next response either.
    #expect(read("HTTP/1.1 204 X\r\n\r\nbody", requests: [.get, .get]).error == .notHTTP)
  }

  @Test(arguments: [200, 205, 206, 301, 404, 500, 999]) func otherStatusesHaveOne(status: Int) {
    #expect(read("HTTP/1.1 \(status) X\r\nContent-Length: 2\r\n\r\nhi").lines.suffix(2) == ["body hi", "end"])
    #expect(read("HTTP/1.1 \(status) X\r\n\r\nhi").heads.first?.framing == .untilClose)
  }

  @Test(arguments: ["1.0", "1.1"]) func withoutALengthItGoesOnUntilTheEnd(version: String) {
    let transcript = read("HTTP/\(version) 200 OK\r\n\r\nhello\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", requests: [.get, .get])
    #expect(transcript.heads.count == 1)
    #expect(transcript.heads.first?.framing == .untilClose)
    #expect(transcript.heads.first?.isPersistent == false)
    #expect(
      transcript.entries.dropFirst() == [
        .body(Array("hello\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".utf8)), .end(trailers: []),
      ])
  }

  @Test func untilTheEndAndNothingComes() {
    #expect(read("HTTP/1.1 200 OK\r\n\r\n").entries.dropFirst() == [.end(trailers: [])])
  }

  // MARK: - Truncated responses

  @Test(arguments: [
    ("", ResponseError.TruncationPoint.beforeHead), ("H", .statusLine), ("HTTP/1.1 200", .statusLine),
    ("HTTP/1.1 200 OK", .statusLine),
    ("HTTP/1.1 200 OK\r", .statusLine), ("HTTP/1.1 200 OK\r\n", .head), ("HTTP/1.1 200 OK\r\nA", .head),
    ("HTTP/1.1 200 OK\r\nA: b\r\n\r", .head), ("HTTP/1.1 100 X\r\n\r\n", .statusLine),
    ("HTTP/1.1 100 X\r\n\r\nHTTP/1.1 200", .statusLine), ("HTTP/1.1 100 X\r\n\r\nHTTP/1.1 200 OK\r\n", .head),
    ("HTTP/1.1 100 X\r\nA", .head),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", .body(missing: 5)),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", .body(missing: 1)),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .chunkedBody),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhell", .chunkedBody),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello", .chunkedBody),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", .chunkedBody),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0", .chunkedBody),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r", .chunkedBody),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", .trailers),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r", .trailers),
  ])
  func aConnectionThatEndsTooEarly(response: String, point: ResponseError.TruncationPoint) {
    #expect(read(response).error == .truncated(point))
  }

  /// Every complete response that is cut anywhere is an error.
  @Test(arguments: [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n",
    "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.0 200\r\nContent-Length: 1\r\n\r\nx",
  ])
  func everyProperStart(response: String) {
    let bytes = Array(response.utf8)
    #expect(read(bytes).error == nil)
    for count in 0..<bytes.count {
      let error = read(Array(bytes[..<count])).error
      guard case .truncated = error else {
        Issue.record("cut behind \(count) bytes: \(String(describing: error))")
        continue
      }
    }
  }
}
