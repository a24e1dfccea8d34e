import CAllocations
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// The cost of one request on a warm loop. The numbers are counted, not timed, and may only fall.
@Suite struct BudgetTests {
  static let warmUp = 50
  static let requests = 1000

  #if DEBUG
    /// Unoptimized closures and generic code allocate.
    static let allocationsPerRequestMax = 4
    static let poolAllocationsPerRequestMax = 12
  #else
    static let allocationsPerRequestMax = 0
    static let poolAllocationsPerRequestMax = 0
  #endif

  struct Cost: Sendable {
    var calls = CountingKernel.Counts()
    var allocations: UInt64 = 0
    /// Number of sends on a new connection up to the end of its first request.
    var firstSends = 0
  }

  /// Sends requests one after another over one connection, on this thread. With `route`, the server also plays the
  /// proxy, and the tunnel leads to itself.
  static func measure(
    over server: TestServer, by security: Security? = nil, via route: ProxyRoute? = nil
  ) throws -> Cost {
    let tunnel: [TestServer.Step] =
      route == nil ? [] : [.expectRequest("CONNECT", "localhost:443"), .send("HTTP/1.1 200 OK\r\n\r\n"), .handshake]
    // The response is sent at once: in two pieces it would cost the client two receives.
    let answer = TestServer.Step.send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!")
    server.enqueue(TestServer.Script(tunnel + [.repeat([.expectRequest, answer])]))
    let kernel = CountingKernel()
    let loop = try ClientLoop(withoutThreadOn: kernel)
    let port = UInt16(server.port)
    let outcome = Shared<Result<Cost, any Error>?>(nil)
    Task(executorPreference: loop) { @concurrent in
      do {
        let connection =
          if let route {
            try await Connection.open(host: "localhost", port: 443, security: security, via: route, on: loop)
          } else {
            try await Connection.open(to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
          }
        let head = request()
        try await exchanges(1, head, over: connection)
        let firstSends = kernel.counts.sends
        try await exchanges(warmUp, head, over: connection)
        let calls = kernel.counts
        let allocations = larkspur_allocations()
        try await exchanges(requests, head, over: connection)
        outcome.value = .success(
          Cost(
            calls: kernel.counts - calls, allocations: larkspur_allocations() - allocations,
            firstSends: firstSends))
        connection.close()
      } catch {
        outcome.value = .failure(error)
      }
      // Without this, the present tick would wait for ever.
      loop.stop()
    }
    while outcome.value == nil { loop.tick() }
    return try #require(outcome.value).get()
  }

  /// Sends requests one after another through a pool, on this thread, while `others` more connections are open.
  static func measurePool(
    over server: TestServer, by security: Security? = nil, beside others: Int = 0, _ options: Pool.Options = .init()
  ) throws -> Cost {
    server.defaultScript = [
      .repeat([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!")])
    ]
    let kernel = CountingKernel()
    let loop = try ClientLoop(withoutThreadOn: kernel)
    let port = UInt16(server.port)
    let outcome = Shared<Result<Cost, any Error>?>(nil)
    Task(executorPreference: loop) { @concurrent in
      do {
        let pool = Pool(on: loop, options: options)
        // A name may have several addresses, and the timer for the second one's attempt is a system call.
        let host = security == nil ? "127.0.0.1" : "localhost"
        let endpoint = pool.endpoint(for: Route(host: host, port: port, security: security))
        var connections: [Connection] = []
        for _ in 0..<others {
          connections.append(
            try await Connection.open(to: [.loopback(port: port)], as: "localhost", security: security, on: loop))
        }
        defer { for connection in connections { connection.close() } }
        try await pool.cancelledWithTask { slot in
          let wanted = PoolRequest(request())
          try await exchanges(warmUp, wanted, through: pool, endpoint, slot)
          let calls = kernel.counts
          let allocations = larkspur_allocations()
          try await exchanges(requests, wanted, through: pool, endpoint, slot)
          outcome.value = .success(
            Cost(calls: kernel.counts - calls, allocations: larkspur_allocations() - allocations))
        }
        pool.shutDown()
      } catch {
        outcome.value = .failure(error)
      }
      // Without this, the present tick would wait for ever.
      loop.stop()
    }
    while outcome.value == nil { loop.tick() }
    return try #require(outcome.value).get()
  }

  static func exchanges(
    _ count: Int, _ wanted: PoolRequest, through pool: Pool, _ endpoint: Endpoint, _ slot: RequestSlot
  ) async throws {
    for _ in 0..<count {
      var received = 0
      try await pool.exchange(wanted, with: endpoint, in: slot) { exchange throws(TransportError) in
        while try await exchange.receiveData({ received += $0.count }) {}
      }
      guard received == 13 else { throw TransportError.connectionClosed }
    }
  }

  @Test func systemCallsPerRequestThroughAPool() throws {
    let cost = try Self.measurePool(over: try TestServer())
    #expect(cost.calls.sends == Self.requests)
    #expect(cost.calls.receives == Self.requests)
    #expect(cost.calls.waits == Self.requests)
    #expect(cost.calls.others == 0)
  }

  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc here"))
  func allocationsPerRequestThroughAPool() throws {
    let cost = try Self.measurePool(over: try TestServer())
    #expect(cost.allocations <= UInt64(Self.poolAllocationsPerRequestMax * Self.requests))
  }

  /// Options for other hosts, and for the opening of connections, cost a request nothing.
  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc here"))
  func allocationsPerRequestWithIdleOptions() throws {
    var overrides = HostOverrides()
    for number in 0..<1000 { overrides.set("host\(number).example", to: .addresses(["192.0.2.1"])) }
    var options = Pool.Options()
    options.resolver = Resolver(overrides: overrides)
    options.timeouts.resolve = .seconds(60)
    options.timeouts.connect = .seconds(60)
    options.timeouts.secure = .seconds(60)
    let cost = try Self.measurePool(over: try TestServer(), options)
    #expect(cost.allocations <= UInt64(Self.poolAllocationsPerRequestMax * Self.requests))
    #expect(cost.calls.others == 0)
  }

  static func exchanges(_ count: Int, _ head: RequestHead, over connection: Connection) async throws {
    for _ in 0..<count {
      let exchange = try await connection.send(head)
      var received = 0
      while try await exchange.receiveData({ received += $0.count }) {}
      guard exchange.status == 200, received == 13 else { throw TransportError.connectionClosed }
    }
  }

  @Test func systemCallsPerRequest() throws {
    let cost = try Self.measure(over: try TestServer())
    #expect(cost.calls.sends == Self.requests)
    #expect(cost.calls.receives == Self.requests)
    #expect(cost.calls.waits == Self.requests)
    // There are no other calls: no registration, no wake-up, no socket option.
    #expect(cost.calls.others == 0)
  }

  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc here"))
  func allocationsPerRequest() throws {
    let cost = try Self.measure(over: try TestServer())
    #expect(cost.allocations <= UInt64(Self.allocationsPerRequestMax * Self.requests))
    // The allocation counter works.
    let before = larkspur_allocations()
    let array = Array(repeating: 0, count: Int(before % 100) + 100)
    #expect(larkspur_allocations() > before && !array.isEmpty)
  }
}
