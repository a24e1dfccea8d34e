import LarkspurHTTP
import Testing

@Suite struct UploadLimitsTests {
  @Test func roundTrip() {
    for limits in [
      UploadLimits(), UploadLimits(maxSize: 5), UploadLimits(minSize: 0, maxAge: 7),
      UploadLimits(maxSize: 1, minSize: 2, maxAppendSize: 3, minAppendSize: 4, maxAge: StructuredItem.integerMax),
    ] {
      #expect(UploadLimits([limits.text]) == limits)
    }
    #expect(UploadLimits(maxSize: 1, maxAge: 2).text == "max-size=1, max-age=2")
  }

  @Test func linesAndUnknownMembers() {
    #expect(UploadLimits(["max-size=1", "other=\"x\", max-age=5;q"]) == UploadLimits(maxSize: 1, maxAge: 5))
    #expect(UploadLimits([]) == nil)
  }

  @Test(arguments: [
    "max-size=1.5", "max-size=\"1\"", "max-size", "max-size=-1", "max-size=1, min-size=a", "max-age=(1)", "max-size=1,",
    "max-size=9999999999999999", "MAX-SIZE=1", "max-size=1 min-size=2",
  ])
  func theWholeFieldIsIgnored(text: String) { #expect(UploadLimits([text]) == nil) }

  @Test func sizes() {
    let limits = UploadLimits(maxSize: 10, minSize: 5)
    #expect([4, 5, 10, 11].map { limits.allow(length: $0) } == [false, true, true, false])
    #expect(UploadLimits().allow(length: .max))
  }

  @Test func nextContent() {
    func next(_ limits: UploadLimits, _ offset: Int, most: Int? = nil) -> Range<Int>? {
      limits.nextContent(from: offset, length: 100, most: most)
    }
    #expect(next(UploadLimits(), 0) == 0..<100 && next(UploadLimits(), 100) == 100..<100)
    #expect(next(UploadLimits(maxAppendSize: 30), 0) == 0..<30 && next(UploadLimits(maxAppendSize: 30), 90) == 90..<100)
    #expect(next(UploadLimits(), 10, most: 7) == 10..<17)
    // The server's minimum is stronger than the client's own maximum, and the last request is exempt.
    #expect(next(UploadLimits(minAppendSize: 20), 0, most: 7) == 0..<20)
    #expect(next(UploadLimits(minAppendSize: 20), 90, most: 7) == 90..<100)
    #expect(next(UploadLimits(maxAppendSize: 10, minAppendSize: 20), 0) == nil)
    #expect(next(UploadLimits(maxAppendSize: 10, minAppendSize: 20), 95) == 95..<100)
    #expect(next(UploadLimits(maxAppendSize: 0), 0) == nil && next(UploadLimits(maxAppendSize: 0), 100) == 100..<100)
    #expect(next(UploadLimits(), 0, most: 0) == 0..<1)
  }
}
