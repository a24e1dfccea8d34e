import FuzzOracles
import LarkspurHTTP
import Testing

/// Responses after which another protocol takes over: 101, and 2xx to CONNECT.
@Suite struct TunnelTests {
  @Test func switchingProtocolsHandsTheRestOver() {
    let transcript = read(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\u{1}\r\n\0HTTP/1.1 200 OK\r\n\r\n",
      requests: [.upgrade, .get])
    #expect(
      transcript.lines == [
        "head 1.1 101 Switching Protocols, tunnel, closing",
        "  Upgrade: websocket",
        "  Connection: Upgrade",
        "tunnel \u{1}\r\n\0HTTP/1.1 200 OK\r\n\r\n",
      ])
  }

  @Test func nothingMayFollow() {
    #expect(read("HTTP/1.1 101 X\r\n\r\n", requests: [.upgrade]).entries.count == 1)
  }

  /// RFC 9112 6.3: the new protocol begins after the empty line, whatever the fields say.
  @Test(arguments: ["Content-Length: 4", "Transfer-Encoding: chunked", "Content-Length: x", "Transfer-Encoding: gzip"])
  func fieldsOfAnUpgrade(line: String) {
    let transcript = read("HTTP/1.1 101 X\r\n\(line)\r\n\r\nbody", requests: [.upgrade])
    #expect(transcript.lines.last == "tunnel body")
  }

  @Test func anUnrequestedUpgradeFails() {
    for request in [RequestContext.get, .head, .connect] {
      #expect(read("HTTP/1.1 101 X\r\nUpgrade: x\r\n\r\n", requests: [request]).error == .upgradeUnsolicited)
    }
  }

  @Test func anUpgradeThatIsDeclined() {
    let transcript = read(
      "HTTP/1.1 100 X\r\n\r\nHTTP/1.1 200 OK\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi", requests: [.upgrade])
    #expect(transcript.lines.suffix(2) == ["body hi", "end"])
  }

  @Test(arguments: [200, 201, 204, 299]) func connectAccepted(status: Int) {
    let transcript = read("HTTP/1.1 \(status) X\r\n\r\n\u{16}\u{3}\u{1}", requests: [.connect])
    #expect(transcript.heads.first?.framing == .tunnel)
    #expect(transcript.entries.last == .tunnel([0x16, 3, 1]))
  }

  /// RFC 9110 9.3.6: "A client MUST ignore any Content-Length or Transfer-Encoding header fields received in a
  /// successful response to CONNECT."
  @Test(arguments: [
    "Content-Length: 4", "Transfer-Encoding: chunked", "Content-Length: 1\r\nContent-Length: 2", "Content-Length: x",
    "Transfer-Encoding: gzip",
  ])
  func fieldsOfAnAcceptedConnect(line: String) {
    let transcript = read("HTTP/1.1 200 X\r\n\(line)\r\n\r\nbody", requests: [.connect])
    #expect(transcript.lines.last == "tunnel body")
  }

  @Test(arguments: [300, 403, 407, 502]) func connectRefusedIsAnOrdinaryResponse(status: Int) {
    let transcript = read("HTTP/1.1 \(status) X\r\nContent-Length: 2\r\n\r\nno", requests: [.connect])
    #expect(transcript.heads.first?.isPersistent == true)
    #expect(transcript.lines.suffix(2) == ["body no", "end"])
  }

  @Test func theParserLeavesTheRestAlone() throws {
    let bytes = Array("HTTP/1.1 200 X\r\n\r\nsecret".utf8)
    var parser = ResponseParser()
    _ = parser.start(.connect)
    var consumed = 0
    let events = try (0..<3).map { _ in try parser.next(in: bytes.span, consumed: &consumed) }
    let (isTunnel, isIdle, begins) = (parser.isTunnel, parser.isIdle, parser.start(.get))
    #expect(events == [.head, .needMore, .needMore])
    #expect(consumed == 18, "behind the empty line")
    #expect((isTunnel, isIdle, begins) == (true, false, false))
  }
}
