import LarkspurBytes
import Testing

@Suite struct RateFloorTests {
  static func moment(_ seconds: Double) -> Deadline {
    Deadline(nanoseconds: 1_000_000_000).advanced(by: .seconds(seconds))
  }

  @Test func theTimeStartsAgainWithTheBytes() {
    var floor = RateFloor(bytes: 100, over: .seconds(10), now: Self.moment(0))
    #expect(floor.end == Self.moment(10))
    floor.moved(99, at: Self.moment(9))
    #expect(floor.end == Self.moment(10))
    floor.moved(1, at: Self.moment(9.5))
    #expect(floor.end == Self.moment(19.5))
    floor.moved(.max, at: Self.moment(12))
    floor.moved(.max, at: Self.moment(13))
    #expect(floor.end == Self.moment(23))
  }

  @Test func pauses() {
    var floor = RateFloor(bytes: 100, over: .seconds(10), now: Self.moment(0))
    floor.pause(at: Self.moment(4))
    floor.pause(at: Self.moment(5))
    #expect(floor.end == .never)
    floor.resume(at: Self.moment(1000))
    floor.resume(at: Self.moment(1001))
    #expect(floor.end == Self.moment(1006))
    floor.pause(at: Self.moment(1002))
    floor.moved(100, at: Self.moment(1003))
    floor.resume(at: Self.moment(1004))
    #expect(floor.end == Self.moment(1014))
  }

  /// A steady transfer at the rate never fails, and one below it always does.
  @Test(arguments: [(10, true), (11, true), (9, false), (1, false)]) func steadyRates(bytes: Int, isFast: Bool) {
    var floor = RateFloor(bytes: 100, over: .seconds(10), now: Self.moment(0))
    var isLate = false
    for second in 1...1000 {
      if floor.end < Self.moment(Double(second)) { isLate = true }
      floor.moved(bytes, at: Self.moment(Double(second)))
    }
    #expect(isLate == !isFast)
  }
}
