import LarkspurBytes
import LarkspurHTTP
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Tests the phase of a slot's request, and the end of its wait in a queue.
@Suite struct RequestSlotTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }

  init() throws { world = try ScriptedWorld() }

  private func pool(connections: Int = 1, pipelineDepth: Int = 1) -> Pool {
    var options = Pool.Options()
    options.limits.perEndpointMax = connections
    options.limits.pipelineDepth = pipelineDepth
    return Pool(on: world.loop, options: options)
  }

  private func start(through pool: Pool) -> (slot: RequestSlot, running: Running<Int>) {
    let slot = RequestSlot(of: pool)
    let running = world.run {
      let endpoint = pool.endpoint(for: PoolTests.route)
      let running = try await pool.start(PoolRequest(request()), with: endpoint, in: slot)
      let count = try await running.exchange.collectBody(bytesMax: 100).count
      running.end()
      return count
    }
    return (slot, running)
  }

  private var now: Deadline { world.loop.now }

  @Test func theQueueAndThenTheExchange() {
    let pool = pool()
    let first = start(through: pool)
    let second = start(through: pool)
    #expect(first.slot.phase == .awaitingHead && second.slot.phase == .queueing)
    world.advance(by: .seconds(5))
    #expect(second.slot.queuedUntil == now && first.slot.queuedUntil < now)
    kernel.peer().send(PoolTests.response)
    world.settle()
    let left = now
    #expect(first.running.value == 5 && second.slot.phase == .awaitingHead)
    kernel.peer().send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
    world.advance(by: .seconds(5))
    #expect(second.slot.phase == .receivingBody && second.slot.queuedUntil == left)
    kernel.peer().send("llo")
    world.settle()
    #expect(second.running.value == 5 && second.slot.phase == nil)
    pool.shutDown()
    world.settle()
    #expect(world.leftovers == [])
  }

  @Test func aConnectionThatIsBeingOpened() {
    kernel.willConnect(.never)
    let pool = pool()
    let (slot, running) = start(through: pool)
    #expect(slot.phase == .connecting)
    world.advance(by: .seconds(5))
    #expect(slot.queuedUntil < now)
    slot.cancel()
    world.settle()
    pool.shutDown()
    world.settle()
    #expect(running.isOver && world.leftovers == [])
  }

  /// A request after another one on the same connection waits for its turn.
  @Test func aPipelinedRequest() {
    let pool = pool(pipelineDepth: 8)
    let opening = start(through: pool)
    kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(opening.running.value == 5)
    let first = start(through: pool)
    let second = start(through: pool)
    world.advance(by: .seconds(5))
    #expect(first.slot.phase == .awaitingHead && second.slot.phase == .queueing)
    #expect(second.slot.queuedUntil == now && first.slot.queuedUntil < now)
    kernel.peer().send(PoolTests.response)
    world.settle()
    let left = now
    world.advance(by: .seconds(5))
    #expect(second.slot.phase == .awaitingHead && second.slot.queuedUntil == left)
    kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(second.running.value == 5)
    pool.shutDown()
    world.settle()
    #expect(world.leftovers == [])
  }
}
