import Foundation
import LarkspurHTTP
import Testing

@Suite struct HTTPDateTests {
  static let now = 1_800_000_000.0  // January 2027.

  @Test(
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
      ("Sun Nov  6 08:49:37 1994", 784_111_777), ("sun, 06 nov 1994 08:49:37 gmt", 784_111_777),
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
      ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400), ("Sun, 21 Nov 2286 04:46:39 GMT", 10_000_039_599),
      ("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878), ("Friday, 18-Aug-78 02:01:18 GMT", 272_253_678),
      // A leap second is read as the second after it.
      ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
    ] as [(String, Double)])
  func reads(text: String, seconds: Double) {
    #expect(HTTPDate.parse(text, now: Self.now) == seconds)
  }

  @Test(arguments: [
    "", "0", "-1", "Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18 Aug 2050 02:01:18 AEST", "Thu, 18 Aug 2050 02:01:18",
    "Thu, 18 Aug 50 02:01:18 GMT", "Thu 18 Aug 2050 02:01:18 GMT", "Thu, 18  Aug  2050 02:01:18 GMT",
    "Thu, 18-Aug-2050 02:01:18 GMT", "Thu, 18 Aug 2050 02.01.18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT",
    "Thu, 18 Aug 2050 02:01:18 GMT ", "Thu, 18 Aug 2050 02:01:18 GMTX", "Thu, 32 Aug 2050 02:01:18 GMT",
    "Thu, 00 Aug 2050 02:01:18 GMT", "Tue, 29 Feb 2100 00:00:00 GMT", "Thu, 18 Aux 2050 02:01:18 GMT",
    "Thu, 18 Aug 2050 24:00:00 GMT", "Thu, 18 Aug 2050 23:60:00 GMT", "Foo, 18 Aug 2050 02:01:18 GMT",
    "Thursday, 18 Aug 2050 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT",
    "Thu Aug 8 02:01:18 2050", "Thu Aug 08 02:01:18 2050 GMT", "Sun, 6 Nov 1994 08:49:37 GMT",
  ])
  func refuses(text: String) {
    #expect(HTTPDate.parse(text, now: Self.now) == nil)
  }

  /// RFC 9110 5.6.7: a two-digit year that would be more than 50 years ahead is in the past.
  @Test func twoDigitYears() {
    let end = "01-Jan-77 00:00:00 GMT"
    let year2077 = HTTPDate.parse("Fri, 01 Jan 2077 00:00:00 GMT", now: 0)
    let year1977 = HTTPDate.parse("Sat, 01 Jan 1977 00:00:00 GMT", now: 0)
    let in2026 = HTTPDate.parse("Thu, 31 Dec 2026 00:00:00 GMT", now: 0)
    #expect(HTTPDate.parse("Friday, \(end)", now: Self.now) == year2077)
    #expect(HTTPDate.parse("Friday, \(end)", now: in2026 ?? 0) == year1977)
    #expect(HTTPDate.parse("Friday, \(end)", now: .nan) == nil)
    #expect(HTTPDate.parse("Friday, \(end)", now: 1e300) == nil)
  }

  @Test func writesWhatItReads() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      let seconds = Double(Int64.random(in: -62_000_000_000...253_000_000_000, using: &generator))
      let text = HTTPDate.format(seconds)
      #expect(HTTPDate.parse(text, now: 0) == seconds, "\(text)")
    }
    #expect(HTTPDate.format(784_111_777.9) == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(HTTPDate.format(.infinity) == "Fri, 31 Dec 9999 23:59:59 GMT")
    #expect(HTTPDate.format(.nan) == "Thu, 01 Jan 1970 00:00:00 GMT")
    #expect(HTTPDate.format(-.infinity).hasSuffix("0000 00:00:00 GMT"))
  }
}
