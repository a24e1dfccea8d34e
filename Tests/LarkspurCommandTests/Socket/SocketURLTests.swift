import LarkspurCommand
import Testing

@Suite struct SocketURLTests {
  @Test(arguments: [
    ("ws://example.org/chat?x=1", "ws://example.org/chat?x=1", 80),
    ("WSS://example.org", "wss://example.org/", 443), ("wss://example.org:8443/#f", "wss://example.org:8443/", 8443),
    ("example.org/a b", "ws://example.org/a%20b", 80), ("ws", "ws://ws/", 80), ("wss.example", "ws://wss.example/", 80),
    ("[::1]:9", "ws://[::1]:9/", 9),
  ])
  func parsed(text: String, uri: String, port: Int) throws {
    let target = try SocketURL.parse(text)
    #expect(SocketURL.uri(of: target) == uri)
    #expect(Int(target.port) == port)
    #expect(target.isSecure == uri.hasPrefix("wss:"))
  }

  @Test(
    arguments: [
      ("http://a/", .unsupportedProtocol, "http:// is not supported: only ws:// and wss:// are"),
      ("ftp://a/", .unsupportedProtocol, "ftp:// is not supported: only ws:// and wss:// are"),
      ("ws:a", .malformedURL, "\"ws:a\": two slashes are missing after ws:"),
      ("wss:/a", .malformedURL, "\"wss:/a\": two slashes are missing after wss:"),
      ("://a", .malformedURL, "\"://a\": the URL has no scheme before ://"),
      ("ws://", .malformedURL, "\"ws://\": the URL has no host"),
      (
        "ws://me:secret@a:0/", .malformedURL,
        "\"ws://a:0/\": the port is not a number from 1 to 65535: \"0\""
      ),
    ] as [(String, LarkspurCommand.ExitStatus, String)])
  func refused(text: String, status: LarkspurCommand.ExitStatus, words: String) {
    #expect(throws: CommandFailure(status, words)) { try SocketURL.parse(text) }
  }
}
