import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// A pool over a scripted kernel: which socket gets which request, and the outcome.
@Suite struct PoolTests {
  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }

  init() throws {
    world = try ScriptedWorld()
  }

  static let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
  static let route = Route(host: "192.0.2.1", port: 80)

  func pool(_ change: (inout PoolLimits) -> Void = { _ in }) -> Pool {
    var options = Pool.Options()
    change(&options.limits)
    return Pool(on: world.loop, options: options)
  }

  func fetch(
    _ head: RequestHead = request(), body: [UInt8] = [], through pool: Pool, route: Route = route,
    deadline: Duration? = nil
  ) -> Running<Outcome> {
    world.start { [world] in
      var request = PoolRequest(head)
      request.body = .bytes(body)
      request.deadline = deadline.map { world.loop.now.advanced(by: $0) } ?? .never
      let outcome = Shared<Outcome?>(nil)
      try await pool.cancelledWithTask { slot in
        try await pool.exchange(request, with: pool.endpoint(for: route), in: slot) {
          exchange throws(TransportError) in
          let status = exchange.status
          let body = try await exchange.collectBody(bytesMax: 1 << 20)
          outcome.value = Outcome(status: status, body: String(decoding: body, as: UTF8.self))
        }
      }
      return try #require(outcome.value)
    }
  }

  func leftovers(of pool: Pool) -> [String] {
    pool.shutDown()
    world.settle()
    return world.leftovers
  }

  @Test func oneRequestAfterAnotherOverOneConnection() {
    let pool = pool()
    for number in 1...3 {
      let running = fetch(through: pool)
      world.settle()
      kernel.peer().send(Self.response)
      world.settle()
      #expect(running.value == Outcome(status: 200, body: "hello"))
      #expect(kernel.socketCount == 1, "request \(number)")
    }
    #expect(leftovers(of: pool) == [])
  }

  @Test func sixAtATimeAndTheNextOnTheFirstThatIsFree() {
    let pool = pool()
    let running = (0..<7).map { fetch(request("GET", "/\($0)"), through: pool) }
    world.settle()
    #expect(kernel.socketCount == 6)
    kernel.peer(3).send(Self.response)
    world.settle()
    #expect(kernel.peer(3).receivedText.contains("GET /6 "))
    for index in 0..<6 { kernel.peer(index).send(Self.response) }
    world.settle()
    #expect(running.allSatisfy { $0.value?.body == "hello" })
    #expect(leftovers(of: pool) == [])
  }

  @Test func routesDoNotShareConnections() {
    let pool = pool()
    for port in [80, 81] {
      let running = fetch(through: pool, route: Route(host: "192.0.2.1", port: UInt16(port)))
      world.settle()
      kernel.peer(port - 80).send(Self.response)
      world.settle()
      #expect(running.isOver)
    }
    #expect(kernel.socketCount == 2)
    #expect(pool.counts.idle == 2)
    #expect(leftovers(of: pool) == [])
  }

  @Test func aCloseOfAnIdleConnectionIsNoticedAtOnce() {
    let pool = pool()
    let running = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    #expect(running.isOver)
    #expect(pool.counts == (1, 1, 0))
    kernel.peer().close()
    world.settle()
    #expect(pool.counts == (0, 0, 0))
    #expect(!kernel.peer().isOpen)
    #expect(leftovers(of: pool) == [])
  }

  @Test(arguments: ["x", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"])
  func whatComesOnAnIdleConnectionAnswersNothing(bytes: String) {
    let pool = pool()
    let first = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    kernel.peer().send(bytes)
    world.settle()
    #expect(!kernel.peer().isOpen)
    let second = fetch(through: pool)
    world.settle()
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(first.value?.body == "hello")
    #expect(second.value?.body == "hello")
    #expect(leftovers(of: pool) == [])
  }

  @Test func stayingIdleTooLong() {
    let pool = pool { $0.idleMax = .seconds(10) }
    let running = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    #expect(running.isOver)
    world.advance(by: .milliseconds(9_999))
    #expect(kernel.peer().isOpen)
    world.advance(by: .milliseconds(1))
    #expect(!kernel.peer().isOpen)
    #expect(leftovers(of: pool) == [])
  }

  @Test(arguments: [
    ("timeout=5", 4_000), ("timeout=1, max=100", 500), ("Timeout = \"5\"", 4_000), ("timeout=0", 0), ("max=1", 60_000),
    ("timeout=999999999999", 60_000), ("timeout=-1", 60_000), ("max=0", 0),
  ])
  func theServersIdleTime(keepAlive: String, milliseconds: Int) {
    let pool = pool()
    let running = fetch(through: pool)
    world.settle()
    kernel.peer().send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: \(keepAlive)\r\n\r\nok")
    world.settle()
    #expect(running.isOver)
    if milliseconds > 0 {
      world.advance(by: .milliseconds(milliseconds - 1))
      #expect(kernel.peer().isOpen)
    }
    world.advance(by: .milliseconds(1))
    #expect(!kernel.peer().isOpen)
    #expect(leftovers(of: pool) == [])
  }

  /// If a server closes between requests, and the client learns of that only by its next request, the request is sent
  /// again.
  @Test(arguments: [false, true], ["GET", "PUT", "DELETE"])
  func aDeadConnectionsRequestIsSentOnceMore(isReset: Bool, method: String) {
    let pool = pool()
    _ = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    let body = method == "PUT" ? Array("body".utf8) : []
    let running = fetch(request(method, "/again", body: method == "PUT" ? 4 : nil), body: body, through: pool)
    world.tick(3)
    if isReset { kernel.peer().reset() } else { kernel.peer().close() }
    world.settle()
    #expect(kernel.peer(0).receivedText.contains("/again"))
    #expect(kernel.peer(1).receivedText.hasPrefix("\(method) /again"))
    #expect(kernel.peer(1).receivedText.hasSuffix(method == "PUT" ? "\r\n\r\nbody" : "\r\n\r\n"))
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(running.value?.body == "hello")
    #expect(leftovers(of: pool) == [])
  }

  /// An error that the caller throws, perhaps about another connection, does not repeat the request.
  @Test func whatTheCallerThrowsRepeatsNothing() {
    let pool = pool()
    let running = world.start {
      let request = PoolRequest(request("POST", body: 0))
      try await pool.cancelledWithTask { slot in
        try await pool.exchange(request, with: pool.endpoint(for: Self.route), in: slot) {
          _ throws(TransportError) in throw .connectionClosed
        }
      }
    }
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    #expect(running.transportError == .connectionClosed)
    #expect(kernel.socketCount == 1)
    #expect(leftovers(of: pool) == [])
  }

  @Test func onlyOnce() {
    let pool = pool()
    _ = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    let running = fetch(through: pool)
    world.tick(3)
    kernel.peer(0).close()
    world.settle()
    kernel.peer(1).close()
    world.settle()
    #expect(running.transportError == .badResponse(.truncated(.beforeHead)))
    #expect(kernel.socketCount == 2)
    #expect(leftovers(of: pool) == [])
  }

  @Test func aRequestThatMustNotBeRepeatedFails() {
    let pool = pool()
    _ = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    world.advance(by: .seconds(1))
    let running = fetch(request("POST", body: 4), body: Array("body".utf8), through: pool)
    world.tick(3)
    kernel.peer(0).close()
    world.settle()
    #expect(running.transportError == .badResponse(.truncated(.beforeHead)))
    #expect(kernel.socketCount == 1)
    #expect(leftovers(of: pool) == [])
  }

  /// A request of which no byte was sent goes to another connection.
  @Test(arguments: [Errno.brokenPipe, .connectionReset]) func aRequestThatNeverLeftGoesElsewhere(error: Errno) {
    let pool = pool()
    _ = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    kernel.peer().willFailToSend(error)
    world.advance(by: .seconds(1))
    let running = fetch(request("POST", body: 4), body: Array("body".utf8), through: pool)
    world.settle()
    #expect(!kernel.peer().receivedText.contains("POST"))
    #expect(kernel.peer(1).receivedText.hasSuffix("\r\n\r\nbody"))
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(running.value?.body == "hello")
    #expect(leftovers(of: pool) == [])
  }

  /// After the first byte of a response, the request is not repeated.
  @Test(arguments: ["H", "HTTP/1.1 100 Continue\r\n\r\n"]) func notAfterTheFirstByte(start: String) {
    let pool = pool()
    _ = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    let running = fetch(through: pool)
    world.tick(3)
    kernel.peer(0).arrive([.bytesThenEnd(Array(start.utf8))])
    world.settle()
    #expect(running.transportError != nil)
    #expect(kernel.socketCount == 1)
    #expect(leftovers(of: pool) == [])
  }

  @Test func notOnANewConnection() {
    let pool = pool()
    let running = fetch(through: pool)
    world.settle()
    kernel.peer(0).close()
    world.settle()
    #expect(running.transportError == .badResponse(.truncated(.beforeHead)))
    #expect(kernel.socketCount == 1)
    #expect(leftovers(of: pool) == [])
  }

  /// A connection that was idle before its first request may have been closed by its server, so that request is
  /// repeated.
  @Test func aConnectionThatWasKeptBeforeItsFirstRequest() {
    kernel.willConnect(.never)
    let pool = pool { $0.perEndpointMax = 1 }
    let first = fetch(through: pool)
    world.settle()
    first.cancel()
    world.settle()
    kernel.peer().completeConnect()
    world.settle()
    #expect(pool.counts == (1, 1, 0))
    let second = fetch(request("GET", "/again"), through: pool)
    world.tick(3)
    kernel.peer(0).close()
    world.settle()
    #expect(kernel.peer(0).receivedText.contains("/again"))
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(second.value?.body == "hello")
    #expect(leftovers(of: pool) == [])
  }

  @Test func aFailedDialFailsAllRequests() {
    kernel.willConnect(.later(.connectionRefused), .later(.connectionRefused), .later(.connectionRefused))
    let pool = pool { $0.perEndpointMax = 2 }
    let running = (0..<3).map { _ in fetch(through: pool) }
    world.settle()
    let attempt = TransportError.Attempt(address: .ipv4(0xc000_0201, port: 80), error: .connectionRefused)
    for request in running { #expect(request.transportError == .connectFailed([attempt])) }
    #expect(leftovers(of: pool) == [])
  }

  @Test func cancelledWhileItWaits() {
    let pool = pool { $0.perEndpointMax = 1 }
    let first = fetch(through: pool)
    let second = fetch(through: pool)
    world.settle()
    second.cancel()
    world.settle()
    #expect(second.transportError == .cancelled)
    kernel.peer().send(Self.response)
    world.settle()
    #expect(first.value?.body == "hello")
    #expect(pool.counts == (1, 1, 0))
    #expect(leftovers(of: pool) == [])
  }

  /// A cancelled request reports the peer for which it was waiting.
  @Test func thePeerOfACancelledRequest() {
    kernel.willConnect(.never)
    let (pool, world) = (pool(), world)
    let slot = RequestSlot(of: pool)
    let running = world.start {
      defer { #expect(slot.failedPeer == .ipv4(0xc000_0201, port: 80)) }
      _ = try await pool.start(PoolRequest(request()), with: pool.endpoint(for: Self.route), in: slot)
    }
    world.settle()
    slot.cancel()
    world.settle()
    #expect(running.transportError == .cancelled)
    #expect(leftovers(of: pool) == [])
  }

  /// The connection that was dialed for a cancelled request serves the next one.
  @Test func cancelledWhileItsConnectionIsOpened() {
    kernel.willConnect(.never)
    let pool = pool { $0.perEndpointMax = 1 }
    let first = fetch(through: pool)
    world.settle()
    first.cancel()
    world.settle()
    #expect(first.transportError == .cancelled)
    let second = fetch(through: pool)
    world.settle()
    kernel.peer().completeConnect()
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    #expect(second.value?.body == "hello")
    #expect(kernel.socketCount == 1)
    #expect(leftovers(of: pool) == [])
  }

  @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"])
  func cancelledWhileItRuns(received: String) {
    let pool = pool()
    let running = fetch(through: pool)
    world.settle()
    if !received.isEmpty { kernel.peer().send(received) }
    world.settle()
    running.cancel()
    world.settle()
    #expect(running.transportError == .cancelled)
    #expect(!kernel.peer().isOpen)
    #expect(pool.counts == (0, 0, 0))
    #expect(leftovers(of: pool) == [])
  }

  /// A connection becomes free for a task that is cancelled in the same tick.
  @Test func cancelledWhenItWasJustGivenAConnection() {
    let pool = pool { $0.perEndpointMax = 1 }
    let first = fetch(through: pool)
    let second = fetch(through: pool)
    let third = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    kernel.beforeCalls { _ in second.cancel() }
    world.settle()
    kernel.beforeCalls(nil)
    kernel.peer().send(Self.response)
    world.settle()
    #expect(first.value?.body == "hello")
    #expect(second.transportError == .cancelled)
    #expect(third.isOver || pool.counts.connections == 1)
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(third.value?.body == "hello")
    #expect(leftovers(of: pool) == [])
  }

  @Test func theDeadlineCountsInTheQueue() {
    let pool = pool { $0.perEndpointMax = 1 }
    _ = fetch(through: pool)
    let running = fetch(through: pool, deadline: .milliseconds(300))
    world.settle()
    world.advance(by: .milliseconds(299))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.queueing))
    kernel.peer().send(Self.response)
    world.settle()
    #expect(leftovers(of: pool) == [])
  }

  @Test func whatIsLeftUnreadCostsTheConnection() {
    let pool = pool()
    let running = world.start {
      let endpoint = pool.endpoint(for: Self.route)
      try await pool.exchange(PoolRequest(request()), with: endpoint, in: RequestSlot(of: pool)) { _ in }
    }
    world.settle()
    kernel.peer().send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
    world.settle()
    #expect(running.isOver)
    #expect(!kernel.peer().isOpen)
    #expect(leftovers(of: pool) == [])
  }

  /// A connection may close before the task that was chosen for it has run.
  @Test func aConnectionThatGoesBeforeItIsUsed() {
    let pool = pool { $0.perEndpointMax = 1 }
    let first = fetch(request("GET", "/1"), through: pool)
    let second = fetch(request("GET", "/2"), through: pool)
    world.settle()
    kernel.peer().arrive([.bytesThenEnd(Array(Self.response.utf8))])
    world.settle()
    #expect(first.value?.body == "hello")
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(second.value?.body == "hello")
    #expect(leftovers(of: pool) == [])
  }

  /// A pool that is shut down lives until its running exchange has ended, and no longer: neither a dial nor a response
  /// nor an idle connection keeps it.
  @Test(arguments: 0..<4) func aPoolThatIsShutDownIsGone(after steps: Int) {
    weak var gone: Pool?
    do {
      let pool = pool()
      gone = pool
      _ = fetch(through: pool)
      if steps > 0 { world.settle() }
      if steps == 2 { kernel.peer().send(String(Self.response.dropLast())) }
      if steps == 3 { kernel.peer().send(Self.response) }
      if steps > 1 { world.settle() }
      pool.shutDown()
    }
    world.settle()
    if steps == 1 || steps == 2 {
      #expect(gone != nil)
      kernel.peer().send(steps == 1 ? Self.response : String(Self.response.suffix(1)))
      world.settle()
    }
    #expect(gone == nil)
    #expect(world.leftovers == [])
  }

  @Test func afterShuttingDown() {
    let pool = pool()
    pool.shutDown()
    let running = fetch(through: pool)
    world.settle()
    #expect(running.transportError == .localMisuse(.poolShutDown))
    #expect(kernel.socketCount == 0)
    #expect(leftovers(of: pool) == [])
  }

  /// Unused routes are forgotten, because a crawler visits many of them.
  @Test func routesAreForgotten() {
    let pool = pool()
    let endpoint = pool.endpoint(for: Self.route)
    for _ in 0..<2 {
      let running = world.start {
        let slot = RequestSlot(of: pool)
        try await pool.exchange(PoolRequest(request()), with: endpoint, in: slot) { exchange throws(TransportError) in
          try await exchange.discardBody()
        }
      }
      world.settle()
      let peer = kernel.peer(kernel.socketCount - 1)
      peer.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
      world.settle()
      #expect(running.isOver && running.error == nil)
      #expect(pool.counts == (0, 0, 0))
      #expect(pool.endpoint(for: Self.route) !== endpoint)
    }
    #expect(leftovers(of: pool) == [])
  }

  /// If the server has gone and nothing of the body was sent, a request that waits for 100 is repeated.
  @Test func aBodyThatWaitsForConsentIsSentOnceMore() throws {
    let pool = pool()
    _ = fetch(through: pool)
    world.settle()
    kernel.peer().send(Self.response)
    world.settle()
    var writer = try RequestWriter(method: "POST", target: "/", host: "a.example")
    try writer.field("Expect", "100-continue")
    let running = fetch(writer.finish(body: .length(4)), body: Array("body".utf8), through: pool)
    world.tick(3)
    kernel.peer(0).close()
    world.settle()
    kernel.peer(1).send("HTTP/1.1 100 Continue\r\n\r\n")
    world.settle()
    #expect(kernel.peer(1).receivedText.hasSuffix("\r\n\r\nbody"))
    kernel.peer(1).send(Self.response)
    world.settle()
    #expect(running.value?.body == "hello")
    #expect(leftovers(of: pool) == [])
  }

  /// A producer that has begun cannot run again, so its request is not repeated.
  @Test func aProducedBodyIsNotSentTwice() throws {
    let pool = pool()
    for _ in 0..<2 {
      _ = fetch(through: pool)
      world.settle()
      kernel.peer().send(Self.response)
      world.settle()
    }
    let running = world.start {
      var wanted = PoolRequest(request("PUT", body: 4))
      wanted.body = .produced(length: 4) { try await $0.write(Array("body".utf8)) }
      let endpoint = pool.endpoint(for: Self.route)
      try await pool.exchange(wanted, with: endpoint, in: RequestSlot(of: pool)) { _ in }
    }
    world.tick(5)
    kernel.peer(0).close()
    world.settle()
    #expect(running.transportError == .badResponse(.truncated(.beforeHead)))
    #expect(kernel.socketCount == 1)
    #expect(leftovers(of: pool) == [])
  }

  /// The limits for opening a connection fail the requests that wait for it.
  @Test func timesOfOpening() throws {
    var options = Pool.Options()
    options.timeouts.connect = .milliseconds(200)
    let pool = Pool(on: world.loop, options: options)
    for route in [Self.route, Route(host: "a.example", port: 80, proxy: ProxyRoute(try Proxy("socks5h://192.0.2.9")))] {
      kernel.willConnect(.never)
      let running = fetch(through: pool, route: route)
      world.settle()
      world.advance(by: .milliseconds(199))
      #expect(!running.isOver)
      world.advance(by: .milliseconds(1))
      #expect(running.transportError == .timedOut(.connecting, limit: .connect))
    }
    #expect(leftovers(of: pool) == [])
  }

  /// The time for the whole request includes the wait for a connection.
  @Test func times() {
    let pool = pool { $0.perEndpointMax = 1 }
    let first = world.start {
      var wanted = PoolRequest(request())
      wanted.timeouts = Timeouts()
      wanted.timeouts?.firstByte = .milliseconds(500)
      let endpoint = pool.endpoint(for: Self.route)
      try await pool.exchange(wanted, with: endpoint, in: RequestSlot(of: pool)) { _ in }
    }
    let second = world.start {
      var wanted = PoolRequest(request())
      wanted.timeouts = Timeouts()
      wanted.timeouts?.total = .milliseconds(300)
      let endpoint = pool.endpoint(for: Self.route)
      try await pool.exchange(wanted, with: endpoint, in: RequestSlot(of: pool)) { _ in }
    }
    world.settle()
    world.advance(by: .milliseconds(300))
    #expect(second.transportError == .timedOut(.queueing))
    world.advance(by: .milliseconds(200))
    #expect(first.transportError == .timedOut(.awaitingHead, limit: .firstByte))
    #expect(leftovers(of: pool) == [])
  }
}
