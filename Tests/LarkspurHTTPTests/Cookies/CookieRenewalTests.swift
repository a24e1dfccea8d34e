import LarkspurHTTP
import Testing

/// Cookies that are set again with equal attributes.
@Suite struct CookieRenewalTests {
  private static let start = CookieTime(seconds: 1000)

  private static func cookie(_ value: String = "1", expiry: Double?, at now: CookieTime = start) -> Cookie {
    Cookie(
      name: "a", value: value, domain: "example.com", path: "/", isHostOnly: true,
      expiry: expiry.map { now.adding(seconds: $0) }, creation: now)
  }

  private static func jar(_ cookie: Cookie) -> CookieJar {
    var jar = CookieJar(keepsChanges: true)
    jar.put(cookie, now: start)
    _ = jar.takeChanges()
    return jar
  }

  /// An equal cookie causes no write, and changes nothing visible except the time of its update.
  @Test(arguments: [nil, 500] as [Double?]) func theSame(lifetime: Double?) {
    var jar = Self.jar(Self.cookie(expiry: lifetime))
    let revision = jar.revision
    var again = Self.cookie(expiry: lifetime)
    let later = Self.start.adding(seconds: 5)
    again.creation = later
    again.update = later
    #expect(jar.put(again, now: later) == .stored)
    #expect(!jar.hasChanges && jar.revision == revision)
    let kept = jar.all(at: later)
    #expect(kept.count == 1 && kept[0].creation == Self.start && kept[0].update == later)
  }

  @Test func everyDifferenceIsAChange() {
    let first = Self.cookie(expiry: 500)
    var others: [Cookie] = []
    func add(_ change: (inout Cookie) -> Void) {
      var other = first
      change(&other)
      others.append(other)
    }
    add { $0.value = "2" }
    // The two values are equal as Swift strings, but not as bytes.
    add { $0.value = "\u{E9}" }
    add { $0.isSecure = true }
    add { $0.isHTTPOnly = true }
    add { $0.sameSite = .lax }
    add { $0.legacy = Cookie.Legacy() }
    add { $0.expiry = nil }
    add { $0.path = "/x" }
    add { $0.isHostOnly = false }
    for other in others {
      var jar = Self.jar(first)
      let revision = jar.revision
      jar.put(other, now: Self.start)
      #expect(jar.hasChanges && jar.revision != revision, "\(other)")
    }
    var composed = first
    composed.value = "e\u{301}"
    var jar = Self.jar(others[1])
    jar.put(composed, now: Self.start)
    #expect(jar.hasChanges)
  }

  /// An expiry that advances with the time is written once the stored one is off by a tenth of the lifetime or by a
  /// day; small advances add up.
  @Test(arguments: [(100, 10), (86_400 * 365, 86_400)] as [(Double, Double)]) func movingExpiry(
    lifetime: Double, tolerance: Double
  ) {
    var jar = Self.jar(Self.cookie(expiry: lifetime))
    var writes: [Double] = []
    for step in 1...25 {
      let passed = Double(step) * tolerance / 10
      let now = Self.start.adding(seconds: passed)
      let revision = jar.revision
      jar.put(Self.cookie(expiry: lifetime, at: now), now: now)
      #expect(jar.revision != revision && jar.all(at: now).first?.expiry == now.adding(seconds: lifetime))
      if jar.hasChanges {
        writes.append(Double(step))
        #expect(jar.takeChanges().count == 1)
      }
    }
    #expect(writes == [11, 22])
  }

  /// A much earlier expiry is a change.
  @Test func earlierExpiry() {
    var jar = Self.jar(Self.cookie(expiry: 86_400 * 365))
    jar.put(Self.cookie(expiry: 60), now: Self.start)
    #expect(jar.hasChanges)
  }

  /// A renewal is written with the next change, and reading the file does not undo it.
  @Test func renewalsGoWithChanges() {
    let stored = Self.cookie(expiry: 1000)
    var jar = Self.jar(stored)
    let later = Self.start.adding(seconds: 10)
    jar.put(Self.cookie(expiry: 1000, at: later), now: later)
    #expect(!jar.hasChanges)
    var copy = jar
    copy.adopt([])
    #expect(copy.count == 1, "removed elsewhere before it was set again")
    copy.adopt([stored])
    #expect(copy.all(at: later).first?.update == later)
    var other = stored
    other.name = "b"
    jar.put(other, now: later)
    let changes = jar.takeChanges()
    #expect(changes == [stored.identity: later, other.identity: later])
    #expect(jar.persistent(of: changes).count == 2 && jar.takeChanges().isEmpty)
    // A failed write is retried.
    jar.returnChanges(changes)
    #expect(jar.hasChanges && jar.takeChanges() == changes)
  }

  /// A cookie without Secure that would shadow a Secure one is refused, if one of the domains contains the other.
  @Test(arguments: [
    ("example.com", "example.com", true), ("example.com", "a.example.com", true),
    ("a.example.com", "example.com", true),
    ("a.b.example.com", "example.com", true), ("a.example.com", "b.example.com", false),
    ("xample.com", "example.com", false), ("example.com", "xample.com", false),
  ])
  func shadows(secure: String, plain: String, isRefused: Bool) throws {
    var jar = CookieJar()
    var first = Self.cookie(expiry: nil)
    (first.domain, first.isSecure, first.isHostOnly) = (secure, true, false)
    jar.put(first, now: Self.start)
    for number in 0..<5 {
      first.domain = "n\(number).org"
      jar.put(first, now: Self.start)
    }
    first.domain = secure
    let said = try #require(SetCookie("a=2; Path=/; Domain=\(plain)"))
    let request = CookieRequest(host: try #require(CookieHost(plain)), path: "/", isSecure: false)
    func receive() -> CookieJar.Outcome { jar.receive(said, from: request, now: Self.start) { _ in false } }
    #expect(receive() == (isRefused ? .refused(.shadowsSecure) : .stored))
    jar.remove(first, now: Self.start)
    #expect(receive() == .stored)
  }
}
