import LarkspurHTTP
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// The end of a pool without users.
@Suite struct PoolLifecycleTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }
  var kernel: ScriptedKernel { tests.kernel }

  init() throws {
    tests = try PoolTests()
  }

  /// An orphaned dial continues for the next request, but not after the pool's end.
  @Test func aPoolIsShutDownWhileItDials() {
    var pool: Pool? = tests.pool()
    weak let remembered = pool
    kernel.willConnect(.never)
    if let pool {
      let running = tests.fetch(through: pool)
      world.settle()
      running.cancel()
      world.settle()
      #expect(running.transportError == .cancelled)
      #expect(pool.counts.connections == 1)
      pool.shutDown()
    }
    pool = nil
    world.settle()
    #expect(remembered == nil)
    #expect(world.leftovers == [])
  }

  /// The slot of a cancelled dial is free once its socket is closed, however late the loop is.
  @Test(arguments: 0..<4) func theNextDialWaitsForTheSocketOfTheOneBefore(turns: Int) {
    let pool = tests.pool { $0.totalMax = 1 }
    kernel.willConnect(.never)
    let first = tests.fetch(through: pool)
    world.settle()
    first.cancel()
    world.settle()
    let socketsMax = Shared(0)
    kernel.beforeCalls { [kernel] _ in socketsMax.value = max(socketsMax.value, kernel.openSockets) }
    kernel.advance(by: .seconds(10))
    world.tick(turns)
    let second = tests.fetch(through: pool)
    world.settle()
    kernel.peer(1).send(PoolTests.response)
    world.settle()
    kernel.beforeCalls(nil)
    #expect(second.value?.body == "hello")
    #expect(socketsMax.value == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// With idle connections only, the loop sleeps until they expire.
  @Test func idleConnectionsDoNotWakeTheLoop() {
    let pool = tests.pool {
      $0.perEndpointMax = 1000
      $0.totalMax = 1000
      $0.idleMax = .seconds(40)
    }
    // In batches, because one wait returns a limited number of events.
    let batches = stride(from: 0, to: 1000, by: 100).map { $0..<($0 + 100) }
    var running: [Running<Outcome>] = []
    for batch in batches {
      running += batch.map { tests.fetch(request("GET", "/\($0)"), through: pool) }
      world.settle()
    }
    for batch in batches {
      for index in batch { kernel.peer(index).send(PoolTests.response) }
      world.settle()
    }
    #expect(running.allSatisfy { $0.value?.status == 200 })
    #expect(pool.counts == (connections: 1000, idle: 1000, waiting: 0))
    #expect(kernel.waitMilliseconds == 40_000)
    world.advance(by: .seconds(40))
    #expect(pool.counts.connections == 0)
    // The heap's entry for the dials' timeout, which ended long ago, is not removed, and wakes the loop once.
    // After that the loop waits without a limit.
    #expect(kernel.waitMilliseconds == 20_000)
    world.advance(by: .seconds(20))
    #expect(kernel.waitMilliseconds == -1)
    #expect(world.leftovers == [])
  }
}
