import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// Rates that connections share, on a clock that only the test advances.
@Suite struct RateLimitsTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }
  var kernel: ScriptedKernel { tests.world.kernel }

  init() throws { tests = try PoolTests() }

  private func pool(_ change: (inout RateLimits) -> Void) -> Pool {
    var options = Pool.Options()
    change(&options.rates)
    return Pool(on: world.loop, options: options)
  }

  /// Returns the time in seconds that two uploads of 5,000 bytes each take.
  private func seconds(ofUploadsThrough pool: Pool, to routes: [Route]) -> Int {
    let head = request("PUT", body: 5000)
    let uploads = routes.map { tests.fetch(head, body: pattern(5000), through: pool, route: $0) }
    world.settle()
    var milliseconds = 0
    while milliseconds < 100_000,
      routes.indices.contains(where: { kernel.peer($0).received.count < 5000 + head.bytes.count })
    {
      world.advance(by: .milliseconds(20))
      milliseconds += 20
    }
    for index in routes.indices { kernel.peer(index).send(PoolTests.response) }
    world.settle()
    for upload in uploads { #expect(upload.value?.status == 200) }
    return milliseconds / 1000
  }

  @Test func allConnectionsTogether() {
    let pool = pool { $0.bytesPerSecond = 1000 }
    #expect(9...11 ~= seconds(ofUploadsThrough: pool, to: [PoolTests.route, Route(host: "192.0.2.2", port: 80)]))
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func eachHost() {
    let pool = pool { $0.bytesPerSecondPerHost = 1000 }
    #expect(4...6 ~= seconds(ofUploadsThrough: pool, to: [PoolTests.route, Route(host: "192.0.2.2", port: 80)]))
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func theConnectionsOfAHost() {
    let pool = pool { $0.bytesPerSecondPerHost = 1000 }
    #expect(9...11 ~= seconds(ofUploadsThrough: pool, to: [PoolTests.route, PoolTests.route]))
    #expect(tests.leftovers(of: pool) == [])
  }

  /// Requests leave one after another, also if each has a connection.
  @Test func requestsOfAHost() {
    let pool = pool { $0.requestsPerSecondPerHost = 0.5 }
    let running = (0..<3).map { _ in tests.fetch(through: pool) }
    let other = tests.fetch(through: pool, route: Route(host: "192.0.2.2", port: 80))
    world.settle()
    #expect(kernel.socketCount == 2)
    kernel.peer(0).send(PoolTests.response)
    kernel.peer(1).send(PoolTests.response)
    world.settle()
    #expect(running.count { $0.isOver } == 1 && other.isOver)
    for count in 2...3 {
      world.advance(by: .milliseconds(1999))
      #expect(running.count { $0.isOver } == count - 1)
      let sent = (0..<kernel.socketCount).map { kernel.peer($0).received.count }
      world.advance(by: .milliseconds(1))
      #expect((0..<kernel.socketCount).map { kernel.peer($0).received.count } != sent)
      kernel.peer(0).send(PoolTests.response)
      world.settle()
      #expect(running.count { $0.isOver } == count)
    }
    #expect(tests.leftovers(of: pool) == [])
  }

  /// Routes of other traffic classes lead to the host, too.
  @Test func allRoutesToAHost() {
    let marked = Route(host: PoolTests.route.host, port: PoolTests.route.port, marked: 8)
    let bytes = pool { $0.bytesPerSecondPerHost = 1000 }
    #expect(9...11 ~= seconds(ofUploadsThrough: bytes, to: [PoolTests.route, marked]))
    let requests = pool { $0.requestsPerSecondPerHost = 0.5 }
    let running = [PoolTests.route, marked].map { tests.fetch(through: requests, route: $0) }
    world.settle()
    #expect(kernel.socketCount == 3)
    world.advance(by: .seconds(2))
    #expect(kernel.socketCount == 4)
    for index in 2...3 { kernel.peer(index).send(PoolTests.response) }
    world.settle()
    #expect(running.allSatisfy { $0.value?.status == 200 })
    bytes.shutDown()
    #expect(tests.leftovers(of: requests) == [])
  }

  @Test func aRequestThatWaitsForItsTurn() {
    let pool = pool { $0.requestsPerSecondPerHost = 0.01 }
    let first = tests.fetch(through: pool)
    world.settle()
    kernel.peer(0).send(PoolTests.response)
    world.settle()
    #expect(first.isOver)
    let late = tests.fetch(through: pool, deadline: .seconds(5))
    let cancelled = tests.fetch(through: pool)
    world.settle()
    world.advance(by: .seconds(5))
    #expect(late.transportError == .timedOut(.queueing))
    cancelled.cancel()
    world.settle()
    #expect(cancelled.transportError == .cancelled)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func ratesThatCannotBeUsed() {
    let changes: [(String, (inout RateLimits) -> Void)] = [
      ("bytesPerSecond", { $0.bytesPerSecond = 0 }), ("bytesPerSecondPerHost", { $0.bytesPerSecondPerHost = -1 }),
      ("requestsPerSecondPerHost", { $0.requestsPerSecondPerHost = 0 }),
      ("requestsPerSecondPerHost", { $0.requestsPerSecondPerHost = .nan }),
    ]
    for (name, change) in changes {
      var options = Pool.Options()
      change(&options.rates)
      let error = #expect(throws: TransportError.self) { try options.check() }
      #expect("\(String(describing: error))".contains("rateLimits.\(name)"))
    }
    // A rate of any size is a rate.
    for rate in [Double.leastNonzeroMagnitude, .infinity] {
      let pool = pool { $0.requestsPerSecondPerHost = rate }
      let running = tests.fetch(through: pool)
      world.settle()
      kernel.peer(kernel.socketCount - 1).send(PoolTests.response)
      world.settle()
      #expect(running.value?.status == 200)
      #expect(tests.leftovers(of: pool) == [])
    }
  }
}

extension Route {
  fileprivate init(host: String, port: UInt16, marked trafficClass: UInt8) {
    self.init(host: host, port: port)
    local = LocalEndpoint(trafficClass: trafficClass)
  }
}
