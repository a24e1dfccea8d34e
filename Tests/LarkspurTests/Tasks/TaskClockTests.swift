import LarkspurBytes
import LarkspurTestSupport
import LarkspurTransport
import Testing

@testable import Larkspur

/// A task's two times, on a clock that only the test moves.
@Suite struct TaskClockTests {
  let world: ScriptedWorld

  init() throws { world = try ScriptedWorld() }

  /// A clock that runs, and how often it has expired.
  private func start(idle: Duration?, total: Duration?) -> (clock: TaskClock, expiries: Shared<Int>) {
    let clock = TaskClock(idle: TaskClock.nanoseconds(idle), total: TaskClock.nanoseconds(total), on: world.loop)
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

  @Test func intervals() {
    #expect(Duration(interval: 0.25) == .milliseconds(250))
    #expect(Duration(interval: -1) == .zero)
    #expect(Duration(interval: 9.9e9) != nil)
    for interval in [Double.infinity, -.infinity, .nan, 1e10] { #expect(Duration(interval: interval) == nil) }
  }
}
