import LarkspurBytes
import LarkspurHTTP
import Testing

/// Orphaned dials, which no request waits for, and hosts that refuse connections.
@Suite struct OrphanedDialTests {
  private typealias Desk = PoolMachineTests.Desk

  /// A request that comes soon may use an orphaned dial; one that waits for longer than a moment gets a dial of its
  /// own.
  @Test func anOrphanedDialIsNotReliedUpon() throws {
    var desk = Desk()
    let first = try desk.request()
    let dial = try desk.takeDial()
    desk.machine.cancelled(first, now: desk.now, into: &desk.actions)
    let second = try desk.request()
    #expect(desk.take() == [])
    desk.pass(.seconds(1))
    let other = try desk.takeDial()
    desk.opened(other)
    #expect(desk.take() == [.run(second, on: other)])
    desk.pass(.seconds(8))
    #expect(desk.machine.connectionCount == 2 && desk.take() == [])
    desk.pass(.seconds(1))
    #expect(desk.take() == [.close(dial)])
    #expect(desk.machine.connectionCount == 1)
  }

  @Test func anOrphanedDialThatOpensIsKept() throws {
    var desk = Desk()
    let first = try desk.request()
    let dial = try desk.takeDial()
    desk.machine.cancelled(first, now: desk.now, into: &desk.actions)
    desk.pass(.seconds(5))
    desk.opened(dial)
    #expect(desk.machine.idleCount == 1)
    desk.pass(.seconds(10))
    let second = try desk.request()
    #expect(desk.take() == [.run(second, on: dial)])
  }

  /// An orphaned dial gives way: to a request at its own endpoint once it has lasted for some time, and to another
  /// endpoint at once.
  @Test(arguments: [1, 6]) func anOrphanedDialMakesRoom(perEndpointMax: Int) throws {
    var desk = Desk {
      $0.perEndpointMax = perEndpointMax
      $0.totalMax = 1
    }
    let first = try desk.request()
    let dial = try desk.takeDial()
    desk.machine.cancelled(first, now: desk.now, into: &desk.actions)
    let other = desk.machine.addEndpoint()
    let second = try desk.request(at: other)
    var actions = desk.take()
    #expect(actions.first == .close(dial))
    guard case .dial(let next, other)? = actions.last else { throw PoolMachineTests.Unexpected(actions: actions) }
    desk.machine.cancelled(second, now: desk.now, into: &desk.actions)
    _ = try desk.request(at: other)
    #expect(desk.take() == [])
    // A second dial to the same endpoint would be no faster.
    desk.pass(.seconds(3))
    #expect(desk.take() == [])
    desk.pass(.seconds(1))
    actions = desk.take()
    #expect(actions.first == .close(next) && actions.count == 2)
  }

  /// A request that waits for a dial which gives way, before the timer has started another one, is served once there is
  /// room.
  @Test func aRequestForADialThatGivesWayIsServed() throws {
    var desk = Desk { $0.totalMax = 1 }
    let first = try desk.request()
    let dial = try desk.takeDial()
    desk.machine.cancelled(first, now: desk.now, into: &desk.actions)
    _ = try desk.request()
    desk.now = desk.now.advanced(by: .seconds(1))
    _ = try desk.request(at: desk.machine.addEndpoint())
    let actions = desk.take()
    #expect(actions.first == .close(dial))
    let other = try #require(actions.compactMap(\.dialed).first)
    desk.opened(other)
    _ = desk.take()
    desk.ended(other)
    #expect(desk.take().compactMap(\.dialed).count == 1)
  }

  /// A dial that fails at once beside an orphaned one is not retried without pause: otherwise one host's failure would
  /// start the other's dial, and that one's failure the first host's.
  @Test func aDialThatFailsBesideAnOrphanedOneIsRetriedLater() throws {
    var desk = Desk { $0.totalMax = 3 }
    let first = try desk.request()
    _ = try desk.takeDial()
    let other = desk.machine.addEndpoint()
    _ = try desk.request(at: other)
    _ = try desk.takeDial()
    _ = try desk.request()
    let second = try desk.takeDial()
    desk.machine.cancelled(first, now: desk.now, into: &desk.actions)
    // The oldest dial is now the orphaned one, and there is no room for a third and a fourth.
    let waiting = try [desk.request(), desk.request()]
    #expect(desk.take() == [])
    desk.failed(second)
    #expect(desk.take() == [])
    desk.pass(.seconds(1))
    desk.failed(try desk.takeDial())
    let actions = desk.take()
    #expect(waiting.allSatisfy { actions.contains(.fail($0, .dialFailed)) })
  }

  /// A dial is orphaned also if its request was served by another connection.
  @Test func aDialIsOrphanedIfItsRequestIsServedElsewhere() throws {
    var desk = Desk()
    _ = try desk.request()
    let first = try desk.takeDial()
    desk.opened(first)
    _ = desk.take()
    let second = try desk.request()
    _ = try desk.takeDial()
    desk.ended(first)
    #expect(desk.take() == [.run(second, on: first)])
    _ = try desk.request()
    #expect(desk.take() == [])
    desk.pass(.seconds(1))
    _ = try desk.takeDial()
  }

  /// Several refusals at one moment count as one.
  @Test func manyThatAreRefusedAtOnce() throws {
    var desk = Desk()
    _ = try desk.request()
    let running = try desk.takeDial()
    desk.opened(running)
    _ = desk.take()
    let waiting = try (0..<5).map { _ in try desk.request() }
    for id in desk.take().compactMap(\.dialed) { desk.failed(id) }
    #expect(desk.take() == [])
    desk.ended(running)
    #expect(desk.take() == [.run(waiting[0], on: running)])
  }

  /// A running request may never end, and waiting does not make an unreachable host reachable, so a waiting request
  /// fails after several refusals.
  @Test func aHostThatRefusesWhileSomethingRuns() throws {
    var desk = Desk()
    _ = try desk.request()
    let running = try desk.takeDial()
    desk.opened(running)
    _ = desk.take()
    let second = try desk.request()
    for _ in 0..<4 {
      desk.failed(try desk.takeDial())
      #expect(desk.take() == [])
      desk.pass(.seconds(1))
    }
    desk.failed(try desk.takeDial())
    #expect(desk.take() == [.fail(second, .dialFailed)])
    // A response that has ended shows that waiting makes sense.
    desk.ended(running)
    _ = try desk.request()
    _ = desk.take()
    _ = try desk.request()
    desk.pass(.seconds(1))
    desk.failed(try desk.takeDial())
    #expect(desk.take() == [])
  }
}
