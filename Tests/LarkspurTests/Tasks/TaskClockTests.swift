import LarkspurBytes
import LarkspurTestSupport
import LarkspurTransport
import Testing

@testable import Larkspur

/// A task's two times, on a clock that only the test moves.
@Suite struct TaskClockTests {
  let world: ScriptedWorld
  let clocks: TaskClocks

  init() throws {
    world = try ScriptedWorld()
    clocks = TaskClocks(on: world.loop)
  }

  /// A clock that runs, and how often it has expired.
  private func start(idle: Duration?, total: Duration?) -> (clock: TaskClock, expiries: Shared<Int>) {
    let clock = TaskClock(idle: TaskClock.nanoseconds(idle), total: TaskClock.nanoseconds(total), of: clocks)
    let expiries = Shared(0)
    world.turn()
    clock.start { expiries.value += 1 }
    return (clock, expiries)
  }

  @Test func theLastByteIsTooLongAgo() {
    let (clock, expiries) = start(idle: .seconds(10), total: nil)
    world.advance(by: .milliseconds(9_999))
    clock.progressed()
    world.advance(by: .milliseconds(9_999))
    #expect(expiries.value == 0)
    world.advance(by: .milliseconds(1))
    #expect(expiries.value == 1)
    clock.stop()
    clocks.stopTimer()
    #expect(world.leftovers == [])
  }

  @Test func theWholeTakesTooLong() {
    let (clock, expiries) = start(idle: .seconds(10), total: .seconds(25))
    for _ in 0..<4 {
      world.advance(by: .seconds(6))
      clock.progressed()
    }
    #expect(expiries.value == 0)
    world.advance(by: .seconds(1))
    #expect(expiries.value == 1)
    clock.stop()
    clocks.stopTimer()
    #expect(world.leftovers == [])
  }

  @Test func whatIsPausedDoesNotCount() {
    let (clock, expiries) = start(idle: .seconds(10), total: .seconds(30))
    world.advance(by: .seconds(9))
    clock.pause()
    clock.pause()
    world.advance(by: .seconds(1_000))
    clock.goOn()
    world.advance(by: .seconds(1_000))
    clock.goOn()
    // The idle time begins anew, the whole goes on from 9 seconds.
    world.advance(by: .milliseconds(9_999))
    #expect(expiries.value == 0)
    clock.progressed()
    world.advance(by: .seconds(9))
    clock.progressed()
    #expect(expiries.value == 0)
    world.advance(by: .milliseconds(2_001))
    #expect(expiries.value == 1)
    clock.stop()
    clocks.stopTimer()
    #expect(world.leftovers == [])
  }

  @Test func withoutANetworkOnlyTheWholeCounts() {
    let (clock, expiries) = start(idle: .seconds(10), total: .seconds(100))
    clock.stopIdleTime()
    world.advance(by: .seconds(60))
    #expect(expiries.value == 0)
    clock.countIdleTime()
    world.advance(by: .milliseconds(9_999))
    #expect(expiries.value == 0)
    world.advance(by: .milliseconds(1))
    #expect(expiries.value == 1)
    clock.stop()
    clocks.stopTimer()
    #expect(world.leftovers == [])
  }

  @Test func theWholeEndsWithoutANetwork() {
    let (clock, expiries) = start(idle: .seconds(10), total: .seconds(100))
    clock.stopIdleTime()
    world.advance(by: .milliseconds(99_999))
    #expect(expiries.value == 0)
    world.advance(by: .milliseconds(1))
    #expect(expiries.value == 1)
    clock.stop()
    clocks.stopTimer()
    #expect(world.leftovers == [])
  }

  @Test func neverIsNever() {
    let (clock, expiries) = start(idle: nil, total: nil)
    world.advance(by: .seconds(1 << 30))
    #expect(expiries.value == 0)
    #expect(world.loop.slotsInUse == 0)
    clock.stop()
  }

  @Test func aStoppedClockKeepsNobody() {
    let (clock, expiries) = start(idle: .seconds(1), total: .seconds(1))
    clock.pause()
    clock.stop()
    clock.goOn()
    world.advance(by: .seconds(10))
    #expect(expiries.value == 0)
    #expect(world.leftovers == [])
  }

  /// One timer serves all. Each is told when its own time is up, and only then.
  @Test func manyClocks() {
    var all: [(clock: TaskClock, expiries: Shared<Int>)] = []
    for seconds in [30, 10, 20, 40, 10] { all.append(start(idle: .seconds(seconds), total: nil)) }
    let kept = start(idle: nil, total: nil)
    #expect(world.loop.slotsInUse == 1)
    all[3].clock.stop()
    world.advance(by: .seconds(9))
    all[4].clock.progressed()
    world.advance(by: .seconds(1))
    #expect(all.map(\.expiries.value) == [0, 1, 0, 0, 0])
    world.advance(by: .seconds(9))
    #expect(all.map(\.expiries.value) == [0, 1, 0, 0, 1])
    world.advance(by: .seconds(1))
    all[0].clock.stop()
    world.advance(by: .seconds(100))
    #expect(all.map(\.expiries.value) == [0, 1, 1, 0, 1])
    #expect(kept.expiries.value == 0)
    for (clock, _) in all { clock.stop() }
    kept.clock.stop()
    // Nothing is left that could be up.
    #expect(world.leftovers == [])
  }

  /// The first whose time is up ends the others: they hear nothing.
  @Test func whoIsToldMayStopTheOthers() {
    let first = TaskClock(idle: 1, total: .max, of: clocks)
    let second = TaskClock(idle: 1, total: .max, of: clocks)
    let expiries = Shared(0)
    world.turn()
    for (clock, other) in [(first, second), (second, first)] {
      clock.start {
        expiries.value += 1
        other.stop()
      }
    }
    world.advance(by: .seconds(1))
    #expect(expiries.value == 1)
    #expect(world.leftovers == [])
  }

  @Test func intervals() {
    #expect(Duration(interval: 0.25) == .milliseconds(250))
    #expect(Duration(interval: -1) == .zero)
    #expect(Duration(interval: 9.9e9) != nil)
    for interval in [Double.infinity, -.infinity, .nan, 1e10] { #expect(Duration(interval: interval) == nil) }
  }
}
