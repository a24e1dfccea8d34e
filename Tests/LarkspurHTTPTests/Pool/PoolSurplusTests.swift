import LarkspurBytes
import LarkspurHTTP
import Testing

/// Connections that are opened for nobody, and hosts that refuse.
@Suite struct PoolSurplusTests {
  private typealias Desk = PoolMachineTests.Desk

  /// Who comes soon may have it; who waits for longer than a moment gets another one.
  @Test func whatIsOpenedForNobodyIsNotReliedUpon() throws {
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

  @Test func whatIsOpenedForNobodyIsKeptIfItComes() throws {
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

  /// It gives way: at its own endpoint when it has lasted, and at once to another endpoint.
  @Test(arguments: [1, 6]) func whatIsOpenedForNobodyMakesRoom(perEndpointMax: Int) throws {
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
    // Another one of its own would be no faster.
    desk.pass(.seconds(3))
    #expect(desk.take() == [])
    desk.pass(.seconds(1))
    actions = desk.take()
    #expect(actions.first == .close(next) && actions.count == 2)
  }

  /// Who waits for a dial that gives way, before the timer has given him another one, is served when there is room again.
  @Test func whoWaitsForWhatGivesWayIsNotForgotten() throws {
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

  /// What fails at once beside one that nobody has waited for, for a moment, is not tried over and over: another host's failure
  /// would bring this one's next, and that the other's.
  @Test func whatFailsBesideOneForNobodyIsTriedLater() throws {
    var desk = Desk { $0.totalMax = 3 }
    let first = try desk.request()
    _ = try desk.takeDial()
    let other = desk.machine.addEndpoint()
    _ = try desk.request(at: other)
    _ = try desk.takeDial()
    _ = try desk.request()
    let second = try desk.takeDial()
    desk.machine.cancelled(first, now: desk.now, into: &desk.actions)
    // The oldest is the one for nobody now, and a third and a fourth find no place.
    let waiting = try [desk.request(), desk.request()]
    #expect(desk.take() == [])
    desk.failed(second)
    #expect(desk.take() == [])
    desk.pass(.seconds(1))
    desk.failed(try desk.takeDial())
    let told = desk.take()
    #expect(waiting.allSatisfy { told.contains(.fail($0, .dialFailed)) })
  }

  /// Also what nobody waits for because another connection became free.
  @Test func whoWaitedIsServedByAnother() throws {
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

  /// Refusals of a moment are one.
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

  /// What runs may never end, and what cannot be reached is not reached by waiting.
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
    // A response that has come to its end shows that others may wait.
    desk.ended(running)
    _ = try desk.request()
    _ = desk.take()
    _ = try desk.request()
    desk.pass(.seconds(1))
    desk.failed(try desk.takeDial())
    #expect(desk.take() == [])
  }
}
