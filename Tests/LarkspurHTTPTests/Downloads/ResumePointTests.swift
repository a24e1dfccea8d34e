import LarkspurHTTP
import Testing

@Suite struct ResumePointTests {
  private typealias Fields = [(String, String)]
  /// Sun, 06 Nov 1994 08:49:37 GMT
  private let now = 784_111_777.0

  private func values(_ fields: Fields) -> ResumePoint.Fields {
    { name in fields.filter { $0.0 == name }.map(\.1) }
  }

  private func point(_ fields: Fields, status: Int = 200) -> ResumePoint? {
    ResumePoint(status: status, now: now, fields: values(fields))
  }

  // MARK: - Which downloads can resume

  @Test func aStrongTagNamesTheVersion() {
    let point = point([("etag", "\"one\""), ("content-length", "100")])
    #expect(point == ResumePoint(validator: "\"one\"", offset: 0, total: 100, coding: nil))
  }

  /// A tag without quotes, as some servers send it, identifies the version, too. The rest has to come with an equal
  /// tag.
  @Test func aTagWithoutQuotesDoesToo() throws {
    let known = try #require(self.point([("etag", "range100"), ("content-length", "100")]))
    #expect(known.validator == "range100")
    let rest = [("content-range", "bytes 40-99/100")]
    func decide(_ more: (String, String)?) -> ResumePoint.Decision {
      known.decide(asking: 40, status: 206) { name in
        (rest + [more].compactMap(\.self)).filter { $0.0 == name }.map(\.1)
      }
    }
    #expect(decide(("etag", "range100")) == .continueAt(40, end: 100, total: 100))
    #expect(decide(("etag", "\"range100\"")) == .startOver)
    #expect(decide(("etag", "range101")) == .startOver)
    // Without a tag, the server may not have understood the condition.
    #expect(decide(nil) == .startOver)
    let complete = ResumePoint(validator: "range100", offset: 40, total: nil, coding: nil)
    let nothing = complete.decide(asking: 40, status: 416) { $0 == "content-range" ? ["bytes */40"] : [] }
    #expect(nothing == .startOver)
  }

  @Test(arguments: [
    "W/\"one\"", "w/\"one\"", "W/one", "w/one", "\"one\", \"two\"", "one\"", "\"", "\"one", "",
    "Sun, 06 Nov 1994 08:49:37 GMT",
  ])
  func aTagThatIsWeakOrNoneDoesNot(tag: String) {
    // RFC 9110 13.1.5: a date beside such a tag does not count either.
    let date = ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT")
    #expect(point([("etag", tag), date, ("date", "Sun, 06 Nov 1994 08:49:37 GMT")]) == nil)
  }

  @Test(arguments: [
    ("Sun, 06 Nov 1994 08:49:36 GMT", true), ("Sun, 06 Nov 1994 08:49:37 GMT", false),
    ("Sun, 06 Nov 1994 08:49:38 GMT", false), ("yesterday", false),
  ])
  func aDateDoesASecondBeforeTheResponse(changed: String, isGood: Bool) {
    let point = point([("last-modified", changed), ("date", "Sun, 06 Nov 1994 08:49:37 GMT")])
    #expect((point?.validator == changed) == isGood)
  }

  @Test func twoValidatorsNameNoVersion() {
    let old = ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT")
    #expect(point([("etag", "\"one\""), ("etag", "\"two\"")]) == nil)
    #expect(point([old, ("last-modified", "Fri, 04 Nov 1994 08:49:37 GMT")]) == nil)
    #expect(point([("etag", "\"one\""), old, old])?.validator == "\"one\"")
  }

  @Test(arguments: [("Sun, 06 Nov 1994 08:48:37 GMT", true), ("Sun, 06 Nov 1994 08:48:38 GMT", false)])
  func withoutAServersDateOurClockNeedsAMinute(changed: String, isGood: Bool) {
    #expect((point([("last-modified", changed)]) != nil) == isGood)
  }

  @Test func whatElseStandsInTheWay() {
    let tag = ("etag", "\"one\"")
    #expect(point([]) == nil)
    #expect(point([tag, ("accept-ranges", "none")]) == nil)
    #expect(point([tag, ("accept-ranges", "bytes")]) != nil)
    for status in [206, 203, 404, 500] { #expect(point([tag], status: status) == nil) }
    #expect(point([tag, ("content-length", "no number")])?.total == .some(nil))
    #expect(point([tag, ("content-encoding", "GZIP")])?.coding == "gzip")
    #expect(point([tag, ("content-encoding", "identity")])?.coding == .some(nil))
  }

  // MARK: - The request

  @Test func theRestIsAskedFor() {
    let point = ResumePoint(validator: "\"one\"", offset: 40, total: 100, coding: nil)
    #expect(point.firstAsked == 40)
    let fields = ResumePoint.conditions(from: 40, validator: point.validator)
    #expect(fields.map(\.name) == ["Range", "If-Range"])
    #expect(ResumePoint.conditions(from: 40, through: 60, validator: "\"one\"").first?.value == "bytes=40-60")
    #expect(fields.map(\.value) == ["bytes=40-", "\"one\""])
  }

  @Test func ofWhatIsCompleteTheLastByteIs() {
    #expect(ResumePoint(validator: "\"one\"", offset: 100, total: 100, coding: nil).firstAsked == 99)
    #expect(ResumePoint(validator: "\"one\"", offset: 100, total: nil, coding: nil).firstAsked == 100)
  }

  // MARK: - The answer

  private func decide(
    _ status: Int, _ fields: Fields, total: Int? = 100, validator: String = "\"one\"", coding: String? = nil
  ) -> ResumePoint.Decision {
    ResumePoint(validator: validator, offset: 40, total: total, coding: coding)
      .decide(asking: 40, status: status, fields: values(fields))
  }

  private func decide(_ range: String, total: Int? = 100, _ others: Fields = []) -> ResumePoint.Decision {
    decide(206, [("content-range", range)] + others, total: total)
  }

  @Test func aPartThatFitsGoesOn() {
    #expect(decide("bytes 40-99/100") == .continueAt(40, end: 100, total: 100))
    #expect(decide("bytes 40-99/*") == .continueAt(40, end: 100, total: 100))
    #expect(decide("bytes 40-69/100") == .continueAt(40, end: 70, total: 100))
    #expect(decide("bytes 40-69/*", total: nil) == .continueAt(40, end: 70, total: nil))
    #expect(decide("bytes 40-69/70", total: nil) == .continueAt(40, end: 70, total: 70))
    let all: Fields = [("etag", "\"one\""), ("content-length", "60")]
    #expect(decide("bytes 40-99/100", all) == .continueAt(40, end: 100, total: 100))
  }

  @Test(arguments: [
    "bytes 39-99/100", "bytes 41-99/100", "bytes 0-99/100", "bytes 40-99/101", "bytes 40-100/101", "bytes 40-100/*",
    "bytes 40-99/99", "bytes 40-39/100", "bytes */100", "40-99/100", "items 40-99/100", "bytes 40-/100", "bytes=40-99",
    "bytes 40-99999999999999999999/100", "",
  ])
  func aPartThatDoesNotFitIsNoUse(range: String) {
    #expect(decide(range) == .startOver)
  }

  @Test func aPartOfAnotherVersionIsNoUse() {
    #expect(decide("bytes 40-99/100", [("etag", "\"two\"")]) == .startOver)
    #expect(decide("bytes 40-99/100", [("etag", "W/\"one\"")]) == .startOver)
    #expect(decide("bytes 40-99/100", [("content-encoding", "gzip")]) == .startOver)
    #expect(decide("bytes 40-99/100", [("content-length", "61")]) == .startOver)
    #expect(decide(206, []) == .startOver)
    #expect(decide(206, [("content-type", "multipart/byteranges; boundary=x")]) == .startOver)
    let date = "Sun, 06 Nov 1994 08:48:37 GMT"
    let range = ("content-range", "bytes 40-99/100")
    let other = ("last-modified", "Sun, 06 Nov 1994 08:48:38 GMT")
    #expect(decide(206, [range, other], validator: date) == .startOver)
    #expect(decide(206, [range, ("last-modified", date)], validator: date) == .continueAt(40, end: 100, total: 100))
    let coded = decide(206, [range, ("content-encoding", "gzip")], coding: "gzip")
    #expect(coded == .continueAt(40, end: 100, total: 100))
  }

  @Test func severalPartsAreNoUse() {
    let both: Fields = [
      ("content-range", "bytes 40-99/100"), ("content-type", "Multipart/Byteranges; boundary=x"),
    ]
    #expect(decide(206, both) == .startOver)
    #expect(decide(206, both + [("content-range", "bytes 40-99/100")]) == .startOver)
    #expect(
      decide(206, [both[0], ("content-type", "multipart/mixed; boundary=x")]) == .continueAt(40, end: 100, total: 100))
  }

  @Test func theWholeReplacesThePart() {
    #expect(decide(200, []) == .replace(count: nil))
    #expect(decide(200, [("content-length", "60")]) == .replace(count: nil))
    #expect(decide(200, [("etag", "\"two\""), ("content-length", "60")]) == .replace(count: nil))
    #expect(decide(200, [("content-range", "bytes 0-59/60"), ("content-length", "60")]) == .replace(count: 60))
    #expect(decide(200, [("content-range", "bytes 0-59/60")]) == .replace(count: 60))
  }

  /// A 200 response with a range of less than the whole, or one that contradicts other fields or the version, may be
  /// the rest or the whole, so the download starts over.
  @Test(arguments: [
    ["bytes 40-99/100"], ["bytes 40-99/100", "60"], ["bytes 40-99/100", "100"], ["bytes 40-99/*"], ["bytes 0-59/100"],
    ["bytes 0-99/100", "60"], ["bytes 0-59/60", "100"], ["bytes 0-99/*"], ["bytes 40-99"], ["nonsense"],
    ["bytes */100"], [""],
  ])
  func aWholeThatContradictsItselfIsNoUse(said: [String]) {
    let length = said.dropFirst().map { ("content-length", $0) }
    #expect(decide(200, [("content-range", said[0])] + length) == .startOver)
    #expect(decide(200, [("content-range", said[0]), ("etag", "\"one\"")] + length) == .startOver)
    #expect(decide(200, [("content-range", said[0]), ("etag", "\"two\"")] + length, total: nil) == .startOver)
  }

  @Test func aWholeIsAsLongAsItsVersion() {
    let tag = ("etag", "\"one\"")
    #expect(decide(200, [tag]) == .replace(count: 100))
    #expect(decide(200, [tag, ("content-length", "100")]) == .replace(count: 100))
    #expect(decide(200, [tag, ("content-length", "60")]) == .startOver)
    #expect(decide(200, [tag, ("content-length", "60")], total: nil) == .replace(count: nil))
    #expect(decide(200, [tag, ("content-range", "bytes 0-59/60")]) == .startOver)
    // Another coding of the content has another length.
    #expect(decide(200, [tag, ("content-length", "60"), ("content-encoding", "gzip")]) == .replace(count: nil))
    let date = "Sun, 06 Nov 1994 08:48:37 GMT"
    #expect(decide(200, [("last-modified", date), ("content-length", "60")], validator: date) == .startOver)
    #expect(decide(200, [("etag", "\"x\""), ("content-length", "60")], validator: date) == .replace(count: nil))
    // A proxy has changed the bytes of a 203 (RFC 9110 15.3.4).
    #expect(decide(203, [tag, ("content-length", "60")]) == .replace(count: nil))
    #expect(decide(203, [tag, ("content-range", "bytes 40-99/100")]) == .startOver)
  }

  @Test func nothingLeftMayMeanThatItIsComplete() {
    #expect(decide(416, [("content-range", "bytes */40")], total: nil) == .confirmLast)
    #expect(decide(416, [("content-range", "bytes */40")], total: 40) == .confirmLast)
    #expect(decide(416, [("content-range", "bytes */40")], total: 100) == .startOver)
    #expect(decide(416, [("content-range", "bytes */30")], total: nil) == .startOver)
    #expect(decide(416, [("content-range", "BYTES */40")], total: nil) == .confirmLast)
    #expect(decide(416, [("content-range", "bytes */40"), ("etag", "\"two\"")], total: nil) == .startOver)
    #expect(decide(416, [("content-range", "junk")], total: nil) == .startOver)
    // Where the total length is unknown, a request for the last byte decides.
    #expect(decide(416, [], total: nil) == .confirmLast)
    #expect(decide(416, [], total: 40) == .startOver)
    // If even the last byte is refused, there is no third attempt.
    let point = ResumePoint(validator: "\"one\"", offset: 40, total: 40, coding: nil)
    let again = point.decide(asking: 39, status: 416, fields: values([("content-range", "bytes */40")]))
    #expect(again == .startOver)
  }

  @Test(arguments: [204, 301, 304, 401, 404, 412, 500, 503])
  func anythingElseSaysNothingAboutThePart(status: Int) {
    #expect(decide(status, []) == .deliver)
  }
}
