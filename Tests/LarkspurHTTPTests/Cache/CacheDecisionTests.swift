import LarkspurHTTP
import Testing

@Suite struct CacheDecisionTests {
  /// Returns the decision as a short text.
  private func decide(
    _ policy: CacheRequest.Policy = .byProtocol, _ fields: FieldList = [], method: String = "GET",
    hasBody: Bool = false, isDecoding: Bool = true, among candidates: [StoredResponse], now: Double = 1001
  ) -> String {
    let request = CacheRequest(
      method: method, fields: fields, policy: policy, hasBody: hasBody, isDecoding: isDecoding)
    func text(_ fields: FieldList) -> String { fields.map { " \($0.name)=\($0.value)" }.joined() }
    switch CacheDecision.decide(request, among: candidates, now: now) {
    case .fail(let failure): return "fail \(failure)"
    case .load(let standIn, let adding): return "load" + (standIn.map { " for \($0)" } ?? "") + text(adding)
    case .validate(let candidate, let adding): return "validate \(candidate)" + text(adding)
    case .serve(let serving):
      let form =
        switch serving.form {
        case .whole: "whole"
        case .head: "head"
        case .notModified: "304"
        case .part(let bytes, let range): "\(bytes) \(range.text)"
        }
      return "serve \(serving.candidate) \(form) \(serving.age)" + (serving.isStale ? " stale" : "")
        + (serving.refresh.map { " refresh" + text($0) } ?? "")
    }
  }

  static let fresh = stored([
    Field("Cache-Control", "max-age=60"), Field("ETag", "\"a\""), Field("Last-Modified", date(0)),
  ])
  static let stale = stored([
    Field("Cache-Control", "max-age=0"), Field("ETag", "\"a\""), Field("Last-Modified", date(0)),
  ])
  static let bare = stored([Field("Cache-Control", "max-age=0")])

  private static let validation = " If-None-Match=\"a\" If-Modified-Since=\(date(0))"

  @Test(
    arguments: [
      (.byProtocol, ["load", "serve 0 whole 1", "validate 0\(validation)", "load for 0"]),
      (.ignoringStored, ["load", "load", "load", "load"]),
      (
        .ignoringAllCaches,
        Array(repeating: "load Cache-Control=no-cache Pragma=no-cache", count: 4)
      ),
      (.storedElseLoad, ["load", "serve 0 whole 1", "serve 0 whole 1 stale", "serve 0 whole 1 stale"]),
      (.storedOnly, ["fail notStored", "serve 0 whole 1", "serve 0 whole 1 stale", "serve 0 whole 1 stale"]),
      (
        .revalidating,
        [
          "load Cache-Control=max-age=0", "validate 0\(validation) Cache-Control=max-age=0",
          "validate 0\(validation) Cache-Control=max-age=0", "load for 0 Cache-Control=max-age=0",
        ]
      ),
    ] as [(CacheRequest.Policy, [String])])
  func policies(policy: CacheRequest.Policy, expected: [String]) {
    for (candidates, expected) in zip([[], [Self.fresh], [Self.stale], [Self.bare]], expected) {
      #expect(decide(policy, among: candidates) == expected)
    }
  }

  /// Only GET and HEAD are looked up in the cache.
  @Test func otherMethods() {
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get", ""] {
      #expect(decide(method: method, among: [Self.fresh]) == "load")
      #expect(decide(.storedOnly, method: method, among: [Self.fresh]) == "fail notStored")
    }
    #expect(decide(hasBody: true, among: [Self.fresh]) == "load")
    #expect(decide(method: "HEAD", among: [Self.fresh]) == "serve 0 head 1")
    #expect(decide(method: "HEAD", among: [Self.stale]) == "load for 0")
  }

  @Test func requestDirectives() {
    let only: FieldList = [Field("Cache-Control", "only-if-cached")]
    #expect(decide(.byProtocol, only, among: []) == "fail onlyIfCached")
    #expect(decide(.byProtocol, only, among: [Self.stale]) == "fail onlyIfCached")
    #expect(decide(.byProtocol, only, among: [Self.fresh]) == "serve 0 whole 1")
    #expect(decide(.byProtocol, only, method: "POST", among: []) == "fail onlyIfCached")
    #expect(decide(.byProtocol, [Field("Cache-Control", "no-store")], among: [Self.fresh]) == "load")
    let neither: FieldList = [Field("Cache-Control", "no-store, only-if-cached")]
    #expect(decide(.byProtocol, neither, among: [Self.fresh]) == "fail onlyIfCached")
    #expect(decide(.byProtocol, [Field("Pragma", "no-cache")], among: [Self.fresh]) == "validate 0\(Self.validation)")
    // A caller's own cache directives are not changed.
    #expect(decide(.ignoringAllCaches, [Field("Cache-Control", "max-age=5")], among: []) == "load Pragma=no-cache")
    #expect(decide(.ignoringAllCaches, [Field("Pragma", "x")], among: []) == "load Cache-Control=no-cache")
    #expect(
      decide(.revalidating, [Field("Cache-Control", "max-age=5")], among: [Self.fresh])
        == "validate 0\(Self.validation)")
  }

  @Test func staleWhileRevalidate() {
    let some = stored([Field("Cache-Control", "max-age=0, stale-while-revalidate=9"), Field("ETag", "\"a\"")])
    #expect(decide(among: [some]) == "serve 0 whole 1 stale refresh If-None-Match=\"a\"")
    #expect(decide(among: [some], now: 1010) == "validate 0 If-None-Match=\"a\"")
  }

  /// RFC 8246: a reload does not validate an immutable response while it is fresh.
  @Test func immutable() {
    let some = stored([Field("Cache-Control", "max-age=60, immutable"), Field("ETag", "\"a\"")])
    #expect(decide(.revalidating, among: [some]) == "serve 0 whole 1")
    #expect(decide(.revalidating, among: [some], now: 1060).hasPrefix("validate 0"))
    #expect(decide(.byProtocol, [Field("Cache-Control", "no-cache")], among: [some]).hasPrefix("validate 0"))
  }

  /// The caller's conditional fields stay as they are: none is added, and the server is asked unless the stored
  /// response answers them.
  @Test func conditionsOfTheCaller() {
    func answer(_ fields: FieldList, _ stored: StoredResponse = Self.fresh) -> String {
      decide(.byProtocol, fields, among: [stored])
    }
    #expect(answer([Field("If-None-Match", "\"a\"")]) == "serve 0 304 1")
    #expect(answer([Field("If-None-Match", "W/\"a\"")]) == "serve 0 304 1")
    #expect(answer([Field("If-None-Match", "\"x\", \"a\"")]) == "serve 0 304 1")
    #expect(answer([Field("If-None-Match", "*")]) == "serve 0 304 1")
    #expect(answer([Field("If-None-Match", "\"b\"")]) == "load")
    #expect(answer([Field("If-None-Match", "\"b\""), Field("If-Modified-Since", date(0))]) == "load")
    #expect(answer([Field("If-Modified-Since", date(0))]) == "serve 0 304 1")
    #expect(answer([Field("If-Modified-Since", date(-1))]) == "load")
    #expect(answer([Field("If-Modified-Since", "x")]) == "load")
    #expect(answer([Field("If-None-Match", "\"a\"")], Self.stale) == "load")
    #expect(answer([Field("If-Match", "\"a\"")]) == "load" && answer([Field("If-Unmodified-Since", date(0))]) == "load")
    #expect(answer([Field("If-None-Match", "\"a\""), Field("If-Match", "\"a\"")]) == "load")
    #expect(
      decide(.revalidating, [Field("If-None-Match", "\"b\"")], among: [Self.fresh]) == "load Cache-Control=max-age=0")
  }

  @Test func ranges() {
    func answer(_ range: String, _ stored: StoredResponse = Self.fresh, _ more: FieldList = []) -> String {
      decide(.byProtocol, [Field("Range", range)] + more, among: [stored])
    }
    #expect(answer("bytes=0-1") == "serve 0 0..<2 bytes 0-1/10 1")
    #expect(answer("bytes=8-") == "serve 0 8..<10 bytes 8-9/10 1")
    #expect(answer("bytes=-3") == "serve 0 7..<10 bytes 7-9/10 1")
    #expect(answer("bytes=-30") == "serve 0 0..<10 bytes 0-9/10 1")
    #expect(answer("bytes=5-99") == "serve 0 5..<10 bytes 5-9/10 1")
    // Ranges that the stored response cannot answer are left to the server.
    for range in ["bytes=10-", "bytes=0-1,3-4", "bytes=-0", "lines=0-1", "bytes=2-1", "bytes=", "x"] {
      #expect(answer(range) == "load", "\(range)")
    }
    #expect(answer("bytes=0-1", Self.stale) == "validate 0\(Self.validation)")
    #expect(answer("bytes=0-1", stored([Field("Cache-Control", "max-age=60")], status: 404)) == "serve 0 whole 1")
    #expect(answer("bytes=0-1", Self.fresh, [Field("If-Range", "\"a\"")]) == "serve 0 0..<2 bytes 0-1/10 1")
    #expect(answer("bytes=0-1", Self.fresh, [Field("If-Range", "W/\"a\"")]) == "load")
    #expect(answer("bytes=0-1", Self.fresh, [Field("If-Range", date(0))]) == "serve 0 0..<2 bytes 0-1/10 1")
    #expect(answer("bytes=0-1", Self.fresh, [Field("If-Range", date(1))]) == "load")
    let young = stored([Field("Cache-Control", "max-age=60"), Field("Last-Modified", date(950))])
    #expect(answer("bytes=0-1", young, [Field("If-Range", date(950))]) == "load", "a date that is not yet strong")
    let decoded = stored([Field("Cache-Control", "max-age=60"), Field("Content-Encoding", "gzip")], isDecoded: true)
    #expect(answer("bytes=0-1", decoded) == "load")
    let part = stored(
      [Field("Cache-Control", "max-age=60"), Field("ETag", "\"a\""), Field("Last-Modified", date(0))], status: 206,
      part: ContentRange(bytes: 4..<9, total: 10), bodyCount: 5)
    #expect(answer("bytes=6-8", part) == "serve 0 2..<5 bytes 6-8/10 1")
    #expect(answer("bytes=6-", part) == "load" && answer("bytes=0-4", part) == "load")
    #expect(decide(among: [part]) == "load" && decide(method: "HEAD", among: [part]) == "load")
    #expect(decide(.storedOnly, among: [part]) == "fail notStored")
    // A date does not distinguish versions of a part.
    #expect(
      decide(.byProtocol, [Field("Range", "bytes=6-8")], among: [part], now: 2000) == "validate 0 If-None-Match=\"a\"")
  }

  @Test func choices() {
    func variant(_ value: String?, at time: Double, _ fields: FieldList = []) -> StoredResponse {
      let selection = value.map { CacheSelection(fields: [(name: "foo", value: $0)]) } ?? CacheSelection()
      return stored([Field("Cache-Control", "max-age=600"), Field("Date", date(time))] + fields, selection: selection)
    }
    let all = [variant("1", at: 990), variant("2", at: 980), variant("1", at: 995), variant(nil, at: 999)]
    #expect(decide(.byProtocol, [Field("Foo", "1")], among: all) == "serve 2 whole 6")
    #expect(decide(.byProtocol, [Field("Foo", "2")], among: all) == "serve 1 whole 21")
    #expect(decide(.byProtocol, [Field("Foo", "3")], among: all) == "serve 3 whole 2")
    #expect(decide(.byProtocol, [], among: Array(all.dropLast())) == "load")
    // Decoded content is not served to a caller that decodes by itself.
    let coded = stored([Field("Cache-Control", "max-age=60"), Field("Content-Encoding", "gzip")], isDecoded: true)
    #expect(decide(isDecoding: false, among: [coded]) == "load" && decide(among: [coded]) == "serve 0 whole 1")
    let plain = stored([Field("Cache-Control", "max-age=60")], isDecoded: true)
    #expect(decide(isDecoding: false, among: [plain]) == "serve 0 whole 1")
  }
}

@Suite struct CacheOutcomeTests {
  private func outcome(
    _ status: Int, _ fields: FieldList = [], method: String = "GET", request: FieldList = [],
    policy: CacheRequest.Policy = .byProtocol, candidate: StoredResponse? = nil, isValidated: Bool = false
  ) -> CacheOutcome {
    CacheOutcome.received(
      status: status, fields: fields, for: CacheRequest(method: method, fields: request, policy: policy),
      candidate: candidate, isValidated: isValidated, requestTime: 2000, now: 2001)
  }

  private func name(_ outcome: CacheOutcome) -> String { "\(outcome)".prefix { $0 != "(" }.description }

  @Test func everyMethodAndStatus() {
    for method in ["GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "DELETE", "PATCH", "M-SEARCH"] {
      for status in [200, 204, 206, 301, 304, 399, 400, 404, 500, 599] {
        let name = name(outcome(status, [Field("Cache-Control", "max-age=5")], method: method))
        let isSafe = ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method)
        let expected =
          isSafe
          ? (method == "GET" && status != 304 && status != 206 ? "store" : "deliver")
          : (status < 400 ? "invalidate" : "deliver")
        #expect(name == expected, "\(method) \(status)")
      }
    }
  }

  @Test func invalidation() {
    guard
      case .invalidate(let references) = outcome(
        201, [Field("content-location", "/b"), Field("Location", "/a"), Field("Location", "/c")], method: "POST")
    else {
      Issue.record("not invalidated")
      return
    }
    #expect(references == ["/a", "/b"])
  }

  @Test func notModified() throws {
    let held = stored([
      Field("Cache-Control", "max-age=0"), Field("ETag", "\"a\""), Field("X", "1"), Field("x", "2"), Field("Y", "1"),
      Field("Age", "100"),
      Field("Content-Length", "10"), Field("Content-Encoding", "gzip"), Field("Content-Type", "a/b"),
      Field("Date", date(900)),
    ])
    let news: FieldList = [
      Field("ETag", "\"a\""), Field("Cache-Control", "max-age=9"), Field("X", "3"), Field("Content-Length", "0"),
      Field("Content-Encoding", "br"), Field("Content-Range", "x"), Field("Connection", "z"), Field("Z", "1"),
      Field("Content-Type", "c/d"),
    ]
    guard case .confirmed(let now) = outcome(304, news, candidate: held, isValidated: true) else {
      Issue.record("not confirmed")
      return
    }
    #expect(
      now.fields.map { "\($0.name): \($0.value)" } == [
        "Y: 1", "Content-Length: 10", "Content-Encoding: gzip", "ETag: \"a\"", "Cache-Control: max-age=9", "X: 3",
        "Content-Type: c/d", "Date: \(date(2001))",
      ])
    #expect(now.requestTime == 2000 && now.responseTime == 2001 && now.bodyCount == 10)
    #expect(now.usability(for: CacheControl(), now: 2002) == .fresh)
  }

  @Test func notModifiedOfSomethingElse() {
    let held = stored([Field("ETag", "\"a\""), Field("Last-Modified", date(0))])
    func confirmed(_ fields: FieldList, isValidated: Bool = true) -> String {
      name(outcome(304, fields, candidate: held, isValidated: isValidated))
    }
    #expect(confirmed([]) == "confirmed" && confirmed([Field("ETag", "W/\"a\"")]) == "confirmed")
    #expect(confirmed([Field("ETag", "\"b\"")]) == "confirmedOnce")
    guard case .confirmedOnce(let given) = outcome(304, [Field("ETag", "\"b\"")], candidate: held, isValidated: true)
    else {
      Issue.record("not confirmed")
      return
    }
    // The caller would take the version's entity tag for the content's.
    #expect(given.entityTag == "\"a\"")
    #expect(confirmed([Field("Last-Modified", date(1))]) == "confirmedOnce")
    #expect(confirmed([Field("Last-Modified", date(0))]) == "confirmed")
    // The caller's own conditions.
    #expect(confirmed([], isValidated: false) == "deliver")
    #expect(confirmed([Field("ETag", "\"a\"")], isValidated: false) == "freshen")
    #expect(confirmed([Field("ETag", "\"b\"")], isValidated: false) == "deliver")
    #expect(confirmed([Field("Last-Modified", date(0))], isValidated: false) == "freshen")
    #expect(name(outcome(304)) == "deliver")
  }

  /// RFC 9111 5.2.2.5: a `no-store` response does not update a stored one either.
  @Test func newsThatMustNotBeStored() {
    let held = stored([Field("Cache-Control", "max-age=0"), Field("ETag", "\"a\""), Field("Content-Length", "10")])
    let news: FieldList = [Field("ETag", "\"a\""), Field("Cache-Control", "no-store, max-age=60")]
    #expect(name(outcome(304, news, candidate: held, isValidated: true)) == "confirmedOnce")
    #expect(name(outcome(304, news, candidate: held, isValidated: false)) == "discard")
    #expect(name(outcome(200, news, method: "HEAD", candidate: held)) == "discard")
    let understood: FieldList = [
      Field("ETag", "\"a\""), Field("Cache-Control", "no-store, must-understand, max-age=60"),
    ]
    #expect(name(outcome(304, understood, candidate: held, isValidated: true)) == "confirmed")
  }

  /// RFC 9111 4.1 and 4.3.4: the renewed fields determine which requests the response answers.
  @Test func theSelectionFollowsTheFields() {
    let plain: FieldList = [
      Field("Cache-Control", "public, max-age=0"), Field("ETag", "\"a\""), Field("Date", date(900)),
    ]
    func selection(_ news: FieldList, held: FieldList = plain, request: FieldList, isValidated: Bool = true)
      -> String
    {
      let news = [Field("ETag", "\"a\"")] + news
      let outcome = outcome(304, news, request: request, candidate: stored(held), isValidated: isValidated)
      switch outcome {
      case .confirmed(let now), .freshen(let now):
        return now.selection.fields.map { "\($0.name)=\($0.value ?? "-")" }.joined(separator: " ")
      default: return name(outcome)
      }
    }
    for isValidated in [true, false] {
      let vary = selection([Field("Vary", "X-User, b")], request: [Field("X-User", "A")], isValidated: isValidated)
      #expect(vary == "b=- x-user=A")
      let isPrivate = selection(
        [Field("Cache-Control", "private, max-age=60")], request: [Field("Authorization", "A")],
        isValidated: isValidated)
      #expect(isPrivate.hasPrefix("authorization="))
      let isHidden = selection(
        [
          Field("Cache-Control", "no-cache=\"vary, cache-control\""), Field("Connection", "vary"),
          Field("Vary", "X-User"),
        ],
        request: [Field("X-User", "A")], isValidated: isValidated)
      #expect(isHidden == "x-user=A")
    }
    let names = (0...CacheSelection.fieldsMax).map { "x\($0)" }.joined(separator: ",")
    for value in ["*", "X-User, *", names] {
      #expect(selection([Field("Vary", value)], request: [Field("X-User", "A")]) == "confirmedOnce")
      #expect(selection([Field("Vary", value)], request: [Field("X-User", "A")], isValidated: false) == "discard")
    }
    #expect(selection([], request: [Field("Cache-Control", "no-store")]) == "confirmedOnce")
    #expect(
      selection([Field("Vary", "")], held: plain + [Field("Vary", "X-User")], request: [Field("X-User", "A")]) == "")
  }

  /// A date alone does not show that the stored response is that of the request, if its server begins to distinguish
  /// requests by other fields.
  @Test func aDateOfPerhapsAnotherResponse() {
    let held = stored([Field("Last-Modified", date(0))])
    let isMine: FieldList = [Field("Last-Modified", date(0)), Field("Vary", "X-User")]
    #expect(name(outcome(304, isMine, candidate: held, isValidated: true)) == "reload")
    #expect(name(outcome(304, isMine, candidate: held, isValidated: false)) == "discard")
    #expect(name(outcome(304, isMine + [Field("Vary", "*")], candidate: held, isValidated: true)) == "reload")
    #expect(name(outcome(200, isMine, method: "HEAD", candidate: held)) == "discard")
    #expect(
      name(outcome(200, [Field("Vary", "X-User")], method: "HEAD", candidate: stored([Field("ETag", "\"a\"")])))
        == "discard")
    let known = stored(
      [Field("Last-Modified", date(0)), Field("Vary", "X-User")],
      selection: CacheSelection(fields: [(name: "x-user", value: nil)]))
    #expect(name(outcome(304, isMine, candidate: known, isValidated: true)) == "confirmed")
  }

  @Test func heads() {
    let held = stored([Field("ETag", "\"a\""), Field("Content-Length", "10")])
    func head(_ status: Int, _ fields: FieldList) -> String {
      name(outcome(status, fields, method: "HEAD", candidate: held))
    }
    #expect(
      head(200, []) == "freshen" && head(200, [Field("ETag", "\"a\""), Field("Content-Length", "10")]) == "freshen")
    #expect(head(200, [Field("ETag", "\"b\"")]) == "discard" && head(200, [Field("Content-Length", "11")]) == "discard")
    #expect(head(404, []) == "deliver" && head(304, []) == "deliver")
    #expect(head(200, [Field("ETag", "\"a\""), Field("Vary", "*")]) == "discard")
    guard
      case .freshen(let now) = outcome(
        200, [Field("ETag", "\"a\""), Field("Vary", "X")], method: "HEAD", request: [Field("X", "1")], candidate: held)
    else {
      Issue.record("not renewed")
      return
    }
    #expect(now.selection.fields.map(\.name) == ["x"])
  }

  @Test func failures() {
    let held = stored([Field("Cache-Control", "max-age=0, stale-if-error=1000000"), Field("ETag", "\"a\"")])
    for status in [500, 502, 503, 504] {
      #expect(name(outcome(status, candidate: held, isValidated: true)) == "standIn")
      #expect(name(outcome(status, candidate: held)) == "standIn")
      #expect(name(outcome(status, candidate: stored([]), isValidated: true)) == "deliver")
    }
    #expect(name(outcome(501, [Field("Cache-Control", "max-age=1")], candidate: held, isValidated: true)) == "store")
    #expect(name(outcome(404, [Field("Cache-Control", "max-age=1")], candidate: held, isValidated: true)) == "store")
  }

  @Test func aPolicyOfAnyAgeStoresEveryResponse() {
    #expect(name(outcome(200, policy: .storedElseLoad)) == "store" && name(outcome(200)) == "deliver")
  }
}
