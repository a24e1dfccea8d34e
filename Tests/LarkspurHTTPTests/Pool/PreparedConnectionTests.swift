import LarkspurBytes
import LarkspurHTTP
import Testing

/// Connections that are opened before requests need them.
@Suite struct PreparedConnectionTests {
  typealias Desk = PoolMachineTests.Desk

  /// Returns the connections that the actions dial.
  static func dials(_ actions: PoolMachine.Actions) -> [PoolMachine.ConnectionID] {
    actions.compactMap { if case .dial(let id, _) = $0 { id } else { nil } }
  }

  private func prepare(_ count: Int, _ desk: inout Desk) -> [PoolMachine.ConnectionID] {
    desk.machine.prepared(desk.endpoint, count, now: desk.now, into: &desk.actions)
    return Self.dials(desk.take())
  }

  @Test func requestsUseThem() throws {
    var desk = Desk()
    let dials = prepare(2, &desk)
    #expect(dials.count == 2)
    #expect(prepare(2, &desk).isEmpty)
    desk.opened(dials[0])
    #expect(desk.machine.idleCount == 1 && desk.take().isEmpty)
    let first = try desk.request()
    #expect(desk.take() == [.run(first, on: dials[0])])
    // The connection in use counts.
    #expect(prepare(2, &desk).isEmpty)
    // A request that comes meanwhile takes the place of no dial.
    let second = try desk.request()
    #expect(desk.take().isEmpty)
    desk.opened(dials[1])
    #expect(desk.take() == [.run(second, on: dials[1])])
  }

  @Test func theLimitsHold() throws {
    var desk = Desk {
      $0.perEndpointMax = 3
      $0.totalMax = 4
    }
    #expect(prepare(100, &desk).count == 3)
    let other = desk.machine.addEndpoint()
    desk.machine.prepared(other, 100, now: desk.now, into: &desk.actions)
    #expect(Self.dials(desk.take()).count == 1)
    // Without room for any, the endpoint is dropped.
    let third = desk.machine.addEndpoint()
    desk.machine.prepared(third, 1, now: desk.now, into: &desk.actions)
    #expect(desk.take() == [.forget(third)])
  }

  @Test func unusedOnesClose() throws {
    var desk = Desk { $0.idleMax = .seconds(5) }
    let dials = prepare(2, &desk)
    desk.opened(dials[0])
    desk.failed(dials[1])
    _ = desk.take()
    desk.now = desk.now.advanced(by: .seconds(5))
    desk.machine.timerFired(now: desk.now, into: &desk.actions)
    #expect(desk.take() == [.close(dials[0]), .forget(desk.endpoint)])
    #expect(desk.machine.connectionCount == 0)
  }

  @Test func aPoolThatIsShutDownDialsNothing() {
    var desk = Desk()
    desk.machine.shutDown(into: &desk.actions)
    _ = desk.take()
    #expect(prepare(1, &desk).isEmpty)
  }
}
