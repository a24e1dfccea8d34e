import FuzzOracles
import LarkspurHTTP
import Testing

/// RFC 9112 9.3: when a connection may be kept.
@Suite struct PersistenceTests {
  private func isPersistent(
    _ version: String, _ lines: String, sourceLocation: SourceLocation = #_sourceLocation
  ) -> Bool? {
    read("HTTP/\(version) 200 OK\r\nContent-Length: 0\r\n\(lines)\r\n", sourceLocation: sourceLocation).heads.first?
      .isPersistent
  }

  @Test(arguments: [
    ("", true), ("Connection: keep-alive\r\n", true), ("Connection: close\r\n", false),
    ("connection: CLOSE\r\n", false),
    ("Connection: keep-alive, close\r\n", false), ("Connection: close, keep-alive\r\n", false),
    ("Connection: keep-alive\r\nConnection: close\r\n", false),
    ("Connection: close\r\nConnection: keep-alive\r\n", false),
    ("Connection: upgrade ,\tclose\r\n", false), ("Connection: upgrade\r\n close\r\n", true),
    ("Connection: upgrade,\r\n close\r\n", false), ("Connection: closed\r\n", true),
    ("Connection: \"close\"\r\n", true),
    ("Connection: ,,close,\r\n", false), ("Connection:\r\n", true), ("Proxy-Connection: close\r\n", true),
  ])
  func oneDotOneLivesOnUnlessItSaysClose(lines: String, expected: Bool) {
    #expect(isPersistent("1.1", lines) == expected)
  }

  @Test(arguments: [
    ("", false), ("Connection: close\r\n", false), ("Connection: keep-alive\r\n", true),
    ("CONNECTION: Keep-ALIVE\r\n", true),
    ("Connection: x, keep-alive\r\n", true), ("Connection: keep-alive, close\r\n", false),
    ("Connection: close\r\nConnection: keep-alive\r\n", false), ("Connection: keep-alive2\r\n", false),
    ("Proxy-Connection: keep-alive\r\n", false), ("Keep-Alive: timeout=5\r\n", false),
  ])
  func oneDotZeroEndsUnlessItSaysKeepAlive(lines: String, expected: Bool) {
    #expect(isPersistent("1.0", lines) == expected)
  }

  @Test func aBodyWithoutALengthEndsTheConnection() {
    #expect(read("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n").heads.first?.isPersistent == false)
    #expect(read("HTTP/1.1 204 OK\r\nConnection: keep-alive\r\n\r\n").heads.first?.isPersistent == true)
  }

  /// RFC 9110 8.6, RFC 9112 6.1: a body that a 204 announces against the rules might arrive after the next request.
  @Test(arguments: [
    ("Content-Length: 4", 204, false), ("Transfer-Encoding: chunked", 204, false), ("Content-Length: 0", 204, true),
    ("X: y", 204, true),
    // A 304 may announce the length of the content that is not sent again.
    ("Content-Length: 4", 304, true), ("Transfer-Encoding: chunked", 304, true),
  ])
  func aBodyAnnouncedWhereNoneMayBeEndsTheConnection(line: String, status: Int, expected: Bool) {
    #expect(read("HTTP/1.1 \(status) X\r\n\(line)\r\n\r\n").heads.first?.isPersistent == expected)
  }
}
