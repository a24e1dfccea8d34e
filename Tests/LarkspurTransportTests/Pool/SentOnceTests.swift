import LarkspurHTTP
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// A request that must not be sent twice, over a connection that its server may be closing (RFC 9110 9.2.2).
@Suite struct SentOnceTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }
  var kernel: ScriptedKernel { tests.kernel }

  init() throws {
    tests = try PoolTests()
  }

  /// A pool with a connection that has served once, just now.
  private func served() -> Pool {
    let pool = tests.pool()
    _ = tests.fetch(through: pool)
    world.settle()
    kernel.peer().send(PoolTests.response)
    world.settle()
    return pool
  }

  /// A server that closes behind each response may be about to, when the next request is there already.
  @Test(arguments: [false, true]) func aRequestThatMustNotBeRepeatedWaitsForProof(isKept: Bool) {
    let pool = served()
    let running = tests.fetch(request("POST", body: 4), body: Array("body".utf8), through: pool)
    world.advance(by: .milliseconds(9))
    #expect(kernel.socketCount == 1 && !kernel.peer().receivedText.contains("POST"))
    if !isKept { kernel.peer().close() }
    world.settle()
    world.advance(by: .milliseconds(1))
    #expect(kernel.peer(isKept ? 0 : 1).receivedText.hasSuffix("\r\n\r\nbody"))
    kernel.peer(isKept ? 0 : 1).send(PoolTests.response)
    world.settle()
    #expect(running.value?.body == "hello")
    guard isKept else { return #expect(tests.leftovers(of: pool) == []) }
    // The connection has been kept once: that is proof enough.
    let next = tests.fetch(request("POST", body: 4), body: Array("more".utf8), through: pool)
    world.settle()
    #expect(kernel.peer().receivedText.hasSuffix("more"))
    kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(next.value?.body == "hello" && tests.leftovers(of: pool) == [])
  }

  @Test func whoIsCancelledMeanwhileLeavesTheConnectionAsItWas() {
    let pool = served()
    let running = tests.fetch(request("POST", body: 4), body: Array("body".utf8), through: pool)
    world.settle()
    running.cancel()
    world.settle()
    #expect(running.transportError == .cancelled)
    #expect(!kernel.peer().receivedText.contains("POST") && pool.counts == (connections: 1, idle: 1, waiting: 0))
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aRequestThatMustNotBeRepeatedLooksForTheEndFirst() {
    let pool = served()
    world.advance(by: .seconds(1))
    kernel.peer().closeUnnoticed()
    let running = tests.fetch(request("POST", body: 4), body: Array("body".utf8), through: pool)
    world.settle()
    #expect(!kernel.peer().receivedText.contains("POST"))
    kernel.peer(1).send(PoolTests.response)
    world.settle()
    #expect(running.value?.body == "hello")
    #expect(tests.leftovers(of: pool) == [])
  }
}
