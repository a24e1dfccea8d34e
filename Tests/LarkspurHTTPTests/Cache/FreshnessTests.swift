import LarkspurHTTP
import Testing

/// Returns a stored response. By default, both the request and the response are at the time 1000.
func stored(
  _ fields: FieldList, status: Int = 200, requestTime: Double = 1000, responseTime: Double = 1000,
  selection: CacheSelection = CacheSelection(), part: ContentRange? = nil, bodyCount: Int = 10, isDecoded: Bool = false
) -> StoredResponse {
  StoredResponse(
    status: status, fields: fields, requestTime: requestTime, responseTime: responseTime, selection: selection,
    part: part, bodyCount: bodyCount, isDecoded: isDecoded)
}

func date(_ seconds: Double) -> String { HTTPDate.format(seconds) }

@Suite struct FreshnessTests {
  @Test func lifetimes() {
    #expect(stored([Field("Cache-Control", "max-age=60")]).freshnessLifetime == 60)
    #expect(stored([Field("Cache-Control", "max-age=x"), Field("Expires", date(5000))]).freshnessLifetime == 0)
    #expect(stored([Field("Cache-Control", "s-maxage=60")]).freshnessLifetime == 0, "this cache is private")
    #expect(stored([Field("Expires", date(1060))]).freshnessLifetime == 60)
    #expect(stored([Field("Expires", date(1060)), Field("Date", date(1040))]).freshnessLifetime == 20)
    #expect(stored([Field("Expires", date(1060)), Field("Date", "foo")]).freshnessLifetime == 60)
    #expect(stored([Field("Expires", date(900))]).freshnessLifetime == 0)
    #expect(stored([Field("Expires", "0"), Field("Last-Modified", date(0))]).freshnessLifetime == 0)
    #expect(stored([Field("Expires", date(1060)), Field("Expires", date(5000))]).freshnessLifetime == 60)
    #expect(stored([Field("Expires", date(900)), Field("Cache-Control", "max-age=60")]).freshnessLifetime == 60)
    #expect(stored([]).freshnessLifetime == 0)
  }

  @Test func heuristics() {
    let old: FieldList = [Field("Last-Modified", date(0)), Field("Date", date(1000))]
    #expect(stored(old).freshnessLifetime == 100)
    #expect(stored(old, status: 404).freshnessLifetime == 100)
    #expect(stored(old, status: 403).freshnessLifetime == 0)
    #expect(stored(old + [Field("Cache-Control", "public")], status: 599).freshnessLifetime == 100)
    #expect(stored([Field("Last-Modified", date(2000)), Field("Date", date(1000))]).freshnessLifetime == 0)
    #expect(stored([Field("Last-Modified", "x")]).freshnessLifetime == 0)
    let limit = StoredResponse.heuristicSecondsMax
    let atLimit: FieldList = [Field("Last-Modified", date(0)), Field("Date", date(limit * 10))]
    #expect(stored(atLimit, responseTime: limit * 10).freshnessLifetime == limit)
    let past: FieldList = [Field("Last-Modified", date(0)), Field("Date", date(limit * 20))]
    #expect(stored(past, responseTime: limit * 20).freshnessLifetime == limit)
  }

  @Test func ages() {
    #expect(stored([]).age(now: 1000) == 0)
    #expect(stored([]).age(now: 1007) == 7)
    #expect(stored([Field("Age", "30")]).age(now: 1007) == 37)
    // RFC 9111 4.2.3: the response delay counts, and the apparent age counts if it is larger.
    #expect(stored([Field("Age", "30")], requestTime: 990).age(now: 1007) == 47)
    #expect(stored([Field("Age", "30"), Field("Date", date(900))], requestTime: 990).age(now: 1007) == 107)
    #expect(stored([Field("Date", date(2000))]).age(now: 1007) == 7, "a server's clock that is fast")
    #expect(stored([Field("Age", "30")]).age(now: 900) == 30, "our clock was set back")
    // Otherwise the response would be fresh until the clock is there again.
    #expect(stored([Field("Age", "30")]).age(now: 1000 - StoredResponse.clockDriftMax) == 30)
    #expect(stored([Field("Age", "30")]).age(now: 999 - StoredResponse.clockDriftMax) == .infinity)
  }

  @Test(
    arguments: [
      ("7200, 0", 7200), ("0, 7200", 0), ("abc", 0), ("-7200", 0), ("7200.0", 0), ("7200;foo=1", 0), ("", 0),
      ("2147483648", 2_147_483_648), ("99999999999999999999", 2_147_483_648),
    ] as [(String, Double)])
  func ageFields(value: String, expected: Double) {
    #expect(stored([Field("Age", value)]).age(now: 1000) == expected)
    #expect(stored([Field("Age", value), Field("Age", "5")]).age(now: 1000) == expected, "the first line counts")
  }

  @Test func usability() {
    func use(_ response: String, _ request: String = "", after seconds: Double) -> StoredResponse.Usability {
      stored([Field("Cache-Control", response)]).usability(
        for: CacheControl([Field("Cache-Control", request)]), now: 1000 + seconds)
    }
    #expect(use("max-age=10", after: 9.9) == .fresh)
    #expect(use("max-age=10", after: 10) == .stale)
    #expect(use("max-age=0", after: 0) == .stale)
    #expect(use("max-age=10, no-cache", after: 1) == .stale)
    #expect(use("max-age=10, no-cache=\"a\"", after: 1) == .fresh)
    #expect(use("max-age=10", "no-cache", after: 1) == .stale)
    #expect(use("max-age=10", "max-age=0", after: 0) == .stale)
    #expect(use("max-age=10", "max-age=5", after: 5) == .fresh)
    #expect(use("max-age=10", "max-age=5", after: 6) == .stale)
    #expect(use("max-age=10", "max-age=x", after: 1) == .stale)
    #expect(use("max-age=10", "min-fresh=5", after: 5) == .fresh)
    #expect(use("max-age=10", "min-fresh=5", after: 6) == .stale)
    #expect(use("max-age=10", "min-fresh=x", after: 1) == .stale)
    #expect(use("max-age=10", "max-stale", after: 1e9) == .staleAllowed)
    #expect(use("max-age=10", "max-stale=5", after: 15) == .staleAllowed)
    #expect(use("max-age=10", "max-stale=5", after: 16) == .stale)
    #expect(use("max-age=10", "max-stale=5, max-age=12", after: 13) == .stale)
    #expect(use("max-age=10, must-revalidate", "max-stale", after: 11) == .stale)
    #expect(use("max-age=10, no-cache", "max-stale", after: 11) == .stale)
    #expect(use("max-age=10, stale-while-revalidate=5", after: 15) == .staleWhileRevalidated)
    #expect(use("max-age=10, stale-while-revalidate=5", after: 16) == .stale)
    #expect(use("max-age=10, stale-while-revalidate=5, must-revalidate", after: 12) == .stale)
    #expect(use("max-age=10, stale-while-revalidate=5", "max-age=100", after: 12) == .stale)
    #expect(use("stale-while-revalidate=5", after: 0) == .stale, "no lifetime that could be over")
  }

  @Test func standIns() {
    func may(_ response: String, _ request: String = "", after seconds: Double) -> Bool {
      stored([Field("Cache-Control", response)]).mayStandIn(
        for: CacheControl([Field("Cache-Control", request)]), now: 1000 + seconds)
    }
    #expect(!may("max-age=10", after: 11))
    #expect(may("max-age=10, stale-if-error=5", after: 15))
    #expect(!may("max-age=10, stale-if-error=5", after: 16))
    #expect(may("max-age=10", "stale-if-error=5", after: 15))
    #expect(may("max-age=10, stale-if-error=1", "stale-if-error=5", after: 15))
    #expect(!may("max-age=10, stale-if-error=5, must-revalidate", after: 11))
    #expect(!may("max-age=10, stale-if-error=5, no-cache", after: 11))
    #expect(!may("max-age=10, stale-if-error=5", "no-cache", after: 11))
  }
}
