import LarkspurHTTP
import Testing

@Suite struct BodyExtentTests {
  private func extent(_ range: String?, _ others: [(String, String)] = [], status: Int = 200) -> BodyExtent {
    let fields = (range.map { [("content-range", $0)] } ?? []) + others
    return BodyExtent(status: status) { name in fields.filter { $0.0 == name }.map(\.1) }
  }

  @Test func withoutARangeItIsTheWhole() {
    #expect(extent(nil) == .whole(count: nil))
    #expect(extent(nil, [("content-length", "10"), ("content-type", "text/plain")]) == .whole(count: nil))
  }

  @Test func aRangeOfAllIsTheWhole() {
    #expect(extent("bytes 0-9/10") == .whole(count: 10))
    #expect(extent("Bytes 0-9/10", [("content-length", "10")]) == .whole(count: 10))
  }

  @Test(arguments: ["bytes 1-9/10", "bytes 0-8/10", "bytes 5-5/10", "bytes 5-9/*"]) func lessIsAPartAndNeeds206(
    range: String
  ) {
    #expect(extent(range) == .contradiction && extent(range, status: 203) == .contradiction)
    #expect(extent(range, status: 206) == ContentRange(range).map(BodyExtent.part))
  }

  @Test func whatContradictsItselfIsNotTheWhole() {
    for status in [200, 203, 206] {
      func extent(_ range: String?, _ others: [(String, String)]) -> BodyExtent {
        self.extent(range, others, status: status)
      }
      #expect(extent("bytes 0-9/10", [("content-length", "9")]) == .contradiction)
      #expect(extent("bytes 0-9/*", [("content-length", "11")]) == .contradiction)
      for type in ["multipart/byteranges; boundary=x", "Multipart/ByteRanges", "multipart/byteranges;x=y"] {
        #expect(extent(nil, [("content-type", type)]) == .contradiction)
        #expect(extent("bytes 0-9/10", [("content-type", type)]) == .contradiction)
      }
    }
    #expect(extent(nil, [("content-type", "multipart/byterangesx")]) == .whole(count: nil))
  }

  /// An unreadable `Content-Range` leaves the extent unclear: RFC 9110 14.4 gives the field no meaning here, and
  /// programs page through lists with units of their own.
  @Test(arguments: ["items 0-9/100", "0-9/10", "bytes */10", "bytes 9-0/10", "bytes 0-10/10", "bytes 0-9/*", ""])
  func whatCannotBeReadSaysNothing(range: String) {
    #expect(extent(range) == .unclear)
    #expect(extent("bytes 0-9/10", [("content-range", range)]) == .unclear)
    #expect(extent("bytes 0-9/10", [("content-range", range)], status: 206) == .contradiction)
  }

  @Test func aPartStatesItsRange() {
    #expect(extent(nil, status: 206) == .contradiction && extent("items 0-9/100", status: 206) == .contradiction)
    let whole = ContentRange(bytes: 0..<10, total: 10)
    #expect(extent("bytes 0-9/10", [("content-length", "10")], status: 206) == .part(whole))
  }

  @Test func a416HasNothing() {
    #expect(extent(nil, status: 416) == .nothing(total: nil))
    #expect(extent("bytes */10", [("content-length", "5")], status: 416) == .nothing(total: 10))
    #expect(extent("Bytes */0", status: 416) == .nothing(total: 0))
    for range in ["bytes 0-9/10", "items */10", "bytes */", "bytes */-1", "bytes */*", "", "bytes=*/10"] {
      #expect(extent(range, status: 416) == .unclear, "\(range)")
    }
    #expect(extent("bytes */10", [("content-range", "bytes */10")], status: 416) == .unclear)
  }

  @Test(arguments: [204, 304, 404, 500]) func anotherStatusHasNoBytes(status: Int) {
    #expect(extent("bytes 0-9/10", status: status) == .other)
  }
}
