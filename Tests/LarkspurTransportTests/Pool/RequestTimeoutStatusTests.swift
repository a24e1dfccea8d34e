import LarkspurHTTP
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// A 408 that a server sends after an idle time, just when a request is on its way (RFC 9110 15.5.9).
@Suite struct RequestTimeoutStatusTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }
  var kernel: ScriptedKernel { tests.kernel }

  init() throws {
    tests = try PoolTests()
  }

  static let tooLate = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

  /// Serves one request over the first connection, which is kept.
  func served(_ pool: Pool) {
    let first = tests.fetch(through: pool)
    world.settle()
    kernel.peer(0).send(PoolTests.response)
    world.settle()
    #expect(first.value?.status == 200)
  }

  @Test func aRepeatableRequestGoesOverAnotherConnection() {
    let pool = tests.pool()
    served(pool)
    let second = tests.fetch(through: pool)
    world.settle()
    kernel.peer(0).send(Self.tooLate)
    world.settle()
    #expect(kernel.socketCount == 2 && !second.isOver)
    kernel.peer(1).send(PoolTests.response)
    world.settle()
    #expect(second.value?.body == "hello")
    #expect(tests.leftovers(of: pool) == [])
  }

  /// The retry applies also to the first request of a connection whose own request was cancelled while it was being
  /// opened.
  @Test func theFirstRequestOfAKeptConnectionToo() {
    let pool = tests.pool()
    kernel.willConnect(.never)
    let cancelled = tests.fetch(through: pool)
    world.settle()
    cancelled.cancel()
    world.settle()
    kernel.peer(0).completeConnect()
    world.settle()
    #expect(pool.counts == (connections: 1, idle: 1, waiting: 0))
    let running = tests.fetch(through: pool)
    world.settle()
    kernel.peer(0).send(Self.tooLate)
    world.settle()
    kernel.peer(1).send(PoolTests.response)
    world.settle()
    #expect(running.value?.body == "hello" && kernel.socketCount == 2)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aRequestThatMayNotBeRepeatedGetsTheStatus() {
    let pool = tests.pool()
    served(pool)
    let second = tests.fetch(request("POST", body: 2), body: [1, 2], through: pool)
    world.advance(by: .seconds(1))
    kernel.peer(0).send(Self.tooLate)
    world.settle()
    #expect(second.value?.status == 408 && kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A 408 on a new connection is delivered, because that server has seen the request.
  @Test func theAnswerOfANewConnectionCounts() {
    let pool = tests.pool()
    let running = tests.fetch(through: pool)
    world.settle()
    kernel.peer(0).send(Self.tooLate)
    world.settle()
    #expect(running.value?.status == 408 && kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func andSoDoesThatOfAServerThatGoesOn() {
    let pool = tests.pool()
    served(pool)
    let second = tests.fetch(through: pool)
    world.settle()
    kernel.peer(0).send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
    world.settle()
    #expect(second.value?.status == 408 && kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func theSecondTryIsTheLast() {
    let pool = tests.pool()
    served(pool)
    let second = tests.fetch(through: pool)
    world.settle()
    kernel.peer(0).send(Self.tooLate)
    world.settle()
    kernel.peer(1).send(Self.tooLate)
    world.settle()
    #expect(second.value?.status == 408 && kernel.socketCount == 2)
    #expect(tests.leftovers(of: pool) == [])
  }
}
