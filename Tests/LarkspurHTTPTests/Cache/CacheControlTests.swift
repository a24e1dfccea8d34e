import LarkspurHTTP
import Testing

@Suite struct CacheControlTests {
  private func control(_ lines: String...) -> CacheControl {
    CacheControl(lines.map { Field("cache-CONTROL", $0) })
  }

  @Test(
    arguments: [
      ("max-age=3600", .seconds(3600)), ("MaX-aGe=3600", .seconds(3600)), ("max-age=\"3600\"", .seconds(3600)),
      ("max-age=003600", .seconds(3600)), ("max-age=0", .seconds(0)), ("foobar, max-age=5", .seconds(5)),
      ("max-age=2147483648", .seconds(1 << 31)), ("max-age=99999999999999999999999", .seconds(1 << 31)),
      ("max-age=2147483647", .seconds(Int(Int32.max))), ("max-age", .invalid), ("max-age=", .invalid),
      ("max-age=-1", .invalid), ("max-age=a5", .invalid), ("max-age=5a", .invalid), ("max-age=5.0", .invalid),
      ("max-age='5'", .invalid), ("max-age =5", .invalid), ("max-age= 5", .invalid), ("max-age=\"5", .invalid),
      ("max-age=\"\"", .invalid), ("max-age=5, max-age=9", .seconds(5)), ("max-age=x, max-age=9", .invalid),
      ("extension=\"max-age=3600\", max-age=1", .seconds(1)), ("x=\"a\\\", max-age=7\"", nil), ("s-maxage=5", nil),
      ("", nil),
    ] as [(String, CacheControl.Delta?)])
  func maxAge(line: String, expected: CacheControl.Delta?) {
    #expect(control(line).maxAge == expected)
  }

  @Test func theFirstLineCounts() {
    #expect(control("max-age=5", "max-age=9").maxAge == .seconds(5))
    #expect(control("no-transform", "max-age=9").maxAge == .seconds(9))
  }

  @Test func flags() {
    let all = control("No-StOrE, public ,PRIVATE,must-revalidate,, must-understand;", "immutable, only-if-cached")
    #expect(all.noStore && all.isPublic && all.isPrivate && all.mustRevalidate && all.isImmutable && all.onlyIfCached)
    #expect(!all.mustUnderstand, "`must-understand;` is another directive")
    #expect(all.isPresent && all.noCache == .nothing)
    #expect(!control().isPresent && !control(" , ").isPresent)
    // An unexpected argument does not lift a prohibition.
    #expect(control("no-store=\"x\"").noStore)
    #expect(control("no-store =").noStore)
  }

  @Test(
    arguments: [
      ("no-cache", .everything), ("no-cache=\"A, b\"", .fields(["a", "b"])),
      ("no-cache=Set-Cookie", .fields(["set-cookie"])),
      ("no-cache=\"a\", no-cache=\"b\"", .fields(["a", "b"])), ("no-cache=\"a\", no-cache", .everything),
      ("no-cache, no-cache=\"a\"", .everything), ("no-cache=\"a", .everything), ("no-cache =\"a\"", .everything),
      ("no-cache=\"\"", .everything), ("no-cache=", .everything), ("no-cache=\",\"", .everything),
      ("max-age=1", .nothing),
    ] as [(String, CacheControl.Scope)])
  func noCache(line: String, expected: CacheControl.Scope) {
    #expect(control(line).noCache == expected)
  }

  /// Each response is compared with each named field, so a list of too many names counts as `no-cache` for everything.
  @Test func tooManyNames() {
    let names = (0...CacheControl.fieldNamesMax).map { "x\($0)" }
    let most = Array(names.dropLast())
    func scope(_ names: [String]) -> CacheControl.Scope {
      control("no-cache=\"\(names.joined(separator: ","))\"").noCache
    }
    #expect(scope(most) == .fields(most))
    #expect(scope(names) == .everything)
    // The limit holds in one directive and over many.
    #expect(control(most.map { "no-cache=\"\($0)\"" }.joined(separator: ", ")).noCache == .fields(most))
    #expect(control(names.map { "no-cache=\"\($0)\"" }.joined(separator: ", ")).noCache == .everything)
  }

  @Test func staleness() {
    let some = control("max-stale, min-fresh=3, stale-while-revalidate=4, stale-if-error=5, s-maxage=6")
    #expect(some.maxStale == .seconds(CacheControl.deltaSecondsMax) && some.minFresh == .seconds(3))
    #expect(some.staleWhileRevalidate == .seconds(4) && some.staleIfError == .seconds(5))
    #expect(some.sharedMaxAge == .seconds(6))
    #expect(control("max-stale=7").maxStale == .seconds(7))
    #expect(control("max-stale=x").maxStale == .invalid)
  }

  /// RFC 9111 5.4: `Pragma` counts only without `Cache-Control`.
  @Test func pragma() {
    func request(_ fields: FieldList) -> CacheControl.Scope { CacheControl.ofRequest(fields).noCache }
    #expect(request([Field("Pragma", "No-Cache")]) == .everything)
    #expect(request([Field("Pragma", "x, no-cache")]) == .everything)
    #expect(request([Field("Pragma", "x")]) == .nothing)
    #expect(request([Field("Pragma", "no-cache"), Field("Cache-Control", "max-age=5")]) == .nothing)
    #expect(CacheControl([Field("Pragma", "no-cache")]).noCache == .nothing, "in a response it means nothing")
  }
}
