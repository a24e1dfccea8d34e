import Foundation
import LarkspurEngine
import LarkspurHTTP
import Synchronization
import Testing

@testable import Larkspur

/// Tests `HTTPCookieStorage` in memory, by its public members and by those that sessions use.
@Suite struct HTTPCookieStorageTests {
  static let list = PublicSuffixTable(list: Array("com\nco.uk\norg\n".utf8))

  static func storage() -> HTTPCookieStorage { HTTPCookieStorage(disk: nil, suffixes: { list }) }

  static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  static func cookie(_ name: String, _ value: String = "1", _ more: [HTTPCookiePropertyKey: Any] = [:]) throws
    -> HTTPCookie
  {
    let properties: [HTTPCookiePropertyKey: Any] = [.name: name, .value: value, .domain: "www.a.com", .path: "/"]
    return try #require(HTTPCookie(properties: properties.merging(more) { $1 }))
  }

  @Test func setAndRead() throws {
    let storage = HTTPCookieStorage()
    #expect(storage.cookies == [] && storage.cookieAcceptPolicy == .always)
    #expect(storage.cookies(for: try Self.url("http://www.a.com")) == [])
    let first = try Self.cookie("a")
    let second = try Self.cookie("b", "2", [.domain: ".a.com", .expires: Date(timeIntervalSinceNow: 60)])
    storage.setCookie(first)
    storage.setCookie(second)
    #expect(storage.cookies == [first, second])
    #expect(storage.cookies(for: try Self.url("http://www.a.com")) == [first, second])
    #expect(storage.cookies(for: try Self.url("http://a.com/x")) == [second])
    #expect(storage.cookies(for: try Self.url("http://other.com/")) == [])
    #expect(storage.description == "Ephemeral<NSHTTPCookieStorage cookies count:2>")
    let newer = try Self.cookie("a", "3")
    storage.setCookie(newer)
    #expect(storage.cookies == [newer, second])
    storage.deleteCookie(first)
    #expect(storage.cookies == [second])
    storage.setCookie(try Self.cookie("b", "", [.domain: ".a.com", .expires: Date.distantPast]))
    #expect(storage.cookies == [])
    // An expiry in the past also removes a session cookie.
    storage.setCookie(try Self.cookie("b", "", [.discard: "TRUE"]))
    storage.setCookie(try Self.cookie("b", "", [.discard: "TRUE", .expires: Date(timeIntervalSince1970: 5)]))
    #expect(storage.cookies == [])
  }

  @Test func anyCookieComesBackAsItWas() throws {
    let storage = HTTPCookieStorage()
    let cookies = [
      try Self.cookie(
        "a", "1", [.version: "1", .comment: "c", .commentURL: "http://a.com/", .port: "80", .secure: "1"]),
      try Self.cookie("b", "1", [.expires: Date(timeIntervalSinceNow: 1e9 + 0.3), .sameSitePolicy: "lax"]),
      try Self.cookie("c", "1", [.path: "/a b", HTTPCookiePropertyKey("HttpOnly"): "1"]),
      try Self.cookie("d", "1", [.setByJavaScript: true]),
    ]
    cookies.forEach(storage.setCookie)
    #expect(storage.cookies == cookies)
  }

  @Test func ports() throws {
    let storage = HTTPCookieStorage()
    storage.setCookie(try Self.cookie("a", "1", [.version: "1", .port: "80,8080", .maximumAge: "100"]))
    let urls = ["http://www.a.com/", "http://www.a.com:8080/", "http://www.a.com:81/", "https://www.a.com/"]
    let counts = try urls.map { try storage.cookies(for: #require(URL(string: $0)))?.count }
    #expect(counts == [1, 1, 0, 0])
  }

  @Test func removeSince() throws {
    let storage = HTTPCookieStorage()
    storage.setCookie(try Self.cookie("a"))
    storage.removeCookies(since: Date(timeIntervalSinceNow: 60))
    #expect(storage.cookies?.count == 1)
    storage.removeCookies(since: .distantPast)
    #expect(storage.cookies == [])
  }

  @Test func sorting() throws {
    let storage = HTTPCookieStorage()
    for name in ["b", "c", "a"] { storage.setCookie(try Self.cookie(name)) }
    let order = [NSSortDescriptor(keyPath: \HTTPCookie.name, ascending: false)]
    #expect(storage.sortedCookies(using: order).map(\.name) == ["c", "b", "a"])
    #expect(storage.sortedCookies(using: []).map(\.name) == ["b", "c", "a"])
  }

  // MARK: Policies

  @Test func policies() throws {
    let url = try Self.url("http://www.a.com/")
    let same = try Self.url("https://docs.a.com/")
    let other = try Self.url("http://www.b.com/")
    let rows: [(HTTPCookie.AcceptPolicy, URL?, Bool)] = [
      (.always, other, true), (.never, url, false), (.onlyFromMainDocumentDomain, nil, true),
      (.onlyFromMainDocumentDomain, url, true), (.onlyFromMainDocumentDomain, same, true),
      (.onlyFromMainDocumentDomain, other, false), (.onlyFromMainDocumentDomain, try Self.url("http://com/"), false),
    ]
    for (policy, document, isKept) in rows {
      let storage = Self.storage()
      storage.cookieAcceptPolicy = policy
      storage.setCookies([try Self.cookie("a")], for: url, mainDocumentURL: document)
      #expect(storage.cookies?.count == (isKept ? 1 : 0), "\(policy) \(String(describing: document))")
      storage.store(setCookieFields: ["b=1"], from: url, mainDocument: document, now: Date())
      #expect(storage.cookies?.count == (isKept ? 2 : 0), "\(policy) \(String(describing: document))")
    }
    // Two owners under one public suffix are different sites. A storage that accepts no cookies overrides a
    // session that does.
    let storage = Self.storage()
    let document = try Self.url("http://b.co.uk/")
    storage.store(
      setCookieFields: ["a=1"], from: try Self.url("http://a.co.uk/"), mainDocument: document,
      policy: .onlyFromMainDocumentDomain, now: Date())
    #expect(storage.cookies == [])
    storage.store(setCookieFields: ["a=1"], from: url, mainDocument: nil, policy: .never, now: Date())
    #expect(storage.cookies == [])
    storage.cookieAcceptPolicy = .never
    storage.store(setCookieFields: ["a=1"], from: url, mainDocument: nil, policy: .always, now: Date())
    storage.setCookie(try Self.cookie("a"))
    #expect(storage.cookies == [])
  }

  @Test func strangersSetNothing() throws {
    let storage = Self.storage()
    let cookie = try Self.cookie("a", "1", [.domain: ".b.com"])
    storage.setCookies([cookie], for: try Self.url("http://www.a.com/"), mainDocumentURL: nil)
    storage.setCookies([try Self.cookie("a")], for: try Self.url("http://a.com/"), mainDocumentURL: nil)
    let suffix = try Self.cookie("a", "1", [.domain: ".co.uk"])
    storage.setCookies([suffix], for: try Self.url("http://a.co.uk/"), mainDocumentURL: nil)
    #expect(storage.cookies == [])
    storage.setCookies([cookie], for: try Self.url("http://x.b.com/"), mainDocumentURL: nil)
    #expect(storage.cookies == [cookie])
  }

  /// RFC 6265bis 5.7: cookies whose names start with `__Secure-` or `__Host-` must have the attributes that the prefix
  /// promises.
  @Test func promisesOfNames() throws {
    let storage = Self.storage()
    let url = try Self.url("https://www.a.com/")
    let broken = [
      try Self.cookie("__Secure-a", "1"), try Self.cookie("__host-a", "1", [.domain: "www.a.com"]),
      try Self.cookie("__Host-b", "1", [.domain: ".a.com", .secure: "1"]),
      try Self.cookie("__Host-c", "1", [.domain: "www.a.com", .secure: "1", .path: "/a"]),
    ]
    storage.setCookies(broken, for: url, mainDocumentURL: nil)
    #expect(storage.cookies == [])
    let kept = [
      try Self.cookie("__Secure-a", "1", [.domain: ".a.com", .secure: "1"]),
      try Self.cookie("__Host-b", "1", [.domain: "www.a.com", .secure: "1"]),
    ]
    storage.setCookies(kept, for: url, mainDocumentURL: nil)
    #expect(storage.cookies == kept)
  }

  // MARK: Sessions

  @Test func fieldsOfASession() throws {
    let storage = Self.storage()
    let url = try Self.url("https://www.a.com/p/q?x#y")
    let now = Date()
    let field = { (url: URL, document: URL?, isSafe: Bool) in
      storage.cookieField(for: url, mainDocument: document, isSafeMethod: isSafe, isTopLevel: true, now: now)
    }
    #expect(field(url, nil, true) == nil)
    storage.store(
      setCookieFields: ["a=1", "b=2; Secure; Path=/", "c=3; Domain=a.com; SameSite=Lax; Path=/", "d=4; Domain=com"],
      from: url, mainDocument: nil, now: now)
    #expect(field(url, nil, true) == "a=1; b=2; c=3")
    #expect(field(try Self.url("http://a.com/"), nil, true) == "c=3")
    #expect(field(try Self.url("http://other.com/"), nil, true) == nil)
    #expect(field(URL(fileURLWithPath: "/tmp"), nil, true) == nil)
    let other = try Self.url("https://other.com/")
    #expect(field(url, other, true) == "a=1; b=2; c=3")
    #expect(field(url, other, false) == "a=1; b=2")
    #expect(field(url, try Self.url("https://x.a.com/"), false) == "a=1; b=2; c=3")
    // One host with TLS and without TLS is two sites.
    #expect(field(url, try Self.url("http://www.a.com/"), false) == "a=1; b=2")
    storage.removeCookies(since: .distantPast)
    #expect(storage.occupancy.load(ordering: .relaxed) == HTTPCookieStorage.Occupancy.empty.rawValue)
    #expect(field(url, nil, true) == nil)
  }

  /// CVE-2022-32205: the number of cookies that one response can set is bounded by `perResponseMax`.
  @Test func cookiesOfOneResponse() throws {
    let most = CookieLimits().perResponseMax
    var limits = CookieLimits()
    limits.perDomainMax = 2 * most
    let storage = HTTPCookieStorage(disk: nil, limits: limits, suffixes: { Self.list })
    let fields = (0...most).map { "n\($0)=1" }
    storage.store(setCookieFields: fields, from: try Self.url("http://a.com/"), mainDocument: nil, now: Date())
    #expect(storage.cookies?.count == most)
    #expect(storage.cookies?.last?.name == "n\(most - 1)")
  }

  /// CVE-2024-53990: separate storages do not share cookies.
  @Test func storagesAreApart() throws {
    let one = HTTPCookieStorage()
    let other = HTTPCookieStorage()
    one.setCookie(try Self.cookie("a"))
    #expect(other.cookies == [])
    let groups = (0..<2).map { _ in UUID().uuidString }
    let first = HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: groups[0])
    #expect(first === HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: groups[0]))
    #expect(first !== HTTPCookieStorage.sharedCookieStorage(forGroupContainerIdentifier: groups[1]))
    #expect(HTTPCookieStorage.shared === HTTPCookieStorage.shared)
  }

  // MARK: Notifications

  @Test func notifications() throws {
    let storage = HTTPCookieStorage()
    let seen = Mutex<[String]>([])
    let names: [NSNotification.Name] = [.NSHTTPCookieManagerCookiesChanged, .NSHTTPCookieManagerAcceptPolicyChanged]
    let observers = names.map { name in
      NotificationCenter.default.addObserver(forName: name, object: storage, queue: nil) { _ in
        seen.withLock { $0.append(name.rawValue) }
      }
    }
    defer { observers.forEach(NotificationCenter.default.removeObserver) }
    let cookies = names[0].rawValue
    let policy = names[1].rawValue
    storage.setCookie(try Self.cookie("a"))
    #expect(seen.withLock { $0 } == [cookies])
    storage.deleteCookie(try Self.cookie("a"))
    #expect(seen.withLock { $0 } == [cookies, cookies])
    // Calls that change nothing post no notification.
    storage.deleteCookie(try Self.cookie("a"))
    storage.removeCookies(since: .distantPast)
    storage.cookieAcceptPolicy = .always
    #expect(seen.withLock { $0 } == [cookies, cookies])
    storage.cookieAcceptPolicy = .never
    storage.setCookie(try Self.cookie("a"))
    #expect(seen.withLock { $0 } == [cookies, cookies, policy])
  }

  @Test func aResponseIsNotifiedToo() async throws {
    let storage = HTTPCookieStorage()
    let url = try Self.url("http://www.a.com/")
    let waiting = Mutex<CheckedContinuation<Void, Never>?>(nil)
    let token = NotificationCenter.default.addObserver(
      forName: .NSHTTPCookieManagerCookiesChanged, object: storage, queue: nil
    ) { _ in
      waiting.withLock { $0.take() }?.resume()
    }
    defer { NotificationCenter.default.removeObserver(token) }
    await withCheckedContinuation { continuation in
      waiting.withLock { $0 = continuation }
      storage.store(setCookieFields: ["a=1"], from: url, mainDocument: nil, now: Date())
    }
    #expect(waiting.withLock { $0 == nil })
  }

  /// A cookie with both `discard` and an expiry is not written to the file, and expires at its time.
  @Test func discardedAndWithAnEnd() throws {
    let storage = Self.storage()
    let url = try Self.url("http://www.a.com/")
    let properties: [HTTPCookiePropertyKey: Any] = [.discard: "TRUE", .expires: Date(timeIntervalSinceNow: 1_000)]
    let cookie = try Self.cookie("b", "v", properties)
    storage.setCookie(cookie)
    #expect(storage.cookies == [cookie] && cookie.isSessionOnly && cookie.expiresDate != nil)
    #expect(
      CookieFile.bytes(of: storage.withJar { $0.all(at: CookieTime(Date())) }).starts(with: CookieFile.bytes(of: [])))
    func field(_ now: Date) -> String? {
      storage.cookieField(for: url, mainDocument: nil, isSafeMethod: true, isTopLevel: true, now: now)
    }
    #expect(field(Date(timeIntervalSinceNow: 2_000)) == nil)
  }

  // MARK: The system's public suffix list

  @Test func publicSuffixLists() throws {
    #expect(PublicSuffixes.table(from: ["/nowhere"]).isEmpty)
    #expect(PublicSuffixes.table(from: ["/tmp", "/dev/null"]).isEmpty)
    #expect(PublicSuffixes.system.isPublicSuffix("co.uk") && !PublicSuffixes.system.isPublicSuffix("example.co.uk"))
  }

  @Test func manyThreads() async throws {
    let storage = Self.storage()
    let url = try Self.url("http://www.a.com/")
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask {
          for number in 0..<100 {
            storage.store(setCookieFields: ["n\(task)=\(number)"], from: url, mainDocument: nil, now: Date())
            _ = storage.cookieField(for: url, mainDocument: nil, isSafeMethod: true, isTopLevel: true, now: Date())
          }
        }
      }
    }
    #expect(storage.cookies?.map(\.value) == ["99", "99", "99", "99"])
  }
}
