import LarkspurHTTP
import Testing

@Suite struct UploadRetryTests {
  private let retry = UploadRetry()

  private func seconds(_ count: Int, _ retryAfter: Double? = nil, fraction: Double) -> Duration {
    retry.delay(count, retryAfter: retryAfter, fraction: fraction)
  }

  @Test func theDelayDoubles() {
    let delays = (1...9).map { [seconds($0, fraction: 0), seconds($0, fraction: 1)] }
    let expected: [Double] = [1, 2, 4, 8, 16, 32, 60, 60, 60]
    #expect(delays == expected.map { [.seconds($0 / 2), .seconds($0)] })
  }

  @Test func hostileNumbers() {
    for fraction in [-1, .nan, -.infinity] as [Double] { #expect(seconds(1, fraction: fraction) == .seconds(0.5)) }
    for fraction in [2, .infinity] as [Double] { #expect(seconds(1, fraction: fraction) == .seconds(1)) }
    for count in [Int.min, -1, 0] { #expect(seconds(count, fraction: 1) == .seconds(1)) }
    #expect(seconds(.max, fraction: 1) == .seconds(60))
    for asked in [-5, .nan, -.infinity] as [Double] { #expect(seconds(1, asked, fraction: 0) == .seconds(0.5)) }
    for asked in [4000, 1e300, .infinity] as [Double] { #expect(seconds(1, asked, fraction: 0) == .seconds(3600)) }
  }

  @Test func theServersDelay() {
    #expect(seconds(1, 10, fraction: 1) == .seconds(10) && seconds(7, 10, fraction: 1) == .seconds(60))
  }

  @Test func statuses() {
    #expect([500, 502, 503, 504, 599, 408, 429].allSatisfy(retry.continues))
    #expect(![400, 401, 403, 404, 409, 410, 413, 600].contains(where: retry.continues))
  }
}
