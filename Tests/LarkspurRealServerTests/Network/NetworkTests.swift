import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Synchronization
import TestKit
import Testing

/// A pool on a machine with a faulty network.
@Suite(.serialized, .timeLimit(.minutes(2)), .ownThread, .ownProcess) struct NetworkTests {
  let hosts: TwoHosts

  init() throws {
    hosts = try TwoHosts()
  }

  func errors(_ failures: [TransportError]) -> Set<Errno> {
    Set(
      failures.flatMap { failure -> [Errno] in
        if case .connectFailed(let attempts) = failure { attempts.map(\.error) } else { [.invalidArgument] }
      })
  }

  @Test(arguments: [
    // There is no route.
    ("192.0.2.1", "", Errno.networkUnreachable), ("2001:db8::1", "", .networkUnreachable),
    // Routes that report an error.
    ("192.0.2.1", "route add unreachable 192.0.2.0/24", .hostUnreachable),
    ("192.0.2.1", "route add prohibit 192.0.2.0/24", .accessDenied),
    ("2001:db8::1", "-6 route add unreachable 2001:db8::/32", .hostUnreachable),
    // No server listens.
    ("10.9.0.2", "", .connectionRefused), ("fd09::2", "", .connectionRefused),
    // No machine has the address, which is known only after a while.
    ("10.9.0.77", "", .hostUnreachable),
  ])
  func unreachable(host: String, command: String, error: Errno) async throws {
    if !command.isEmpty { try hosts.client.ip(command) }
    try hosts.client.set("ipv4/neigh/cable/retrans_time_ms", to: "10")
    let load = try hosts.load()
    try await load.run(120) { _ in await load.fetch("GET", "/", from: Route(host: host, port: 80)) }
    #expect(load.failures.count == 120)
    #expect(errors(load.failures) == [error])
    #expect(await load.leftovers() == [])
  }

  @Test func nothingAnswersAConnect() async throws {
    try hosts.swallow("10.9.0.2")
    let load = try hosts.load { $0.dialMax = .milliseconds(30) }
    try await load.run(60) { _ in await load.fetch("GET", "/", from: Route(host: "10.9.0.2", port: 80)) }
    #expect(load.failures.count == 60)
    #expect(Set(load.failures) == [.timedOut(.connecting)])
    #expect(await load.leftovers() == [])
  }

  /// A request's own deadline ends its wait. The dial continues until the pool is shut down.
  @Test func nothingAnswersUntilTheRequestsDeadline() async throws {
    try hosts.swallow("10.9.0.2")
    let load = try hosts.load()
    try await load.run(24, lanes: 24) { _ in
      var request = PoolRequest(request())
      request.deadline = load.loop.kernel.now().advanced(by: .milliseconds(30))
      await #expect(throws: TransportError.timedOut(.queueing)) {
        try await load.pool.fetch(request, from: Route(host: "10.9.0.2", port: 80))
      }
    }
    #expect(await load.leftovers() == [])
  }

  /// One of two addresses swallows all packets, the other one serves.
  @Test(arguments: [false, true]) func aBlackHoleBesideAServer(servesIPv6: Bool) async throws {
    let server = try hosts.start(ipv6: servesIPv6)
    try hosts.swallow(servesIPv6 ? "10.9.0.2" : "fd09::2")
    let load = try hosts.load()
    let route = Route(host: "both", port: UInt16(server.port))
    try await load.run(200) { _ in await load.fetch("GET", "/bytes/100", from: route) }
    #expect(load.failures == [])
    #expect(load.replies.count { $0.status == 200 && $0.body.count == 100 } == 200)
    #expect(server.connectionsAccepted <= 6)
    #expect(await load.leftovers() == [])
  }

  /// A client with routes of one family only, and a server with addresses of both.
  @Test(arguments: [false, true]) func aDeadFamily(hasIPv6: Bool) async throws {
    let server = try hosts.start(ipv6: hasIPv6)
    try hosts.client.ip((hasIPv6 ? "-4" : "-6") + " route flush dev cable")
    let load = try hosts.load()
    let port = UInt16(server.port)
    try await load.run(200) { _ in await load.fetch("GET", "/bytes/100", from: Route(host: "both", port: port)) }
    #expect(load.failures == [])
    #expect(load.replies.count { $0.status == 200 && $0.body.count == 100 } == 200)
    #expect(server.connectionsAccepted <= 6)
    let dead = Route(host: hasIPv6 ? "10.9.0.2" : "fd09::2", port: port)
    try await load.run(12) { _ in await load.fetch("GET", "/", from: dead) }
    #expect(errors(load.failures) == [.networkUnreachable])
    #expect(load.failures.count == 12)
    #expect(await load.leftovers() == [])
  }

  /// `localhost` has two addresses, and the server listens at one of them.
  @Test(arguments: [TestServer.Address.ipv4, .ipv6]) func localhost(address: TestServer.Address) async throws {
    let server = try hosts.client.run {
      var options = TestServer.Options()
      options.address = address
      return try TestServer(options)
    }
    let load = try hosts.load()
    let route = Route(host: "localhost", port: UInt16(server.port))
    try await load.run(300) { _ in await load.fetch("GET", "/bytes/10", from: route) }
    #expect(load.failures == [])
    #expect(load.replies.count { $0.status == 200 && $0.body.count == 10 } == 300)
    #expect(server.connectionsAccepted <= 6)
    #expect(await load.leftovers() == [])
  }

  /// If the cable is unplugged during transfers, without a report, the deadlines end them. After it is plugged in
  /// again, the next requests use new connections.
  @Test func theLinkGoesDownInMidTransfer() async throws {
    try hosts.keepResolvingAddresses()
    let server = try hosts.start()
    let proceed = TestServer.Signal()
    server.route(
      "GET", "/halves",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .wait(proceed), .send("world"), .serveRoutes,
      ])
    let load = try hosts.load()
    let route = Route(host: "10.9.0.2", port: UInt16(server.port))
    let hosts = hosts
    let begun = Mutex(0)
    try await load.run(6, lanes: 6) { _ in
      var request = PoolRequest(request("GET", "/halves"))
      request.deadline = load.loop.kernel.now().advanced(by: .seconds(4))
      await #expect(throws: TransportError.timedOut(.receivingBody)) {
        try await load.pool.cancelledWithTask { slot in
          try await load.pool.exchange(request, with: load.pool.endpoint(for: route), in: slot) {
            exchange throws(TransportError) in
            _ = try await exchange.receiveData { _ in }
            if begun.withLock({
              $0 += 1; return $0
            }) == 6 {
              try? hosts.server.ip("link set cable down")
            }
            _ = try await exchange.collectBody(bytesMax: 100)
          }
        }
      }
    }
    #expect(await load.loop.run { load.pool.counts.connections } == 0)
    proceed.fire()
    try hosts.server.ip("link set cable up")
    try await load.run(60) { _ in await load.fetch("GET", "/bytes/10", from: route) }
    #expect(load.failures == [])
    #expect(load.replies.count == 60)
    #expect(await load.leftovers() == [])
  }

  /// A short outage has no effect: TCP repeats the lost segments.
  @Test func theLinkComesBackInTime() async throws {
    try hosts.keepResolvingAddresses()
    let server = try hosts.start()
    let proceed = TestServer.Signal()
    server.route(
      "GET", "/halves",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .wait(proceed), .send("world"), .serveRoutes,
      ])
    let load = try hosts.load()
    let route = Route(host: "10.9.0.2", port: UInt16(server.port))
    let hosts = hosts
    try await load.run(1) { _ in
      try await load.pool.cancelledWithTask { slot in
        try await load.pool.exchange(
          PoolRequest(request("GET", "/halves")), with: load.pool.endpoint(for: route), in: slot
        ) {
          exchange throws(TransportError) in
          _ = try await exchange.receiveData { _ in }
          do {
            try hosts.server.ip("link set cable down")
            proceed.fire()
            try hosts.server.ip("link set cable up")
          } catch {
            Issue.record(error)
          }
          #expect(try await exchange.collectBody(bytesMax: 100) == Array("world".utf8))
        }
      }
    }
    #expect(await load.leftovers() == [])
  }

  /// An outage does not end idle connections. Requests on them end by their deadlines, and so do the connections.
  @Test func anOutageWhileConnectionsAreIdle() async throws {
    try hosts.keepResolvingAddresses()
    let server = try hosts.start()
    let load = try hosts.load()
    let route = Route(host: "10.9.0.2", port: UInt16(server.port))
    try await load.run(60) { _ in await load.fetch("GET", "/bytes/10", from: route) }
    let kept = await load.loop.run { load.pool.counts.idle }
    #expect(1...6 ~= kept)
    try hosts.server.ip("link set cable down")
    try await load.run(kept, lanes: kept) { _ in
      var request = PoolRequest(request())
      request.deadline = load.loop.kernel.now().advanced(by: .seconds(2))
      await #expect(throws: TransportError.timedOut(.awaitingHead)) {
        try await load.pool.fetch(request, from: route)
      }
    }
    #expect(await load.loop.run { load.pool.counts.connections } == 0)
    try hosts.server.ip("link set cable up")
    try await load.run(60) { _ in await load.fetch("GET", "/bytes/10", from: route) }
    #expect(load.failures == [])
    #expect(load.replies.count == 120)
    #expect(await load.leftovers() == [])
  }
}
