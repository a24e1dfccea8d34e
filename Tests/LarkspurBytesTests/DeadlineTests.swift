import LarkspurBytes
import Testing

@Suite struct DeadlineTests {
  @Test func millisecondsAreRoundedUp() {
    let now = Deadline(nanoseconds: 5_000_000)
    #expect(Deadline(nanoseconds: 5_000_001).timeoutMilliseconds(from: now) == 1)
    #expect(Deadline(nanoseconds: 6_000_000).timeoutMilliseconds(from: now) == 1)
    #expect(Deadline(nanoseconds: 6_000_001).timeoutMilliseconds(from: now) == 2)
    #expect(now.timeoutMilliseconds(from: now) == 0)
    #expect(Deadline.never.timeoutMilliseconds(from: now) == -1)
  }

  @Test func durationsSaturate() {
    let now = Deadline(nanoseconds: 7)
    #expect(now.advanced(by: .nanoseconds(3)) == Deadline(nanoseconds: 10))
    #expect(now.advanced(by: .seconds(-3)) == now)
    #expect(now.advanced(by: .seconds(Int64.max)) == .never)
  }
}
