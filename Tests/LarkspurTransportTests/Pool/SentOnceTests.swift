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

  /// Returns a pool with a connection that has just served one request.
  private func served() -> Pool {
    let pool = tests.pool()
    _ = tests.fetch(through: pool)
    world.settle()
    kernel.peer().send(PoolTests.response)
    world.settle()
    return pool
  }

  /// A request that must not be repeated waits for a moment: a server that closes after each response may be about to
  /// close.
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
    // The connection has been kept once, which is proof enough.
    let next = tests.fetch(request("POST", body: 4), body: Array("more".utf8), through: pool)
    world.settle()
    #expect(kernel.peer().receivedText.hasSuffix("more"))
    kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(next.value?.body == "hello" && tests.leftovers(of: pool) == [])
  }

  /// A server that refuses a large body may close the connection although it has kept it before.
  @Test(arguments: [100, 64 * 1024]) func aLargeBodyThatIsRefused(bytes: Int) {
    let pool = served()
    world.advance(by: .milliseconds(10))
    let refused = tests.fetch(
      request("PUT", body: bytes), body: [UInt8](repeating: 1, count: bytes), through: pool)
    world.settle()
    kernel.peer().send("HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n")
    world.settle()
    #expect(refused.value?.status == 409)
    let running = tests.fetch(request("POST", body: 4), body: Array("body".utf8), through: pool)
    world.settle()
    let index = bytes == 100 ? 0 : 1
    #expect(kernel.socketCount == index + 1 && kernel.peer(index).receivedText.hasSuffix("body"))
    kernel.peer(index).send(PoolTests.response)
    world.settle()
    #expect(running.value?.body == "hello" && tests.leftovers(of: pool) == [])
  }

  /// A request that would have to wait does not begin now, and leaves the connection unchanged.
  @Test(arguments: [true, false]) func whatBeginsNow(isProven: Bool) {
    let pool = served()
    if isProven { world.advance(by: .milliseconds(10)) }
    let running = world.start {
      var request = PoolRequest(request("POST", body: 4))
      request.body = .bytes(Array("body".utf8))
      let (endpoint, slot) = (pool.endpoint(for: PoolTests.route), RequestSlot(of: pool))
      let sending = pool.send(request, with: endpoint, in: slot, for: SubmittedCallback {})
      #expect(sending == (isProven ? .sent : .needsTask))
      guard isProven else { return 0 }
      return try await pool.start(request, with: endpoint, in: slot).exchange.status
    }
    world.settle()
    #expect(kernel.peer().receivedText.contains("POST") == isProven)
    if isProven { kernel.peer().send("HTTP/1.1 204 No Content\r\n\r\n") }
    world.settle()
    #expect(running.value == (isProven ? 204 : 0) && pool.counts == (connections: 1, idle: 1, waiting: 0))
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aCancelledRequestLeavesTheConnectionAsItWas() {
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
