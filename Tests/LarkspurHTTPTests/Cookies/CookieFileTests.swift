import LarkspurHTTP
import TestKit
import Testing

/// The text format of cookie files.
@Suite struct CookieFileTests {
  static func cookies() -> [Cookie] {
    var legacy = Cookie.Legacy()
    legacy.version = 1
    legacy.comment = "tab\tand % and é"
    legacy.commentURL = ""
    legacy.ports = [80, 8080]
    legacy.isSetByScript = true
    let time = CookieTime(seconds: 0.1)
    return Cookie.SameSite.allCases.map { sameSite in
      var cookie = Cookie(
        name: "n \(sameSite)", value: "=%;\u{1F36A}", domain: "example.com", path: "/a b", isHostOnly: sameSite == .lax,
        isSecure: sameSite == .none, isHTTPOnly: sameSite == .strict, sameSite: sameSite,
        expiry: CookieTime(seconds: 1e9 / 3), creation: time, legacy: sameSite == .lax ? legacy : nil)
      cookie.update = time.adding(seconds: 1e-7)
      cookie.lastAccess = time.adding(seconds: 5)
      return cookie
    }
  }

  @Test func comesBackAsItWas() {
    #expect(CookieFile.read(CookieFile.bytes(of: Self.cookies())) == .cookies(Self.cookies()))
    #expect(CookieFile.read(CookieFile.bytes(of: [])) == .cookies([]))
  }

  @Test func sessionCookiesAreLeftOut() {
    var cookies = Self.cookies()
    cookies[1].expiry = nil
    let bytes = CookieFile.bytes(of: cookies)
    cookies.remove(at: 1)
    #expect(CookieFile.read(bytes) == .cookies(cookies))
  }

  /// Cookies with control characters are not written: no jar holds one, and in a file they would end a field or a line.
  @Test func cookiesWithControlsAreLeftOut() {
    func cookie(_ name: String, _ value: String = "v", _ domain: String = "a.b", _ path: String = "/") -> Cookie {
      Cookie(
        name: name, value: value, domain: domain, path: path, isHostOnly: true, expiry: CookieTime(seconds: 1e9),
        creation: CookieTime(seconds: 0))
    }
    let good = cookie("good")
    let bad = [
      cookie("a\r\nb"), cookie("a", "b\r\nc: d"), cookie("a", "\0"), cookie("a", "b", "c\n"),
      cookie("a", "b", "c", "/\r"),
    ]
    #expect(CookieFile.read(CookieFile.bytes(of: bad + [good])) == .cookies([good]))
  }

  @Test func versionsAreTwo() {
    var cookie = Self.cookies()[0]
    var legacy = Cookie.Legacy()
    legacy.version = -7
    cookie.legacy = legacy
    let bytes = CookieFile.bytes(of: [cookie])
    cookie.legacy?.version = 0
    #expect(CookieFile.read(bytes) == .cookies([cookie]))
  }

  @Test func aFileCutShortIsDamaged() {
    let bytes = CookieFile.bytes(of: Self.cookies())
    for end in bytes.indices { #expect(CookieFile.read(Array(bytes[..<end])) == .damaged, "\(end)") }
    #expect(CookieFile.read(bytes + bytes) == .damaged)
    #expect(CookieFile.read(bytes + [10]) == .damaged)
  }

  @Test func aByteThatChangedIsFound() {
    var generator = SeededGenerator(for: "damaged cookie files")
    let bytes = CookieFile.bytes(of: Self.cookies())
    for index in bytes.indices {
      var other = bytes
      other[index] ^= UInt8.random(in: 1...255, using: &generator)
      // A changed version digit may be that of a later version.
      let content = CookieFile.read(other)
      #expect(content == .damaged || content == .newer && index == 17, "\(index)")
    }
  }

  @Test func laterVersionsAreLeftAlone() {
    #expect(CookieFile.read(Array("larkspur-cookies 2\nwhatever\n".utf8)) == .newer)
    #expect(CookieFile.read(Array("larkspur-cookies 0\nwhatever\n".utf8)) == .damaged)
  }
}
