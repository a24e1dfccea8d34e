import LarkspurHTTP
import Testing

@Suite struct BodyExtentTests {
  private func extent(_ range: String?, _ others: [(String, String)] = []) -> BodyExtent {
    let fields = (range.map { [("content-range", $0)] } ?? []) + others
    return BodyExtent { name in fields.filter { $0.0 == name }.map(\.1) }
  }

  @Test func withoutARangeItIsTheWhole() {
    #expect(extent(nil) == .whole(count: nil))
    #expect(extent(nil, [("content-length", "10"), ("content-type", "text/plain")]) == .whole(count: nil))
  }

  @Test func aRangeOfAllIsTheWhole() {
    #expect(extent("bytes 0-9/10") == .whole(count: 10))
    #expect(extent("Bytes 0-9/10", [("content-length", "10")]) == .whole(count: 10))
  }

  @Test(arguments: ["bytes 1-9/10", "bytes 0-8/10", "bytes 5-5/10", "bytes 5-9/*"]) func lessIsAPart(range: String) {
    #expect(extent(range) == .part)
  }

  @Test func whatContradictsItselfIsNotTheWhole() {
    #expect(extent("bytes 0-9/10", [("content-length", "9")]) == .part)
    #expect(extent("bytes 0-9/*", [("content-length", "11")]) == .part)
    #expect(extent(nil, [("content-type", "multipart/byteranges; boundary=x")]) == .part)
  }

  /// An unreadable `Content-Range` leaves the extent unclear: RFC 9110 14.4 gives the field no meaning here, and
  /// programs page through lists with units of their own.
  @Test(arguments: ["items 0-9/100", "0-9/10", "bytes */10", "bytes 9-0/10", "bytes 0-10/10", "bytes 0-9/*", ""])
  func whatCannotBeReadSaysNothing(range: String) {
    #expect(extent(range) == .unclear)
    #expect(extent("bytes 0-9/10", [("content-range", range)]) == .unclear)
  }
}
