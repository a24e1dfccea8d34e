import LarkspurBytes
import LarkspurCommand
import LarkspurHTTP
import Testing

@Suite struct RequestURLTests {
  @Test(arguments: [
    ("http://example.org", "example.org", 80, "example.org", "/"),
    ("http://example.org/", "example.org", 80, "example.org", "/"),
    ("HTTP://Example.ORG/A/b?c=D", "Example.ORG", 80, "Example.ORG", "/A/b?c=D"),
    ("http://example.org:8080/x", "example.org", 8080, "example.org:8080", "/x"),
    ("http://example.org:80/x", "example.org", 80, "example.org", "/x"),
    ("http://example.org:/x", "example.org", 80, "example.org", "/x"),
    ("http://example.org:00080", "example.org", 80, "example.org", "/"),
    ("http://example.org:65535", "example.org", 65535, "example.org:65535", "/"),
    ("http://example.org?a=b", "example.org", 80, "example.org", "/?a=b"),
    ("http://example.org#top", "example.org", 80, "example.org", "/"),
    ("http://example.org/a#b?c#d", "example.org", 80, "example.org", "/a"),
    ("http://example.org/a?b?c", "example.org", 80, "example.org", "/a?b?c"),
    ("http://example.org//a", "example.org", 80, "example.org", "//a"),
    ("http://example.org/a/../b/./c", "example.org", 80, "example.org", "/a/../b/./c"),
    ("http://example.org/?to=http://other.org/", "example.org", 80, "example.org", "/?to=http://other.org/"),
    ("example.org/path", "example.org", 80, "example.org", "/path"),
    ("example.org", "example.org", 80, "example.org", "/"),
    ("localhost:8080/x?y=://", "localhost", 8080, "localhost:8080", "/x?y=://"),
    ("my_container-1:81", "my_container-1", 81, "my_container-1:81", "/"),
    ("127.0.0.1:81", "127.0.0.1", 81, "127.0.0.1:81", "/"),
    ("http://[::1]/", "::1", 80, "[::1]", "/"),
    ("http://[2001:DB8::1]:8080/x", "2001:DB8::1", 8080, "[2001:DB8::1]:8080", "/x"),
    ("[::1]:81", "::1", 81, "[::1]:81", "/"),
    ("[::ffff:192.0.2.1]", "::ffff:192.0.2.1", 80, "[::ffff:192.0.2.1]", "/"),
    ("http.example:80", "http.example", 80, "http.example", "/"),
    ("http://Bücher.example:8080/ü", "xn--bcher-kva.example", 8080, "xn--bcher-kva.example:8080", "/%C3%BC"),
    ("straße.example", "xn--strae-oqa.example", 80, "xn--strae-oqa.example", "/"),
    ("me:x@例え.テスト", "xn--r8jz45g.xn--zckzah", 80, "xn--r8jz45g.xn--zckzah", "/"),
  ])
  func parts(text: String, host: String, port: UInt16, authority: String, target: String) throws {
    let url = try RequestURL(text)
    #expect(url.host == host)
    #expect(url.port == port)
    #expect(url.authority == authority)
    #expect(url.target == target)
    #expect((url.credentials == nil) == !text.contains("@"))
  }

  @Test(
    arguments: [
      ("http://h/a/b.txt?x=/y#/z", "b.txt"), ("h/grün%20%2e%2e%2f", "grün%20%2e%2e%2f"), ("h/.a", ".a"),
      ("h/...", "..."), ("h", nil), ("h/", nil), ("h/a/", nil), ("h/a/..", nil), ("h/.", nil), ("h?a", nil),
      ("h/?a/b", nil),
    ] as [(String, String?)])
  func fileNames(text: String, name: String?) throws { #expect(try RequestURL(text).fileName == name) }

  @Test(arguments: [
    ("/a b", "/a%20b"), ("/grün", "/gr%C3%BCn"), ("/?q=\u{1F426}", "/?q=%F0%9F%90%A6"),
    ("/%20%zz%", "/%20%zz%"), ("/a\"<>\\`{}", "/a%22%3C%3E%5C%60%7B%7D"), ("/\r\nX: y\0", "/%0D%0AX:%20y%00"),
    ("/\u{7f}", "/%7F"), ("/a[]=1|2^3", "/a[]=1|2^3"), ("/-._~!$&'()*+,;=:@", "/-._~!$&'()*+,;=:@"),
    ("?a b", "/?a%20b"),
  ])
  func percentEncoding(typed: String, target: String) throws {
    #expect(try RequestURL("http://example.org" + typed).target == target)
  }

  @Test(arguments: [
    ("user:secret@example.org", "user:secret"), ("user@example.org", "user:"), ("user:@example.org", "user:"),
    ("us%65r:a%3Ab%40c@example.org", "user:a:b@c"), ("user:p@ss@example.org", "user:p@ss"),
    ("user:100%@example.org", "user:100%"), (":@example.org", ":"), ("user:%+1%-0@example.org", "user:%+1%-0"),
  ])
  func credentials(authority: String, credentials: String) throws {
    for prefix in ["", "http://"] {
      let url = try RequestURL(prefix + authority + "/x")
      #expect(url.credentials?.bytes == Array(credentials.utf8))
      #expect(url.authority == "example.org")
    }
  }

  @Test func aColonInAUsersName() throws {
    let credentials = try #require(try RequestURL("http://a%3Ab:c:d@example.org/").credentials)
    #expect(credentials.user == Array("a:b".utf8) && credentials.password == Array("c:d".utf8))
  }

  /// The zone of an address selects a local interface and is not sent to the server.
  @Test(arguments: ["[fe80::1%25eth0]", "[fe80::1%eth0]"]) func zones(authority: String) throws {
    let url = try RequestURL("https://user@\(authority):8443/x?y")
    #expect(url.host == "fe80::1%eth0" && url.authority == "[fe80::1]:8443")
    #expect(url.uri == "https://[fe80::1%25eth0]:8443/x?y")
    #expect(try RequestURL("http://\(authority)/").uri == "http://[fe80::1%25eth0]/")
    #expect(try RequestURL("http://a/s?f[x]=J%C3%BC|%^").uri == "http://a/s?f%5Bx%5D=J%C3%BC%7C%25%5E")
    for bad in ["[fe80::1%25]", "[fe80::1%]", "[fe80::1%a/b]", "[%25eth0]"] {
      #expect(throws: RequestURL.Invalid.self) { try RequestURL("http://\(bad)/") }
    }
  }

  @Test(arguments: ["ftp", "FTP", "file", "ws", "git+ssh"])
  func otherSchemes(scheme: String) {
    #expect(throws: RequestURL.Invalid.schemeUnsupported(scheme.lowercased())) {
      try RequestURL("\(scheme)://example.org/")
    }
  }

  @Test(
    arguments: [
      ("https://example.org", "example.org", 443), ("HTTPS://example.org:443/", "example.org", 443),
      ("https://example.org:80/", "example.org:80", 80), ("https://[::1]:8443", "[::1]:8443", 8443),
    ] as [(String, String, UInt16)])
  func secure(text: String, authority: String, port: UInt16) throws {
    let url = try RequestURL(text)
    #expect(url.isSecure)
    #expect(url.authority == authority)
    #expect(url.port == port)
    #expect(try !RequestURL("example.org").isSecure)
  }

  @Test(arguments: [
    ("http://", "the URL has no host"), ("http:///x", "the URL has no host"), ("/x", "the URL has no host"),
    ("?x", "the URL has no host"), ("#x", "the URL has no host"), ("http://:80/", "the URL has no host"),
    ("http://user@/", "the URL has no host"),
    ("://x", "the URL has no scheme before ://"),
    ("http:/example.org", "two slashes are missing after http:"),
    ("https:example.org", "two slashes are missing after https:"),
    ("http://example.org:0", "the port is not a number from 1 to 65535: \"0\""),
    ("http://example.org:65536", "the port is not a number from 1 to 65535: \"65536\""),
    ("http://example.org:+80", "the port is not a number from 1 to 65535: \"+80\""),
    ("http://example.org:-1", "the port is not a number from 1 to 65535: \"-1\""),
    ("http://example.org:http", "the port is not a number from 1 to 65535: \"http\""),
    ("http://example.org:8 0", "the port is not a number from 1 to 65535: \"8 0\""),
    ("http://::1/", "an IPv6 address has to stand in brackets: [::1]"),
    ("http://[::1", "the ] of the address is missing"),
    ("http://[]", "[] is not an IPv6 address"),
    ("http://[127.0.0.1]", "[127.0.0.1] is not an IPv6 address"),
    ("http://[::1]x", "only a port may follow the address: \"x\""),
    ("http://exa mple.org/", "the host name holds an illegal character: \"exa mple.org\""),
    ("http://exa%6dple.org/", "the host name holds an illegal character: \"exa%6dple.org\""),
    ("http://ä\u{202e}.example/", "the host name ä\u{202e}.example has no form in ASCII"),
    ("http://ä%2fb/", "the host name holds an illegal character: \"xn--/b-koa\""),
    ("http://a\r\nb/", "the host name holds an illegal character: \"a\\r\\nb\""),
  ])
  func malformed(text: String, message: String) {
    #expect(throws: RequestURL.Invalid.malformed(message)) { try RequestURL(text) }
  }

  /// A backslash in the authority is refused. Browsers read it as a slash and connect to the first host, but RFC 3986
  /// does not, so the first host could be taken for a user of the second.
  @Test func backslashBeforeAnAt() {
    #expect(throws: RequestURL.Invalid.malformed("a backslash in the authority")) {
      try RequestURL("http://example.org\\@other.org/")
    }
  }

  /// A URL does not limit the length of a name: the limit depends on whether DNS or a proxy resolves the name.
  @Test(arguments: [253, 254, 255, 256, 5000]) func longHost(count: Int) throws {
    let host = String(repeating: "a.", count: count / 2) + (count % 2 == 0 ? "" : "a")
    #expect(try RequestURL(host).host == host)
  }

  /// The test vectors of RFC 4648 10, and one with other bytes.
  @Test(arguments: [
    ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
    ("foobar", "Zm9vYmFy"), ("\u{ff}\u{3e}?", "w78+Pw=="),
  ])
  func base64Vectors(plain: String, encoded: String) {
    #expect(Base64.encode(Array(plain.utf8)) == encoded)
  }
}
