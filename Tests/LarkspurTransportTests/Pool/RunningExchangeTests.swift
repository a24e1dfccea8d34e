import LarkspurHTTP
import LarkspurTestSupport
import Testing

@testable import LarkspurTransport

/// An exchange of a pool that its owner keeps.
@Suite struct RunningExchangeTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }

  init() throws {
    tests = try PoolTests()
  }

  @Test func theConnectionIsFreeWhenItIsLetGoOf() {
    let pool = tests.pool { $0.perEndpointMax = 1 }
    let elsewhere = Route(host: "192.0.2.2", port: 80)
    let first = world.start {
      let slot = RequestSlot(of: pool)
      let running = try await pool.start(PoolRequest(request()), with: pool.endpoint(for: PoolTests.route), in: slot)
      let body = try await running.exchange.collectBody(bytesMax: 100)
      // The response is complete, and the exchange is kept while the task waits for another one.
      let other = try await pool.start(
        PoolRequest(request()), with: pool.endpoint(for: elsewhere), in: RequestSlot(of: pool))
      return [running.exchange.status, body.count, other.exchange.status]
    }
    world.settle()
    tests.kernel.peer(0).send(PoolTests.response)
    world.settle()
    let second = tests.fetch(through: pool)
    world.settle()
    #expect(pool.counts == (connections: 2, idle: 0, waiting: 1))
    tests.kernel.peer(1).send("HTTP/1.1 204 No Content\r\n\r\n")
    world.settle()
    #expect(first.value == [200, 5, 204])
    tests.kernel.peer(0).send(PoolTests.response)
    world.settle()
    #expect(second.value?.body == "hello" && tests.kernel.socketCount == 2)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aScopeHasOneAtATime() {
    let pool = tests.pool()
    let outcome = world.start {
      let slot = RequestSlot(of: pool)
      let endpoint = pool.endpoint(for: PoolTests.route)
      do {
        let running = try await pool.start(PoolRequest(request()), with: endpoint, in: slot)
        await #expect(throws: TransportError.localMisuse(.slotBusy)) {
          _ = try await pool.start(PoolRequest(request()), with: endpoint, in: slot)
        }
        try await running.exchange.discardBody()
      }
      let next = try await pool.start(PoolRequest(request()), with: endpoint, in: slot)
      return next.exchange.status
    }
    for _ in 1...2 {
      world.settle()
      tests.kernel.peer().send(PoolTests.response)
    }
    world.settle()
    #expect(outcome.value == 200 && tests.kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A slot takes one request at a time, also while its first request waits for a connection.
  @Test func aScopeWaitsForOneAtATime() {
    let pool = tests.pool()
    let slot = RequestSlot(of: pool)
    let endpoint = pool.endpoint(for: PoolTests.route)
    let first = world.start { try await pool.start(PoolRequest(request()), with: endpoint, in: slot).exchange.status }
    let second = world.start {
      await #expect(throws: TransportError.localMisuse(.slotBusy)) {
        _ = try await pool.start(PoolRequest(request()), with: endpoint, in: slot)
      }
      return 0
    }
    world.settle()
    tests.kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(first.value == 200 && second.value == 0)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A connection that a callback has waited for returns to the pool, whether the callback uses it or not.
  @Test(arguments: [true, false]) func workWaitsForAConnection(isWanted: Bool) {
    let pool = tests.pool()
    let slot = RequestSlot(of: pool)
    let endpoint = pool.endpoint(for: PoolTests.route)
    let outcome = world.start {
      await TaskContinuation.suspend { continuation in
        let work = SubmittedCallback { continuation.resume() }
        #expect(pool.send(PoolRequest(request()), with: endpoint, in: slot, for: work) == .queued)
        #expect(pool.send(PoolRequest(request()), with: endpoint, in: slot, for: work) == .queued)
      }
      guard isWanted else {
        slot.withdraw()
        return 0
      }
      #expect(pool.send(PoolRequest(request()), with: endpoint, in: slot, for: SubmittedCallback {}) == .sent)
      let running = try await pool.start(PoolRequest(request()), with: endpoint, in: slot)
      try await running.exchange.discardBody()
      return 200
    }
    world.settle()
    if isWanted { tests.kernel.peer().send(PoolTests.response) }
    world.settle()
    #expect(outcome.value == (isWanted ? 200 : 0))
    // The slot is free again.
    let next = world.start { try await pool.start(PoolRequest(request()), with: endpoint, in: slot).exchange.status }
    world.settle()
    tests.kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(next.value == 200 && tests.kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A task can continue a request whose callback still waits for a connection.
  @Test func aTaskTakesTheWaitOver() {
    let pool = tests.pool()
    let (slot, endpoint) = (RequestSlot(of: pool), pool.endpoint(for: PoolTests.route))
    let status = world.start {
      let work = SubmittedCallback { Issue.record("the callback ran") }
      let sending = pool.send(PoolRequest(request()), with: endpoint, in: slot, for: work)
      #expect(sending == .queued)
      return try await pool.start(PoolRequest(request()), with: endpoint, in: slot).exchange.status
    }
    world.settle()
    tests.kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(status.value == 200)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// The deadline of a wait in the queue needs a task. The slot is free again.
  @Test func aRequestWithADeadlineIsNotQueuedForACallback() {
    let pool = tests.pool()
    let (slot, endpoint) = (RequestSlot(of: pool), pool.endpoint(for: PoolTests.route))
    let status = world.start {
      var request = PoolRequest(request())
      request.deadline = pool.loop.now.advanced(by: .seconds(1))
      let sending = pool.send(request, with: endpoint, in: slot, for: SubmittedCallback {})
      #expect(sending == .needsTask && pool.counts.waiting == 0)
      return try await pool.start(request, with: endpoint, in: slot).exchange.status
    }
    world.settle()
    tests.kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(status.value == 200)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func itCanBeCancelled() {
    let pool = tests.pool()
    let slot = RequestSlot(of: pool)
    let running = world.start {
      let running = try await pool.start(PoolRequest(request()), with: pool.endpoint(for: PoolTests.route), in: slot)
      return try await running.exchange.collectBody(bytesMax: 100)
    }
    world.settle()
    tests.kernel.peer().send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
    world.settle()
    slot.cancel()
    world.settle()
    #expect(running.transportError == .cancelled)
    #expect(pool.counts.connections == 0)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// An exchange that is abandoned with unread bytes closes its connection.
  @Test func itCanBeAbandoned() {
    let pool = tests.pool()
    let running = world.start {
      let running = try await pool.start(
        PoolRequest(request()), with: pool.endpoint(for: PoolTests.route), in: RequestSlot(of: pool))
      return running.exchange.status
    }
    world.settle()
    tests.kernel.peer().send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
    world.settle()
    #expect(running.value == 200)
    #expect(pool.counts.connections == 0)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// Above 64 idle connections, idle ones release their responses, and can serve further requests.
  @Test func manyIdleConnectionsForgetTheirResponses() {
    let pool = tests.pool {
      $0.perEndpointMax = 70
      $0.totalMax = 70
    }
    for round in 1...3 {
      let running = (0..<70).map { tests.fetch(request("GET", "/\($0)"), through: pool) }
      world.settle()
      for index in 0..<70 { tests.kernel.peer(index).send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\(round)") }
      world.settle()
      #expect(running.allSatisfy { $0.value?.body == "\(round)" })
      #expect(pool.counts == (connections: 70, idle: 70, waiting: 0))
    }
    #expect(tests.kernel.socketCount == 70)
    #expect(tests.leftovers(of: pool) == [])
  }
}
