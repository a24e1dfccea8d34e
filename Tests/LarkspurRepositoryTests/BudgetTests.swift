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
        let firstSends = kernel.counts.value.sends
        try await exchanges(warmUp, head, over: connection)
        let calls = kernel.counts.value
        let allocations = larkspur_allocations()
        try await exchanges(requests, head, over: connection)
        outcome.value = .success(
          Cost(
            calls: kernel.counts.value - calls, allocations: larkspur_allocations() - allocations,
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
  static func measurePool(over server: TestServer, by security: Security? = nil, beside others: Int = 0) throws -> Cost
  {
    server.defaultScript = [
      .repeat([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!")])
    ]
    let kernel = CountingKernel()
    let loop = try ClientLoop(withoutThreadOn: kernel)
    let port = UInt16(server.port)
    let outcome = Shared<Result<Cost, any Error>?>(nil)
    Task(executorPreference: loop) { @concurrent in
      do {
        let pool = Pool(on: loop)
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
          let calls = kernel.counts.value
          let allocations = larkspur_allocations()
          try await exchanges(requests, wanted, through: pool, endpoint, slot)
          outcome.value = .success(
            Cost(calls: kernel.counts.value - calls, allocations: larkspur_allocations() - allocations))
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

/// Counts the calls of the real kernel. Used by one thread.
final class CountingKernel: Kernel {
  struct Counts: Sendable {
    var sends = 0
    var receives = 0
    var waits = 0
    /// All other calls, except those that read the clock.
    var others = 0

    static func - (later: Counts, earlier: Counts) -> Counts {
      Counts(
        sends: later.sends - earlier.sends, receives: later.receives - earlier.receives,
        waits: later.waits - earlier.waits, others: later.others - earlier.others)
    }
  }

  let counts = Shared(Counts())
  private let kernel = LinuxKernel.shared

  func now() -> Deadline { kernel.now() }
  func date() -> Int64 { kernel.date() }

  func receive(_ descriptor: Int32, into buffer: inout OutputRawSpan) -> Int {
    counts.value.receives += 1
    return kernel.receive(descriptor, into: &buffer)
  }

  func send(_ descriptor: Int32, from queue: borrowing ByteQueue, atMost count: Int) -> Int {
    counts.value.sends += 1
    return kernel.send(descriptor, from: queue, atMost: count)
  }

  func send(_ descriptor: Int32, _ bytes: Span<UInt8>) -> Int {
    counts.value.sends += 1
    return kernel.send(descriptor, bytes)
  }

  func wait(_ poller: Int32, into events: inout EventBuffer, milliseconds: Int32) -> Int32 {
    let result = kernel.wait(poller, into: &events, milliseconds: milliseconds)
    // Signals and debuggers interrupt waits, and the loop then waits again: such waits are not a request's cost.
    if result != -Errno.interrupted.rawValue { counts.value.waits += 1 }
    return result
  }

  private func other<T>(_ body: () -> T) -> T {
    counts.value.others += 1
    return body()
  }

  func openSocket(for address: SocketAddress) -> Int32 { other { kernel.openSocket(for: address) } }
  func bind(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
    other { kernel.bind(descriptor, to: address) }
  }
  func deferPort(_ descriptor: Int32) { other { kernel.deferPort(descriptor) } }
  func setUnsentBytesMax(_ descriptor: Int32, _ count: Int32) {
    other { kernel.setUnsentBytesMax(descriptor, count) }
  }
  func shutDownSending(_ descriptor: Int32) { other { kernel.shutDownSending(descriptor) } }
  func setTrafficClass(_ descriptor: Int32, _ trafficClass: UInt8) {
    other { kernel.setTrafficClass(descriptor, trafficClass) }
  }
  func bind(_ descriptor: Int32, toInterface name: String) -> Int32 {
    other { kernel.bind(descriptor, toInterface: name) }
  }
  func interfaceIndex(of name: String) -> Int32 { other { kernel.interfaceIndex(of: name) } }
  func connect(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
    other { kernel.connect(descriptor, to: address) }
  }
  func pendingError(_ descriptor: Int32) -> Int32 { other { kernel.pendingError(descriptor) } }
  func setNoDelay(_ descriptor: Int32) { other { kernel.setNoDelay(descriptor) } }
  func close(_ descriptor: Int32) { other { kernel.close(descriptor) } }
  func fileStatus(_ file: Int32, _ status: inout FileStatus) -> Int {
    counts.value.others += 1
    return kernel.fileStatus(file, &status)
  }
  func sendFile(_ file: Int32, at offset: Int, count: Int, to descriptor: Int32) -> Int {
    other { kernel.sendFile(file, at: offset, count: count, to: descriptor) }
  }
  func readFile(_ file: Int32, at offset: Int?, into buffer: inout OutputRawSpan) -> Int {
    counts.value.others += 1
    return kernel.readFile(file, at: offset, into: &buffer)
  }
  func writeFile(_ file: Int32, _ bytes: Span<UInt8>) -> Int {
    counts.value.others += 1
    return kernel.writeFile(file, bytes)
  }
  func openPipe() -> (reading: Int32, writing: Int32) { other { kernel.openPipe() } }
  func splice(from source: Int32, to target: Int32, count: Int) -> Int {
    other { kernel.splice(from: source, to: target, count: count) }
  }
  func openPoller() -> Int32 { other { kernel.openPoller() } }
  func watch(_ poller: Int32, _ descriptor: Int32, slot: UInt32, registration: UInt32) -> Int32 {
    other { kernel.watch(poller, descriptor, slot: slot, registration: registration) }
  }
  func openWakeUp() -> Int32 { other { kernel.openWakeUp() } }
  func wake(_ descriptor: Int32) { other { kernel.wake(descriptor) } }
  func openTimer() -> Int32 { other { kernel.openTimer() } }
  func setTimer(_ descriptor: Int32, to moment: Deadline) { other { kernel.setTimer(descriptor, to: moment) } }
}
