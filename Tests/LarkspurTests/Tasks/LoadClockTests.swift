import LarkspurBytes
import LarkspurTestSupport
import LarkspurTransport
import Testing

@testable import Larkspur

/// Tests the idle and the total timeout of a task on a clock that only the test advances.
@Suite struct LoadClockTests {
  let world: ScriptedWorld
  let clocks: LoadClocks

  init() throws {
    world = try ScriptedWorld()
    clocks = LoadClocks(on: world.loop)
  }

  /// Starts a clock and counts its expiries.
  private func start(idle: Duration?, total: Duration?) -> (clock: Load, expiries: Shared<Int>) {
    let clock = Load(idle: idle, total: total, clocks, on: world.loop)
    world.tick()
    clock.startClock()
    return (clock, clock.expiries)
  }

  private func end(_ clock: Load) {
    clock.stopClock()
    clocks.stopTimer()
    #expect(world.leftovers == [])
  }

  private final class Load: TimedLoad {
    let expiries = Shared(0)
    var expired: (() -> Void)?
    var clock: LoadClock
    let clocks: LoadClocks
    private let loop: ClientLoop
    var queuedUntil: Deadline { isQueued ? loop.now : leftQueue }
    private var leftQueue = Deadline(nanoseconds: 0)
    var isQueued = false {
      didSet { leftQueue = loop.now }
    }

    init(idle: Duration?, total: Duration?, _ clocks: LoadClocks, on loop: ClientLoop) {
      self.loop = loop
      clock = LoadClock(idle: LoadClock.nanoseconds(idle), total: LoadClock.nanoseconds(total))
      self.clocks = clocks
    }

    func timeIsUp() {
      expiries.value += 1
      expired?()
    }
  }

  @Test func theLastByteIsTooLongAgo() {
    let (clock, expiries) = start(idle: .seconds(10), total: nil)
    world.advance(by: .milliseconds(9_999))
    clock.progressed()
    world.advance(by: .milliseconds(9_999))
    #expect(expiries.value == 0)
    world.advance(by: .milliseconds(1))
    #expect(expiries.value == 1)
    end(clock)
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
    end(clock)
  }

  @Test func whatIsPausedDoesNotCount() {
    let (clock, expiries) = start(idle: .seconds(10), total: .seconds(30))
    world.advance(by: .seconds(9))
    clock.pauseClock()
    clock.pauseClock()
    world.advance(by: .seconds(1_000))
    clock.resumeClock()
    world.advance(by: .seconds(1_000))
    clock.resumeClock()
    // The idle time starts anew; the total time continues at 9 s.
    world.advance(by: .milliseconds(9_999))
    #expect(expiries.value == 0)
    clock.progressed()
    world.advance(by: .seconds(9))
    clock.progressed()
    #expect(expiries.value == 0)
    world.advance(by: .milliseconds(2_001))
    #expect(expiries.value == 1)
    end(clock)
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
    end(clock)
  }

  @Test func theWholeEndsWithoutANetwork() {
    let (clock, expiries) = start(idle: .seconds(10), total: .seconds(100))
    clock.stopIdleTime()
    world.advance(by: .milliseconds(99_999))
    #expect(expiries.value == 0)
    world.advance(by: .milliseconds(1))
    #expect(expiries.value == 1)
    end(clock)
  }

  /// The idle time begins when the load leaves the queue, also if that is shortly before the timer fires.
  @Test(arguments: [1, 15, 59, 60, 61, 3_000]) func inAQueueOnlyTheWholeCounts(seconds: Int) {
    let (clock, expiries) = start(idle: .seconds(60), total: .seconds(4_000))
    clock.isQueued = true
    for _ in 0..<seconds { world.advance(by: .seconds(1)) }
    clock.isQueued = false
    for _ in 0..<59 { world.advance(by: .seconds(1)) }
    #expect(expiries.value == 0)
    world.advance(by: .seconds(1))
    #expect(expiries.value == 1)
    end(clock)
  }

  @Test func theWholeEndsInAQueue() {
    let (clock, expiries) = start(idle: .seconds(10), total: .seconds(100))
    clock.isQueued = true
    world.advance(by: .milliseconds(99_999))
    #expect(expiries.value == 0)
    world.advance(by: .milliseconds(1))
    #expect(expiries.value == 1)
    end(clock)
  }

  @Test func neverIsNever() {
    let (clock, expiries) = start(idle: nil, total: nil)
    world.advance(by: .seconds(1 << 30))
    #expect(expiries.value == 0)
    #expect(world.loop.slotsInUse == 0)
    clock.stopClock()
  }

  @Test func aStoppedClockLeavesNothing() {
    let (clock, expiries) = start(idle: .seconds(1), total: .seconds(1))
    clock.pauseClock()
    clock.stopClock()
    clock.resumeClock()
    world.advance(by: .seconds(10))
    #expect(expiries.value == 0)
    #expect(world.leftovers == [])
  }

  /// One timer of the loop serves all clocks. Each clock expires at its own time only.
  @Test func manyClocks() {
    var all: [(clock: Load, expiries: Shared<Int>)] = []
    for seconds in [30, 10, 20, 40, 10] { all.append(start(idle: .seconds(seconds), total: nil)) }
    let kept = start(idle: nil, total: nil)
    #expect(world.loop.slotsInUse == 1)
    all[3].clock.stopClock()
    world.advance(by: .seconds(9))
    all[4].clock.progressed()
    world.advance(by: .seconds(1))
    #expect(all.map(\.expiries.value) == [0, 1, 0, 0, 0])
    world.advance(by: .seconds(9))
    #expect(all.map(\.expiries.value) == [0, 1, 0, 0, 1])
    world.advance(by: .seconds(1))
    all[0].clock.stopClock()
    world.advance(by: .seconds(100))
    #expect(all.map(\.expiries.value) == [0, 1, 1, 0, 1])
    #expect(kept.expiries.value == 0)
    for (clock, _) in all { clock.stopClock() }
    kept.clock.stopClock()
    // No timer is left.
    #expect(world.leftovers == [])
  }

  /// The first clock to expire can stop the other one, which then does not expire.
  @Test func anExpiredClockMayStopTheOthers() {
    let (first, second) = (start(idle: .nanoseconds(1), total: nil), start(idle: .nanoseconds(1), total: nil))
    first.clock.expired = { second.clock.stopClock() }
    second.clock.expired = { first.clock.stopClock() }
    world.advance(by: .seconds(1))
    #expect(first.expiries.value + second.expiries.value == 1)
    first.clock.stopClock()
    second.clock.stopClock()
    #expect(world.leftovers == [])
  }

  @Test func intervals() {
    #expect(Duration(interval: 0.25) == .milliseconds(250))
    #expect(Duration(interval: -1) == .zero)
    #expect(Duration(interval: 9.9e9) != nil)
    for interval in [Double.infinity, -.infinity, .nan, 1e10] { #expect(Duration(interval: interval) == nil) }
  }
}
