import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Connections that a pool opens before requests need them.
@Suite struct PoolPreparingTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }
  var kernel: ScriptedKernel { tests.world.kernel }

  init() throws { tests = try PoolTests() }

  private func prepare(_ count: Int, _ pool: Pool) -> Running<Int> {
    world.start { try await pool.prepare(count, of: pool.endpoint(for: PoolTests.route)) }
  }

  @Test func aRequestFindsThem() {
    let pool = tests.pool { $0.perEndpointMax = 3 }
    let prepared = prepare(10, pool)
    world.settle()
    #expect(prepared.value == 3 && pool.counts == (3, 3, 0))
    let running = tests.fetch(through: pool)
    world.settle()
    for index in 0..<3 where !kernel.peer(index).received.isEmpty { kernel.peer(index).send(PoolTests.response) }
    world.settle()
    #expect(running.value?.status == 200 && kernel.socketCount == 3)
    let again = prepare(1, pool)
    world.settle()
    #expect(again.value == 3 && kernel.socketCount == 3)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aHostThatRefuses() {
    let pool = tests.pool()
    kernel.willConnect(.fails(.connectionRefused))
    let prepared = prepare(1, pool)
    world.settle()
    if case .connectFailed? = prepared.transportError {} else { Issue.record("\(String(describing: prepared.error))") }
    #expect(tests.leftovers(of: pool) == [])
  }
}
