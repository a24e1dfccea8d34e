import LarkspurHTTP
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Requests that their owner holds back for a time.
@Suite struct SuspendedRequestTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }
  var kernel: ScriptedKernel { tests.kernel }

  init() throws {
    tests = try PoolTests()
  }

  private func fetch(
    _ head: RequestHead, body: RequestBody = .none, through pool: Pool, in slot: RequestSlot
  ) -> Running<Int> {
    world.start {
      let endpoint = pool.endpoint(for: PoolTests.route)
      let running = try await pool.start(PoolRequest(head, body: body), with: endpoint, in: slot)
      let status = running.exchange.status
      try await running.exchange.discardBody()
      running.end()
      return status
    }
  }

  private func onLoop(_ body: @escaping @Sendable () -> Void) { _ = world.run { body() } }

  /// While a request is held, nothing of its body is sent, although the kernel has room; after its release, all of it
  /// is.
  @Test(arguments: [false, true]) func aRequestThatIsUnderWay(isInPieces: Bool) {
    let pool = tests.pool()
    let slot = RequestSlot(of: pool)
    let body = pattern(20_000)
    kernel.peer().setSendRoom(5_000)
    let file = kernel.makeFile(body)
    let content: RequestBody = isInPieces ? .file(file.openFile, offset: 0, length: body.count) : .bytes(body)
    let running = fetch(request("PUT", body: body.count), body: content, through: pool, in: slot)
    world.settle()
    #expect(kernel.peer().received.count == 5_000)
    onLoop { slot.suspend() }
    kernel.peer().setSendRoom(1 << 20)
    world.settle()
    world.advance(by: .seconds(100))
    #expect(kernel.peer().received.count == 5_000)
    onLoop { slot.resume() }
    world.settle()
    #expect(Array(kernel.peer().received.suffix(body.count)) == body)
    kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(running.value == 200)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A held request gives back the connection that has opened for it. The server may close that connection before its
  /// first request, so the first request is repeated.
  @Test func theConnectionThatAHeldRequestGaveBack() {
    kernel.willConnect(.never)
    let pool = tests.pool { $0.perEndpointMax = 1 }
    let slot = RequestSlot(of: pool)
    let held = fetch(request("GET", "/held"), through: pool, in: slot)
    world.settle()
    onLoop { slot.suspend() }
    kernel.peer().completeConnect()
    world.settle()
    #expect(pool.counts == (1, 1, 0))
    let next = fetch(request("GET", "/next"), through: pool, in: RequestSlot(of: pool))
    world.tick(3)
    kernel.peer(0).close()
    world.settle()
    #expect(kernel.peer(0).receivedText.contains("GET /next "))
    kernel.peer(1).send(PoolTests.response)
    world.settle()
    #expect(next.value == 200)
    slot.cancel()
    world.settle()
    #expect(held.transportError == .cancelled)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A held request in the queue takes no connection from others, and gets one after its release.
  @Test(arguments: [false, true]) func aRequestThatWaitsForAConnection(isCancelled: Bool) {
    let pool = tests.pool { $0.perEndpointMax = 1 }
    let (slot, others) = (RequestSlot(of: pool), [RequestSlot(of: pool), RequestSlot(of: pool)])
    let first = fetch(request("GET", "/first"), through: pool, in: others[0])
    world.settle()
    let held = fetch(request("GET", "/held"), through: pool, in: slot)
    world.settle()
    onLoop { slot.suspend() }
    let last = fetch(request("GET", "/last"), through: pool, in: others[1])
    world.settle()
    for (running, path) in [(first, "/first"), (last, "/last")] {
      #expect(kernel.peer().receivedText.contains("GET \(path) "))
      kernel.peer().send(PoolTests.response)
      world.settle()
      #expect(running.value == 200)
    }
    #expect(!kernel.peer().receivedText.contains("/held") && kernel.socketCount == 1)
    if isCancelled {
      slot.cancel()
      world.settle()
      #expect(held.transportError == .cancelled)
    } else {
      onLoop { slot.resume() }
      world.settle()
      #expect(kernel.peer().receivedText.contains("GET /held "))
      kernel.peer().send(PoolTests.response)
      world.settle()
      #expect(held.value == 200)
    }
    #expect(tests.leftovers(of: pool) == [])
  }
}
