import LarkspurBytes
import TestKit
import Testing

@Suite struct TokenBucketTests {
  static let start = Deadline(nanoseconds: 5_000_000_000)

  @Test func aBurstAndThenTheRate() {
    var bucket = TokenBucket(bytesPerSecond: 1000, burstBytes: 100, now: Self.start)
    #expect(bucket.available(at: Self.start) == 100)
    bucket.take(100, at: Self.start)
    #expect(bucket.available(at: Self.start) == 0)
    #expect(bucket.available(at: Self.start.advanced(by: .milliseconds(10))) == 10)
    // After a pause of any length, no more than the burst is available.
    #expect(bucket.available(at: Self.start.advanced(by: .seconds(1000))) == 100)
  }

  @Test func whatWentTooMuchIsPaidFor() {
    var bucket = TokenBucket(bytesPerSecond: 1000, burstBytes: 100, now: Self.start)
    bucket.take(1100, at: Self.start)
    #expect(bucket.available(at: Self.start.advanced(by: .milliseconds(1000))) == 0)
    #expect(bucket.refill == Self.start.advanced(by: .milliseconds(1025)))
    #expect(bucket.available(at: bucket.refill) == 25)
  }

  /// A sender that waits until `refill` each time reaches the rate, never exceeds it, and falls below it only by
  /// rounding.
  @Test(arguments: 1...20) func theAverage(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let rate = Int.random(in: 1...1_000_000, using: &generator)
    let burst = Int.random(in: 1...100_000, using: &generator)
    var bucket = TokenBucket(bytesPerSecond: rate, burstBytes: burst, now: Self.start)
    var now = Self.start
    var sent = 0
    for _ in 0..<1000 {
      let available = bucket.available(at: now)
      let count = Int.random(in: 1...max(available, 1), using: &generator)
      if available == 0 {
        #expect(bucket.refill > now)
        now = bucket.refill
        #expect(bucket.available(at: now) >= 1)
        continue
      }
      bucket.take(count, at: now)
      sent += count
      let elapsed = Double(now.nanoseconds - Self.start.nanoseconds) / 1e9
      #expect(Double(sent) <= Double(burst) + elapsed * Double(rate) + 1)
    }
    #expect(sent > 0)
  }

  @Test func extremes() {
    var slowest = TokenBucket(bytesPerSecond: -5, now: .init(nanoseconds: 0))
    #expect(slowest.available(at: .init(nanoseconds: 0)) == 0)
    #expect(slowest.available(at: .init(nanoseconds: 1_000_000_000)) == 1)
    slowest.take(.max, at: .never)
    #expect(slowest.refill == .never)
    var fastest = TokenBucket(bytesPerSecond: .max, burstBytes: .max, now: Self.start)
    #expect(fastest.available(at: Self.start) > 1 << 60)
    fastest.take(-1, at: Self.start)
    fastest.take(.max, at: Self.start)
    #expect(fastest.available(at: .never) > 1 << 60)
  }
}
