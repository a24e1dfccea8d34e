import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

/// Tests `HTTPCookie` against Apple's documentation.
@Suite struct HTTPCookieTests {
  typealias Properties = [HTTPCookiePropertyKey: Any]

  static var required: Properties { [.name: "n", .value: "v", .path: "/p", .domain: "Example.com"] }

  static func cookie(_ more: Properties = [:]) -> HTTPCookie? {
    HTTPCookie(properties: required.merging(more) { $1 })
  }

  @Test func whatIsRequired() throws {
    let cookie = try #require(Self.cookie())
    #expect(cookie.name == "n" && cookie.value == "v" && cookie.path == "/p" && cookie.domain == "example.com")
    #expect(cookie.version == 0 && cookie.isSessionOnly && cookie.expiresDate == nil)
    #expect(!cookie.isSecure && !cookie.isHTTPOnly && cookie.sameSitePolicy == nil)
    #expect(cookie.comment == nil && cookie.commentURL == nil && cookie.portList == nil)
    for key in Self.required.keys {
      var properties = Self.required
      properties[key] = nil
      #expect(HTTPCookie(properties: properties) == nil, "\(key.rawValue)")
      properties[key] = 5
      #expect(HTTPCookie(properties: properties) == nil, "\(key.rawValue)")
    }
    #expect(Self.cookie([.name: "", .value: ""]) == nil)
    #expect(Self.cookie([.domain: ""]) == nil)
  }

  @Test func originURLs() throws {
    var properties = Self.required
    properties[.domain] = nil
    properties[.originURL] = URL(string: "http://WWW.example.com:8080/x")
    #expect(HTTPCookie(properties: properties)?.domain == "www.example.com")
    properties[.originURL] = "http://b\u{fc}cher.de/"
    #expect(HTTPCookie(properties: properties)?.domain == "xn--bcher-kva.de")
    properties[.originURL] = "no host"
    #expect(HTTPCookie(properties: properties) == nil)
    // The domain takes precedence over the origin URL.
    #expect(Self.cookie([.originURL: "http://other.com/"])?.domain == "example.com")
    #expect(Self.cookie([.domain: ".Example.com"])?.domain == ".example.com")
  }

  /// CVE-2022-3918: control characters, which could end a field line, make no cookie.
  @Test(arguments: ["\r\nX: y", "\n", "\r", "\0", "\u{7f}"]) func controlCharacters(text: String) {
    for key: HTTPCookiePropertyKey in [.name, .value, .path, .domain] {
      #expect(Self.cookie([key: "/a\(text)b"]) == nil)
    }
  }

  @Test func expiry() throws {
    let date = Date(timeIntervalSinceReferenceDate: 1_000_000_000.123)
    #expect(Self.cookie([.expires: date])?.expiresDate == date)
    #expect(Self.cookie([.expires: date])?.isSessionOnly == false)
    #expect(
      Self.cookie([.expires: "Fri, 01 Jan 2038 00:00:00 GMT"])?.expiresDate
        == Date(timeIntervalSince1970: 2_145_916_800))
    #expect(Self.cookie([.expires: "never"])?.isSessionOnly == true)
    let discarded = try #require(Self.cookie([.expires: date, .discard: "TRUE"]))
    #expect(discarded.isSessionOnly && discarded.expiresDate == date)
    // `maximumAge` counts for version 1 only.
    #expect(Self.cookie([.maximumAge: "60"])?.expiresDate == nil)
    let start = Date()
    let aged = try #require(Self.cookie([.version: "1", .maximumAge: "60"])?.expiresDate)
    #expect(aged >= start.addingTimeInterval(60) && aged <= Date().addingTimeInterval(60))
    #expect(Self.cookie([.version: "1"])?.isSessionOnly == true)
    #expect(Self.cookie([.version: "1", .maximumAge: "60", .discard: "FALSE"])?.isSessionOnly == false)
    // `expires` counts for version 0. By Apple's documentation, a cookie of version 1 without `maximumAge` is discarded
    // unless `discard` says otherwise.
    #expect(Self.cookie([.version: "1", .expires: date])?.isSessionOnly == true)
    #expect(Self.cookie([.version: "1", .expires: date, .discard: "FALSE"])?.isSessionOnly == false)
  }

  @Test func theLastYear() throws {
    let url = try #require(URL(string: "http://example.com/"))
    func end(_ field: String) -> Date? {
      HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": field], for: url).first?.expiresDate
    }
    let last = Date(timeIntervalSince1970: 253_402_300_799)
    #expect(end("a=b; Expires=Fri, 31 Dec 9999 23:59:59 GMT") == last)
    let jar = HTTPCookieStorage()
    let field = "a=b; Max-Age=999999999999999"
    jar.setCookies(
      HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": field], for: url), for: url, mainDocumentURL: nil)
    #expect(jar.cookies?.first?.expiresDate == last)
  }

  @Test func versionOne() throws {
    let more: Properties = [
      .version: "1", .comment: "why", .commentURL: "http://example.com/why", .port: "80, 8080", .secure: "TRUE",
      .sameSitePolicy: HTTPCookieStringPolicy.sameSiteLax,
    ]
    let cookie = try #require(Self.cookie(more))
    #expect(cookie.version == 1 && cookie.comment == "why" && cookie.portList == [80, 8080] && cookie.isSecure)
    #expect(cookie.commentURL?.absoluteString == "http://example.com/why")
    #expect(cookie.sameSitePolicy == .sameSiteLax)
    // A cookie of version 0 keeps one port and no comment.
    var old = more
    old[.version] = "0"
    let plain = try #require(Self.cookie(old))
    // RFC 6265 knows neither a comment nor a list of ports.
    #expect(plain.comment == nil && plain.portList == [80] && plain.commentURL == nil)
    let storage = HTTPCookieStorage()
    storage.setCookie(plain)
    #expect(storage.cookies == [plain])
  }

  @Test(arguments: [("TRUE", true), ("FALSE", true), ("1", true), ("", false)]) func secureWords(word: String, is: Bool)
  {
    #expect(Self.cookie([.secure: word])?.isSecure == `is`)
  }

  @Test func secureFlags() {
    #expect(Self.cookie([.secure: true])?.isSecure == true && Self.cookie([.secure: false])?.isSecure == false)
    #expect(Self.cookie([.secure: 1])?.isSecure == true && Self.cookie([.secure: 0])?.isSecure == false)
    #expect(Self.cookie([.name: "ab".prefix(1), .value: "cd".suffix(1)])?.value == "d")
    #expect(Self.cookie([.httpOnly: true])?.isHTTPOnly == true && Self.cookie([.httpOnly: false])?.isHTTPOnly == false)
    #expect(Self.cookie([.httpOnly: "false"])?.isHTTPOnly == false)
    let ofScript = Self.cookie([.setByJavaScript: true])
    #expect(ofScript?.properties?[.setByJavaScript] as? String == "TRUE" && ofScript != Self.cookie([:]))
    #expect(Self.cookie([.setByJavaScript: "FALSE"]) == Self.cookie([:]))
    #expect(HTTPCookiePropertyKey.setByJavaScript.rawValue == "SetInJavaScript")
    #expect(Self.cookie([.httpOnly: "1"])?.isHTTPOnly == true && Self.cookie([.httpOnly: ""])?.isHTTPOnly == false)
  }

  @Test func propertiesMakeTheSameCookie() throws {
    let cookies = [
      Self.cookie(), Self.cookie([.expires: Date(timeIntervalSinceReferenceDate: 5.5), .secure: "1"]),
      Self.cookie([.version: "1", .maximumAge: "60", .comment: "c", .port: "80,81", .sameSitePolicy: "strict"]),
      Self.cookie([.expires: Date(), .discard: "TRUE", HTTPCookiePropertyKey("HttpOnly"): "TRUE"]),
    ]
    for cookie in cookies {
      let cookie = try #require(cookie)
      var properties = try #require(cookie.properties)
      // `maximumAge` counts from the creation of a cookie, so it would change the expiry.
      if cookie.version == 1 { properties[.maximumAge] = nil }
      let other = try #require(HTTPCookie(properties: properties))
      #expect(other == cookie && other.hash == cookie.hash)
    }
    #expect(Self.cookie() != Self.cookie([.value: "w"]))
    #expect(Self.cookie([HTTPCookiePropertyKey("HttpOnly"): "TRUE"])?.isHTTPOnly == true)
    #expect(
      Self.cookie([
        .version: "1", .expires: Date(timeIntervalSince1970: 4e9), .discard: "FALSE", .comment: "c d", .port: "80,443",
      ])?.description
        == "<HTTPCookie version:1 name:\"n\" value:\"v\" expiresDate:2096-10-02 07:06:40 +0000 sessionOnly:false"
        + " domain:\"example.com\" path:\"/p\" isSecure:false comment:c d ports:{ 80,443 }>")
    #expect(
      Self.cookie()?.description
        == "<HTTPCookie version:0 name:\"n\" value:\"v\" expiresDate:nil sessionOnly:true domain:\"example.com\""
        + " path:\"/p\" isSecure:false comment:nil ports:{ 0 }>")
  }

  // MARK: Fields

  @Test func responseFields() throws {
    let url = try #require(URL(string: "http://www.example.com/a/b"))
    let fields = [
      "content-type": "text/html",
      "SET-cookie": "a=1; Path=/a; Secure; HttpOnly; SameSite=Strict; Max-Age=60",
    ]
    let cookies = HTTPCookie.cookies(withResponseHeaderFields: fields, for: url)
    let cookie = try #require(cookies.first)
    #expect(cookies.count == 1 && cookie.name == "a" && cookie.path == "/a" && cookie.domain == "www.example.com")
    #expect(cookie.isSecure && cookie.isHTTPOnly && cookie.sameSitePolicy == .sameSiteStrict && !cookie.isSessionOnly)
    #expect(HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": ""], for: url).isEmpty)
    #expect(HTTPCookie.cookies(withResponseHeaderFields: [:], for: url).isEmpty)
    let fileURL = URL(fileURLWithPath: "/tmp/x")
    #expect(HTTPCookie.cookies(withResponseHeaderFields: fields, for: fileURL).isEmpty)
  }

  @Test func domainsAndPathsOfFields() throws {
    let url = try #require(URL(string: "http://www.example.com/a/b"))
    let rows = [
      ("a=1", "www.example.com", "/"), ("a=1; Domain=example.com", ".example.com", "/"),
      ("a=1; Domain=.example.com; Path=/x", ".example.com", "/x"), ("a=1; Path=x", "www.example.com", "/"),
    ]
    for (field, domain, path) in rows {
      let cookie = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": field], for: url).first
      #expect(cookie?.domain == domain && cookie?.path == path, "\(field)")
    }
  }

  /// Dates outside the calendar are clamped or dropped, and the cookie can be described and stored.
  @Test func datesThatAreNone() throws {
    let past = Date.distantPast.timeIntervalSinceReferenceDate
    let rows: [(Double, Double?)] = [
      (.nan, nil), (.signalingNaN, nil), (.infinity, 252_423_993_599), (1e300, 252_423_993_599), (-.infinity, past),
      (-1e300, past), (5.5, 5.5),
    ]
    for (seconds, shown) in rows {
      for version in ["0", "1"] {
        let cookie = try #require(
          HTTPCookie(properties: [
            .name: "a", .value: "1", .path: "/", .domain: "example.com", .version: version,
            .expires: Date(timeIntervalSinceReferenceDate: seconds),
          ]))
        #expect(cookie.expiresDate?.timeIntervalSinceReferenceDate == shown)
        #expect(cookie.description.contains(shown == nil ? "expiresDate:nil" : "expiresDate:"))
        #expect(shown != nil || cookie.isSessionOnly)
        let storage = HTTPCookieStorage()
        storage.setCookie(cookie)
        #expect(storage.cookies?.count == (shown == nil || (shown ?? 0) > 1e9 ? 1 : 0))
        // No date lies after one that is not a number, so nothing is removed.
        storage.removeCookies(since: Date(timeIntervalSinceReferenceDate: .nan))
        #expect(storage.cookies?.count == (shown == nil || (shown ?? 0) > 1e9 ? 1 : 0))
      }
    }
  }

  @Test func foldedFields() throws {
    let url = try #require(URL(string: "http://example.com/"))
    let rows: [(String, [String])] = [
      ("a=1, b=2", ["a=1", "b=2"]), ("a=1 , b = 2", ["a=1", "b=2"]),
      ("a=1; Expires=Fri, 01 Jan 2038 00:00:00 GMT, b=2; Path=/", ["a=1", "b=2"]),
      ("a=1; Expires=Fri, 01-Jan-38 00:00:00 GMT; Path=/,b=2", ["a=1", "b=2"]),
      ("a=\"x, y\"; Path=/", ["a=\"x, y\""]), ("a=1,2,3", ["a=1,2,3"]), ("a=1,, b=2", ["a=1,", "b=2"]),
      ("a=1; Max-Age=5, c=3; Domain=example.com, d=4", ["a=1", "c=3", "d=4"]), (",", [","]), ("a=,b=", ["a=", "b="]),
      ("a=1,\r\n b=2", ["a=1", "b=2"]), ("a=1,\nb=2", ["a=1", "b=2"]),
      ("a=1\r\n , b=2,\r\n\tc=3", ["a=1", "b=2", "c=3"]),
      ("a=1; Path=/,\r\n b=2; Path=/\r\n", ["a=1", "b=2"]), ("\r\na=1, b=2", ["a=1", "b=2"]),
      ("a=1; Expires=Fri,\r\n 01 Jan 2038 00:00:00 GMT,\r\n b=2", ["a=1", "b=2"]),
      ("a=1\r\nX: y, b=2", ["b=2"]), ("a=x , y,\r\nb=2", ["a=x , y", "b=2"]), ("a=1,\r\n", ["a=1,"]), ("\r\n", []),
    ]
    for (field, pairs) in rows {
      let cookies = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": field], for: url)
      #expect(cookies.map { $0.name.isEmpty ? $0.value : "\($0.name)=\($0.value)" } == pairs, "\(field)")
    }
  }

  @Test func versionOneFields() throws {
    let url = try #require(URL(string: "http://example.com/"))
    let field = "a=1; Version=1; Comment=why; CommentURL=http://example.com/why; Port=\"80,81\"; Discard; Max-Age=9"
    let cookie = HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": field], for: url).first
    #expect(cookie?.version == 1 && cookie?.comment == "why" && cookie?.portList == [80, 81])
    #expect(cookie?.isSessionOnly == true && cookie?.commentURL?.path == "/why")
  }

  @Test func requestFields() throws {
    let first = try #require(Self.cookie())
    let second = try #require(Self.cookie([.name: "", .value: "only"]))
    #expect(HTTPCookie.requestHeaderFields(with: [first, second]) == ["Cookie": "n=v; only"])
    #expect(HTTPCookie.requestHeaderFields(with: []) == [:])
  }

  /// A cookie created from the properties of another is equal to it, whatever attributes the server sent.
  @Test(arguments: ["b=2; Secure; SameSite=None", "b=2; SameSite=Lax", "b=2; SameSite=x", "b=2; Max-Age=100; HttpOnly"])
  func thereAndBack(field: String) throws {
    let url = try #require(URL(string: "http://a.example/"))
    let cookie = try #require(HTTPCookie.cookies(withResponseHeaderFields: ["Set-Cookie": field], for: url).first)
    #expect(HTTPCookie(properties: try #require(cookie.properties)) == cookie)
  }
}
