import LarkspurBytes
import LarkspurHTTP
import Testing

/// Tests which waits count as waits in a queue: those for connections that other requests use, and not those for
/// connections that are being opened.
@Suite struct CrowdedEndpointTests {
  typealias Desk = PoolMachineTests.Desk

  private static let start = Deadline(nanoseconds: 0)

  private func crowdedUntil(_ desk: Desk, _ endpoint: PoolMachine.EndpointID? = nil) -> Duration {
    desk.machine.crowdedUntil(endpoint ?? desk.endpoint, now: desk.now).duration(since: Self.start)
  }

  @Test func requestsWaitForDials() throws {
    var desk = Desk { $0.perEndpointMax = 2 }
    for _ in 0..<5 { _ = try desk.request() }
    desk.pass(.seconds(9))
    // Two dials are in progress. The host may be down, so the time counts for all five requests.
    #expect(crowdedUntil(desk) == .zero)
  }

  @Test func requestsWaitForOthers() throws {
    var desk = Desk { $0.perEndpointMax = 1 }
    _ = try desk.request()
    let id = try desk.takeDial()
    desk.opened(id)
    _ = desk.take()
    let second = try desk.request()
    #expect(desk.machine.endpoint(awaitedBy: second) == desk.endpoint)
    desk.pass(.seconds(5))
    #expect(crowdedUntil(desk) == .seconds(5))
    desk.ended(id)
    #expect(desk.take() == [.run(second, on: id)])
    #expect(desk.machine.endpoint(awaitedBy: second) == nil)
    desk.pass(.seconds(5))
    #expect(crowdedUntil(desk) == .seconds(5))
  }

  /// A server that closes each connection after its response lets a dial begin for the next request.
  @Test(arguments: [true, false]) func theQueueEndsWithADial(isClosedByServer: Bool) throws {
    var desk = Desk { $0.perEndpointMax = 1 }
    _ = try desk.request()
    let id = try desk.takeDial()
    desk.opened(id)
    _ = try desk.request()
    desk.pass(.seconds(5))
    if isClosedByServer {
      desk.machine.connectionClosed(id, now: desk.now, into: &desk.actions)
    } else {
      desk.ended(id, false)
    }
    desk.pass(.seconds(7))
    #expect(crowdedUntil(desk) == .seconds(5))
  }

  @Test func aWithdrawalLeavesADialForEachRequest() throws {
    var desk = Desk { $0.perEndpointMax = 2 }
    _ = try desk.request()
    desk.opened(try desk.takeDial())
    _ = try desk.request()
    let third = try desk.request()
    desk.pass(.seconds(3))
    #expect(crowdedUntil(desk) == .seconds(3))
    desk.machine.cancelled(third, now: desk.now, into: &desk.actions)
    desk.pass(.seconds(3))
    // One request is left, and a connection is being opened for it.
    #expect(crowdedUntil(desk) == .seconds(3))
  }

  @Test func otherHostsHaveAllConnections() throws {
    var desk = Desk { $0.totalMax = 1 }
    _ = try desk.request()
    let id = try desk.takeDial()
    desk.opened(id)
    let other = desk.machine.addEndpoint()
    _ = try desk.request(at: other)
    desk.pass(.seconds(4))
    #expect(crowdedUntil(desk, other) == .seconds(4))
    desk.ended(id)
    desk.pass(.seconds(4))
    // The idle connection has made room for a dial.
    #expect(crowdedUntil(desk, other) == .seconds(4))
  }
}
