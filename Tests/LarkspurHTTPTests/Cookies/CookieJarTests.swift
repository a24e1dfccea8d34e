import LarkspurHTTP
import Testing

/// Which cookies are stored, sent and evicted (RFC 6265bis 5.7 and 5.8).
@Suite struct CookieJarTests {
  // MARK: Domains

  /// CVE-2014-3613: the last numbers of an address are not a domain above it.
  @Test func anAddressIsOnlyItself() {
    var visit = CookieVisit()
    #expect(visit.set("a=1; Domain=0.0.1", at: "http://127.0.0.1/") == .refused(.domain))
    #expect(visit.set("a=1; Domain=.0.0.1", at: "http://127.0.0.1/") == .refused(.domain))
    #expect(visit.set("a=1; Domain=127.0.0.1", at: "http://127.0.0.1/") == .stored)
    #expect(visit.field(for: "http://127.0.0.1/") == "a=1")
    #expect(visit.field(for: "http://1.127.0.0.1/") == nil)
    #expect(visit.set("b=2", at: "http://[::1]/") == .stored)
    #expect(visit.field(for: "http://[0:0:0:0:0:0:0:1]/") == "b=2")
  }

  /// CVE-2013-1944: `ample.com` is not a parent of `example.com`.
  @Test func domainsMatchOnLabels() {
    var visit = CookieVisit()
    #expect(visit.set("a=1; Domain=ample.com", at: "http://example.com/") == .refused(.domain))
    #expect(visit.set("a=1; Domain=ample.com", at: "http://ample.com/") == .stored)
    #expect(visit.field(for: "http://example.com/") == nil)
    #expect(visit.field(for: "http://x.ample.com/") == "a=1")
  }

  /// CVE-2014-3620, CVE-2023-46218 (capitals): no host can set cookies for `com`.
  @Test(arguments: ["com", ".com", "COM", "co.UK", "Co.Uk", "foo.ck", "unlisted"])
  func publicSuffixesAreRefused(domain: String) {
    var visit = CookieVisit()
    let name = domain.hasPrefix(".") ? String(domain.dropFirst()) : domain
    #expect(visit.set("a=1; Domain=\(domain)", at: "http://example.\(name)/") == .refused(.domain))
    // A host with the name of a public suffix sets the cookie for itself only.
    #expect(visit.set("a=1; Domain=\(domain)", at: "http://\(name)/") == .stored)
    #expect(visit.field(for: "http://\(name)/") == "a=1")
    #expect(visit.field(for: "http://example.\(name)/") == nil)
  }

  /// CVE-2022-27779, CVE-2026-8924: a trailing dot does not make `com` an acceptable domain, but makes `example.com`
  /// another host.
  @Test func dotsAtTheEnd() {
    var visit = CookieVisit()
    for domain in ["com.", ".com.", "co.uk.", "COM.", "."] {
      for host in ["example.com.", "example.co.uk.", "example.com", "example.co.uk"] {
        #expect(visit.set("a=1; Domain=\(domain)", at: "http://\(host)/") == .refused(.domain), "\(domain) \(host)")
      }
    }
    #expect(visit.set("a=1; Domain=example.com.", at: "http://example.com/") == .refused(.domain))
    #expect(visit.set("a=1; Domain=example.com", at: "http://example.com./") == .refused(.domain))
    #expect(visit.set("a=1; Domain=example.com.", at: "http://www.example.com./") == .stored)
    #expect(visit.field(for: "http://example.com./") == "a=1")
    #expect(visit.field(for: "http://example.com/") == nil)
  }

  @Test func wildcardsAndExceptions() {
    let table = PublicSuffixTable(list: Array("// a comment\nck\n*.ck\n!www.ck\n\n*.x.y trailing words\n公司.cn\n".utf8))
    let rows: [String: String?] = [
      "ck": nil, "a.ck": nil, "b.a.ck": "b.a.ck", "www.ck": "www.ck", "b.www.ck": "www.ck", "y": nil, "x.y": "x.y",
      "a.x.y": nil, "b.a.x.y": "b.a.x.y", "xn--55qx5d.cn": nil, "a.xn--55qx5d.cn": "a.xn--55qx5d.cn", "cn": nil,
      "": nil, ".": nil, ".a": nil, "a..": nil, "a.b": "a.b", "c.a.b.": "a.b",
    ]
    for (name, domain) in rows {
      #expect(table.registrableDomain(of: name).map(String.init) == domain, "\(name)")
      #expect(table.isPublicSuffix(name) == (domain == nil), "\(name)")
    }
  }

  @Test func withoutAListSingleLabelsAreRefused() {
    var visit = CookieVisit()
    visit.suffixes = PublicSuffixTable()
    #expect(visit.suffixes.isEmpty)
    #expect(visit.set("a=1; Domain=com", at: "http://example.com/") == .refused(.domain))
    #expect(visit.set("a=1; Domain=example.com", at: "http://www.example.com/") == .stored)
  }

  // MARK: Secure

  @Test func secureNeedsTLS() {
    var visit = CookieVisit()
    for host in ["example.com", "localhost", "127.0.0.1", "[::1]"] {
      #expect(visit.set("a=1; Secure", at: "http://\(host)/") == .refused(.insecure))
      #expect(visit.set("a=1; Secure", at: "https://\(host)/") == .stored)
      #expect(visit.field(for: "http://\(host)/") == nil)
      #expect(visit.field(for: "https://\(host)/") == "a=1")
    }
  }

  /// CVE-2025-9086: a response without TLS cannot replace or shadow Secure cookies ("leave Secure cookies alone").
  @Test func whatComesInTheClearLeavesSecureCookiesAlone() {
    var visit = CookieVisit()
    #expect(visit.set("a=1; Secure; Path=/login; Domain=example.com", at: "https://www.example.com/") == .stored)
    #expect(visit.set("b=1; Secure; Path=/", at: "https://www.example.com/") == .stored)
    for url in ["http://www.example.com/login", "http://example.com/login", "http://x.www.example.com/login"] {
      #expect(visit.set("a=2; Path=/login", at: url) == .refused(.shadowsSecure), "\(url)")
      #expect(visit.set("a=2; Path=/login/en", at: url) == .refused(.shadowsSecure))
      #expect(visit.set("a=2; Path=/login; Max-Age=0", at: url) == .refused(.shadowsSecure))
      #expect(visit.set("a=2; Path=/log", at: url) == .stored)
    }
    #expect(visit.set("b=2; Path=/", at: "http://www.example.com/") == .refused(.shadowsSecure))
    #expect(visit.set("b=2; Path=/deep", at: "http://www.example.com/") == .refused(.shadowsSecure))
    #expect(visit.set("b=2; Path=/; Domain=example.com", at: "http://example.com/") == .refused(.shadowsSecure))
    #expect(visit.set("b=2; Path=/", at: "http://other.com/") == .stored)
    #expect(visit.set("b=2; Path=/", at: "https://www.example.com/") == .stored)
    // Many cookies set without TLS do not evict a Secure one either.
    for number in 0..<300 { visit.set("n\(number)=x", at: "http://www.example.com/") }
    #expect(visit.set("b=3; Path=/", at: "http://www.example.com/") == .stored)
  }

  @Test func prefixes() {
    var visit = CookieVisit()
    let url = "https://www.example.com/x/"
    for prefix in ["__Secure-", "__secure-", "__SECURE-"] {
      #expect(visit.set("\(prefix)a=1", at: url) == .refused(.prefix))
      #expect(visit.set("\(prefix)a=1; Secure; Domain=example.com", at: url) == .stored)
      #expect(visit.set("\(prefix)a=1; Secure", at: "http://www.example.com/") == .refused(.insecure))
    }
    for prefix in ["__Host-", "__host-", "__HoSt-"] {
      #expect(visit.set("\(prefix)a=1; Secure", at: url) == .refused(.prefix))
      #expect(visit.set("\(prefix)a=1; Path=/", at: url) == .refused(.prefix))
      #expect(visit.set("\(prefix)a=1; Secure; Path=/x", at: url) == .refused(.prefix))
      #expect(visit.set("\(prefix)a=1; Secure; Path=/; Domain=www.example.com", at: url) == .refused(.prefix))
      #expect(visit.set("\(prefix)a=1; Secure; Path=", at: "https://www.example.com/") == .refused(.prefix))
      #expect(visit.set("\(prefix)a=1; Secure; Path=/", at: url) == .stored)
    }
    // A nameless cookie's value would look like a prefixed name.
    #expect(visit.set("__Secure-a=1; Secure", at: url) == .stored)
    #expect(visit.set("=__Secure-a=1; Secure", at: url) == .refused(.prefix))
    #expect(visit.set("__Host-a; Secure; Path=/", at: url) == .refused(.prefix))
  }

  // MARK: SameSite

  @Test func sameSiteWhenCookiesAreSet() {
    for sameSite in ["", "; SameSite=Lax", "; SameSite=Strict", "; SameSite=None"] {
      for isTopLevel in [true, false] {
        var visit = CookieVisit()
        let outcome = visit.set("a=1\(sameSite)", at: "http://example.com/") {
          $0.isSameSite = false
          $0.isTopLevel = isTopLevel
        }
        let expected: CookieJar.Outcome =
          if sameSite.hasSuffix("None") {
            .refused(.crossSiteInsecure)
          } else {
            isTopLevel || sameSite.isEmpty ? .stored : .refused(.crossSite)
          }
        #expect(outcome == expected, "\(sameSite) \(isTopLevel)")
      }
    }
  }

  @Test func sameSiteWhenCookiesAreSent() {
    var visit = CookieVisit()
    for field in ["u=1", "l=1; SameSite=Lax", "s=1; SameSite=Strict", "n=1; SameSite=None; Secure"] {
      #expect(visit.set(field, at: "https://example.com/") == .stored)
    }
    for isSafe in [true, false] {
      for isTop in [true, false] {
        for isSame in [true, false] {
          let sent = visit.field(for: "https://example.com/") {
            $0.isSameSite = isSame
            $0.isSafeMethod = isSafe
            $0.isTopLevel = isTop
          }
          let expected = isSame ? "u=1; l=1; s=1; n=1" : isSafe && isTop ? "u=1; l=1; n=1" : "u=1; n=1"
          #expect(sent == expected, "\(isSafe) \(isTop) \(isSame)")
        }
      }
    }
  }

  // MARK: Time and order

  @Test func expiry() {
    var visit = CookieVisit()
    let start = visit.now
    visit.set("a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", at: "http://example.com/")
    visit.set("b=1; Expires=Thu, 01 Jan 2099 00:00:00 GMT; Max-Age=20", at: "http://example.com/")
    visit.set("c=1; Expires=Thu, 01 Jan 2099 00:00:00 GMT", at: "http://example.com/")
    visit.set("d=1; Max-Age=99999999999999999999", at: "http://example.com/")
    visit.set("e=1", at: "http://example.com/")
    #expect(visit.field(for: "http://example.com/") == "a=1; b=1; c=1; d=1; e=1")
    visit.now = start.adding(seconds: 9.9)
    #expect(visit.field(for: "http://example.com/") == "a=1; b=1; c=1; d=1; e=1")
    visit.now = start.adding(seconds: 10)
    #expect(visit.field(for: "http://example.com/") == "b=1; c=1; d=1; e=1")
    // The lifetime is at most 400 days.
    visit.now = start.adding(seconds: CookieLimits.lifetimeSecondsMax - 0.1)
    #expect(visit.field(for: "http://example.com/") == "c=1; d=1; e=1")
    visit.now = start.adding(seconds: CookieLimits.lifetimeSecondsMax)
    #expect(visit.field(for: "http://example.com/") == "e=1")
    #expect(visit.jar.count == 1)
    #expect(visit.set("e=; Max-Age=0", at: "http://example.com/") == .removed)
    #expect(visit.jar.isEmpty)
  }

  @Test func aCookieInThePlaceOfAnotherKeepsItsAge() {
    var visit = CookieVisit()
    for name in ["a", "b", "c"] {
      visit.set("\(name)=1", at: "http://example.com/")
      visit.now = visit.now.adding(seconds: 1)
    }
    visit.set("a=2", at: "http://example.com/")
    // Another path or another domain makes another cookie.
    visit.set("a=3; Path=/x", at: "http://example.com/")
    visit.set("a=4; Domain=example.com", at: "http://example.com/")
    #expect(visit.field(for: "http://example.com/x") == "a=3; a=2; b=1; c=1; a=4")
    #expect(visit.jar.count == 5)
  }

  /// Names are compared as bytes: strings that Swift considers equal are different names.
  @Test func namesAreBytes() {
    var visit = CookieVisit()
    visit.set("caf\u{e9}=1", at: "http://example.com/")
    visit.set("cafe\u{301}=2", at: "http://example.com/")
    #expect(visit.jar.count == 2)
  }

  // MARK: Limits

  @Test func cookiesOfOneDomain() {
    var visit = CookieVisit()
    let most = visit.jar.limits.perDomainMax
    #expect(most == 180)
    for number in 0..<most {
      visit.set("n\(number)=1; Secure", at: "https://example.com/")
      visit.now = visit.now.adding(seconds: 1)
    }
    #expect(visit.jar.count == most)
    // CVE-2025-9086: cookies that are not Secure are evicted first, even if they are newer.
    visit.set("plain=1; Path=/plain", at: "http://example.com/")
    #expect(visit.jar.count == most)
    #expect(visit.field(for: "https://example.com/plain")?.contains("plain=1") == false)
    visit.set("last=1; Secure; Path=/last", at: "https://example.com/")
    #expect(visit.jar.count == most)
    let names = Set(visit.jar.all(at: visit.now).map(\.name))
    #expect(!names.contains("n0") || !names.contains("n1"))
    #expect(names.contains("last"))
  }

  @Test func whatHasExpiredGivesWayFirst() {
    var limits = CookieLimits()
    limits.perDomainMax = 3
    var visit = CookieVisit(limits: limits)
    for field in ["a=1", "b=1; Max-Age=1", "c=1"] { visit.set(field, at: "http://example.com/") }
    visit.now = visit.now.adding(seconds: 2)
    visit.set("d=1", at: "http://example.com/")
    #expect(visit.field(for: "http://example.com/") == "a=1; c=1; d=1")
    visit.now = visit.now.adding(seconds: 1)
    // The cookie that was used last stays longest; among equals the oldest is evicted.
    visit.set("e=1; Path=/e", at: "http://example.com/")
    #expect(visit.field(for: "http://example.com/e") == "e=1; c=1; d=1")
  }

  @Test func cookiesInAll() {
    var limits = CookieLimits()
    limits.totalMax = 10
    limits.fairShare = 3
    var visit = CookieVisit(limits: limits)
    for number in 0..<6 { visit.set("s\(number)=1", at: "https://small\(number).com/") }
    for number in 0..<4 { visit.set("b\(number)=1; Secure", at: "https://big.com/") }
    #expect(visit.jar.count == 10)
    // A domain above its share loses a cookie, although others are older.
    visit.now = visit.now.adding(seconds: 1)
    visit.set("x=1", at: "https://small6.com/")
    #expect(visit.jar.count == 10)
    #expect(visit.field(for: "https://big.com/") == "b1=1; b2=1; b3=1")
    // No domain is above its share, so the least recently used cookie is evicted.
    visit.set("y=1", at: "https://small7.com/")
    #expect(visit.jar.count == 10)
    #expect(visit.field(for: "https://small0.com/") == nil)
    #expect(visit.field(for: "https://small1.com/") == "s1=1")
    #expect(CookieLimits().totalMax == 3000)
  }

  /// CVE-2022-32205: cookies that would make every request too large are not sent.
  @Test func bytesOfTheField() {
    var visit = CookieVisit()
    for name in ["a", "b"] {
      visit.set("\(name)=" + String(repeating: "x", count: 4092), at: "http://example.com/")
    }
    // Two cookies of 4,094 bytes and two bytes between them: 8,190. Two more bytes would fit, but not with a separator.
    #expect(visit.field(for: "http://example.com/")?.utf8.count == 8190)
    visit.set("c=", at: "http://example.com/")
    #expect(visit.field(for: "http://example.com/")?.utf8.count == 8190)
    visit.set("b=" + String(repeating: "x", count: 4090), at: "http://example.com/")
    visit.set("c=; Max-Age=0", at: "http://example.com/")
    visit.set("d", at: "http://example.com/")
    #expect(visit.field(for: "http://example.com/")?.utf8.count == 8191)
    visit.set("dd", at: "http://example.com/")
    #expect(visit.field(for: "http://example.com/")?.utf8.count == 8192)
    visit.set("ddd", at: "http://example.com/")
    #expect(visit.field(for: "http://example.com/")?.utf8.count == 8188)
  }

  // MARK: Recorded changes

  @Test func changesAreReportedOnce() throws {
    var jar = CookieJar(keepsChanges: true)
    let now = CookieTime(seconds: 0)
    let later = CookieTime(seconds: 9)
    let cookie = Cookie(
      name: "a", value: "1", domain: "example.com", path: "/", isHostOnly: true, expiry: later, creation: now)
    jar.put(cookie, now: now)
    #expect(jar.takeChanges() == [cookie.identity: now])
    #expect(!jar.hasChanges)
    jar.removeExpired(now: later)
    #expect(jar.takeChanges() == [cookie.identity: later])
    jar.returnChanges([cookie.identity: now])
    #expect(jar.hasChanges)
    // A cookie that the file still holds does not come back before our removal has been written.
    jar.adopt([cookie])
    #expect(jar.isEmpty)
    _ = jar.takeChanges()
    jar.adopt([cookie])
    #expect(jar.all(at: now).map(\.name) == ["a"] && !jar.hasChanges)
    jar.adopt([])
    #expect(jar.isEmpty && !jar.hasChanges)
  }
}
