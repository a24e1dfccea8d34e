import LarkspurHTTP
import Testing

@Suite struct RedactionTests {
  @Test(arguments: [
    ("http://me:pw@a.example/x?a=1&access_token=t&b", "http://a.example/x?a=1&access_token=(redacted)&b"),
    ("/x?%41ccess_token=t#key=1", "/x?%41ccess_token=(redacted)#key=(redacted)"),
    ("/x?KEY=", "/x?KEY=(redacted)"),
    ("http://a.example/?", "http://a.example/?"),
    ("mailto:me@a.example", "mailto:me@a.example"),
  ]) func urls(_ url: String, _ redacted: String) { #expect(Redaction.url(url) == redacted) }

  @Test func requestHead() {
    let head =
      "GET http://me:pw@a.example/?sig=1 HTTP/1.1\r\nHost: a.example\r\nAUTHORIZATION:Basic eA==\r\nCookie: a=b\r\n"
      + "Referer: http://b.example/?token=t\r\nX: y\r\n\r\n"
    #expect(
      String(decoding: Redaction.head(Array(head.utf8)), as: UTF8.self)
        == "GET http://a.example/?sig=(redacted) HTTP/1.1\r\nHost: a.example\r\nAUTHORIZATION: (redacted)\r\n"
        + "Cookie: (redacted)\r\nReferer: http://b.example/?token=(redacted)\r\nX: y\r\n\r\n")
  }

  /// Folded lines of a secret go with it, and bytes that are no UTF-8 stay.
  @Test func responseHead() {
    let head: [UInt8] =
      Array("HTTP/1.1 302 me:pw@x ?key=1\nSet-Cookie: a=1;\n more\r\n\tmore\nx: ".utf8) + [0xe9]
      + Array("\n folded\nLocation: /n?code=7\n\n".utf8)
    #expect(
      Redaction.head(head)
        == Array("HTTP/1.1 302 me:pw@x ?key=1\nSet-Cookie: (redacted)\nx: ".utf8) + [0xe9]
        + Array("\n folded\nLocation: /n?code=(redacted)\n\n".utf8))
  }
}
