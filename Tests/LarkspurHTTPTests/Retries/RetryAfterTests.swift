import LarkspurHTTP
import Testing

@Suite struct RetryAfterTests {
  @Test(
    arguments: [
      ("0", 0), ("120", 120), ("99999999999999999999", 1e20), ("Sun, 06 Nov 1994 08:49:37 GMT", 37),
      ("Sun, 06 Nov 1994 08:48:59 GMT", 0), ("", nil), ("-1", nil), ("1.5", nil), ("1 s", nil), ("soon", nil),
    ] as [(String, Double?)])
  func seconds(text: String, expected: Double?) {
    // The time is 08:49:00 on the day of the examples in RFC 9110 5.6.7.
    #expect(RetryAfter.seconds(text, now: 784_111_740) == expected)
  }
}
