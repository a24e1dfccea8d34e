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
    #expect(Deadline.never.advanced(by: .nanoseconds(1)) == .never)
    #expect(Deadline.never.timeoutMilliseconds(from: .never) == -1)
    #expect(Deadline(nanoseconds: .max - 1).timeoutMilliseconds(from: now) == .max)
  }

  @Test func timeBetween() {
    let (earlier, later) = (Deadline(nanoseconds: 5), Deadline(nanoseconds: 12))
    #expect(later.duration(since: earlier) == .nanoseconds(7))
    #expect(earlier.duration(since: later) == .zero)
    #expect(Deadline.never.duration(since: Deadline(nanoseconds: 0)) == .nanoseconds(Int64.max))
    #expect(earlier < later)
  }
}
