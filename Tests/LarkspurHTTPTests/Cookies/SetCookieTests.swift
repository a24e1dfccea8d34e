import LarkspurHTTP
import Testing

/// Parsing one `Set-Cookie` field (RFC 6265bis 5.6).
@Suite struct SetCookieTests {
  @Test func nameAndValueAndLimits() throws {
    let most = CookieLimits.pairBytesMax
    #expect(SetCookie("n=" + String(repeating: "v", count: most - 1))?.value.utf8.count == most - 1)
    #expect(SetCookie("n=" + String(repeating: "v", count: most)) == nil)
    #expect(SetCookie(String(repeating: "v", count: most))?.name == "")
    #expect(SetCookie(String(repeating: "n", count: most + 1)) == nil)
    // The limit counts bytes, not characters.
    #expect(SetCookie("n=" + String(repeating: "é", count: most / 2)) == nil)
    for nothing in ["", "=", " = ", ";", "; Secure", "\t"] { #expect(SetCookie(nothing) == nil, "\(nothing)") }
  }

  @Test func attributesThatAreTooLong() throws {
    let most = CookieLimits.attributeBytesMax
    let path = "/" + String(repeating: "p", count: most - 1)
    #expect(SetCookie("n=v; Path=\(path)")?.path == path)
    #expect(SetCookie("n=v; Path=/a; Path=\(path)p")?.path == "/a")
  }

  /// CVE-2022-35252: a cookie with a control character is refused, because servers answer every request with such a
  /// cookie with 400.
  @Test func controlCharacters() {
    for byte in (UInt8(0)...0x7f) {
      let character = Character(UnicodeScalar(byte))
      let isRefused = byte < 0x20 && byte != 9 || byte == 0x7f
      for field in ["n\(character)m=v", "n=v\(character)w", "n=v; a\(character)b=c"] {
        #expect((SetCookie(field) == nil) == isRefused, "\(byte)")
      }
    }
  }

  @Test func maxAge() {
    let ages: [(String, Int64?)] = [
      ("0", 0), ("-1", -1), ("60", 60), ("007", 7), ("", nil), ("-", nil), ("+5", nil), ("5x", nil), ("--5", nil),
      ("1.5", nil), (" 9 ", 9),
    ]
    for (text, expected) in ages { #expect(SetCookie("n=v; max-AGE=\(text)")?.maxAge == expected, "\(text)") }
    // A number too large for an integer counts as a very long time.
    let far = SetCookie("n=v; Max-Age=" + String(repeating: "9", count: 1000))?.maxAge ?? 0
    #expect(far > 1_000_000_000)
    #expect(SetCookie("n=v; Max-Age=5; Max-Age=x")?.maxAge == 5)
  }

  @Test func domains() {
    let domains: [(String, SetCookie.Domain)] = [
      ("Example.COM", .named("example.com")), (".example.com", .named("example.com")),
      ("..example.com", .named(".example.com")), ("", .absent), (".", .invalid), ("bücher.de", .invalid),
      ("a b", .invalid),
    ]
    for (text, expected) in domains { #expect(SetCookie("n=v; Domain=\(text)")?.domain == expected, "\(text)") }
    #expect(SetCookie("n=v; Domain=a.org; Domain=b.org")?.domain == .named("b.org"))
    #expect(SetCookie("n=v; Domain=a.org; Domain=")?.domain == .named("a.org"))
  }

  @Test func sameSite() {
    let rows: [(String, Cookie.SameSite)] = [
      ("", .unspecified), ("; SameSite", .unspecified), ("; samesite=LAX", .lax), ("; SameSite=strict", .strict),
      ("; SameSite=None", .none), ("; SameSite=Lax; SameSite=nonsense", .unspecified),
      ("; SameSite=nonsense; SameSite=Lax", .lax),
    ]
    for (text, expected) in rows { #expect(SetCookie("n=v\(text)")?.sameSite == expected, "\(text)") }
  }

  @Test func flagsAndOthers() throws {
    let said = try #require(SetCookie("n=v; HTTPONLY=no; sEcure; Version=1; Comment = a b ;; =x"))
    #expect(said.isHTTPOnly && said.isSecure)
    #expect(said.others.map(\.name) == ["version", "comment"])
    #expect(said.others.map(\.value) == ["1", "a b"])
  }

  @Test func dates() {
    let rows: [(String, Int64?)] = [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("29 Feb 2000 23:59:59", 951_868_799), ("29 Feb 1900 0:0:0", nil),
      ("30 Feb 2004 00:00:00", nil), ("1 jan 1600 00:00:00", nil), ("1 jan 1601 00:00:00", -11_644_473_600),
      ("31 Apr 2020 00:00:00", nil), ("1 Jan 69 00:00:00", 3_124_224_000), ("1 Jan 70 00:00:00", 0),
      ("1 Jan 2020 24:00:00", nil), ("1 Jan 2020 23:60:00", nil), ("1 Jan 2020 23:00:60", nil),
      ("1 Jan 2020 1:2:3x", 1_577_840_523), ("1 Jan 2020 1:2:345", nil), ("0 Jan 2020 1:2:3", nil), ("", nil),
      ("1 Jan 20200 00:00:00", nil), ("12 13 Jan 00:00:00", 1_357_948_800),
    ]
    for (text, expected) in rows {
      #expect(CookieDate.parse(text) == expected.map { CookieTime(secondsSince1970: $0) }, "\(text)")
    }
  }

  @Test func hosts() {
    let rows: [(String, String?, Bool)] = [
      ("Example.ORG", "example.org", false), ("example.org.", "example.org.", false), ("192.0.2.1", "192.0.2.1", true),
      ("[2001:DB8:0:0:1:0:0:0]", "2001:db8:0:0:1::", true), ("::1", "::1", true), ("0:0:0:0:0:0:0:0", "::", true),
      ("1:0:3:4:5:6:7:8", "1:0:3:4:5:6:7:8", true), ("fe80::1%25eth0", "fe80::1%25eth0", true), ("", nil, false),
      ("bücher.de", nil, false), ("a b", nil, false), ("10.1", "10.1", true),
    ]
    for (text, expected, isAddress) in rows {
      let host = CookieHost(text)
      #expect(host?.text == expected, "\(text)")
      #expect(host?.isAddress ?? false == isAddress, "\(text)")
    }
  }

  @Test func paths() {
    let folders = ["": "/", "/": "/", "x": "/", "/a": "/", "/a/": "/a", "/a/b": "/a", "/a/b/": "/a/b", "//": "/"]
    for (path, folder) in folders { #expect(CookiePath.defaultPath(of: path) == folder, "\(path)") }
    let rows: [(String, String, Bool)] = [
      ("/", "/", true), ("/a", "/a", true), ("/a/b", "/a", true), ("/ab", "/a", false), ("/a", "/a/", false),
      ("/a/b", "/a/", true), ("/A", "/a", false), ("/a%2fb", "/a", false),
    ]
    for (path, cookiePath, matches) in rows {
      #expect(CookiePath.matches(path, cookiePath: cookiePath) == matches, "\(path) \(cookiePath)")
    }
  }
}
