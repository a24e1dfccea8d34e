import LarkspurHTTP
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Synchronization
import TestKit
import Testing

/// A pool and the ways in which real servers end connections.
@Suite(.serialized, .timeLimit(.minutes(5)), .ownThread) struct PoolPeerTests {
  static let small = Array("Hello, world!".utf8)

  func route(_ port: UInt16) -> Route { Route(host: "127.0.0.1", port: port) }

  @Test(arguments: [KeepAliveServer.Kind.nginx, .apache])
  func aLimitOfRequests(kind: KeepAliveServer.Kind) async throws {
    let server = try KeepAliveServer(kind, .init(requestsMax: 10))
    let load = try PoolLoad()
    let route = route(server.port)
    try await load.run(600) { _ in await load.fetch("GET", "/small", from: route) }
    #expect(load.failures == [])
    #expect(load.replies.count == 600)
    #expect(load.replies.allSatisfy { $0.status == 200 && $0.body == Self.small })
    let counts = load.requestsByPort.values
    // Each connection is used up, except the last six.
    #expect(counts.allSatisfy { $0 <= 10 })
    #expect(60...66 ~= counts.count, "\(counts)")
    #expect(await load.leftovers() == [])
  }

  @Test(arguments: [TLSPlan.Version.tls1_2, .tls1_3])
  func aLimitOfRequestsOverTLS(version: TLSPlan.Version) async throws {
    var plan = try TLSPlan(.get(), version)
    try plan.presentLeaf { $0.alternativeNames = TestCertificate.Request().alternativeNames }
    plan.nginxLines = "keepalive_requests 10; add_header X-Port $remote_port-$connection;"
    let server = try NginxServer(plan)
    let load = try PoolLoad()
    let security = Security(try TLSContext(plan.configuration))
    let route = Route(host: "127.0.0.1", port: server.tcpPort, security: security)
    try await load.run(600) { _ in await load.fetch("GET", "/small", from: route) }
    #expect(load.failures == [])
    #expect(load.replies.count { $0.status == 200 && $0.body == Self.small } == 600)
    let counts = load.requestsByPort.values
    #expect(counts.allSatisfy { $0 <= 10 })
    #expect(60...66 ~= counts.count, "\(counts)")
    #expect(await load.leftovers() == [])
  }

  @Test(arguments: KeepAliveServer.Kind.allCases)
  func withoutALimitSixConnectionsDo(kind: KeepAliveServer.Kind) async throws {
    let server = try KeepAliveServer(kind, .init())
    let load = try PoolLoad()
    let route = route(server.port)
    try await load.run(600) { _ in await load.fetch("GET", "/small", from: route) }
    #expect(load.failures == [])
    #expect(load.replies.count == 600)
    #expect(load.requestsByPort.count <= 6)
    #expect(load.requestsByPort.values.reduce(0, +) == 600)
    #expect(await load.leftovers() == [])
  }

  /// If the server closes connections just when requests come, no request is lost. Another server, which answers after
  /// a few milliseconds, sets the pace.
  @Test(arguments: KeepAliveServer.Kind.allCases)
  func anImpatientServer(kind: KeepAliveServer.Kind) async throws {
    let server = try KeepAliveServer(kind, .init(idleMilliseconds: 3))
    let clock = try TestServer()
    let load = try PoolLoad()
    let pace = try PoolLoad()
    let route = route(server.port)
    let clockRoute = self.route(UInt16(clock.port))
    var generator = SeededGenerator(for: "pauses")
    let pauses = (0..<400).map { _ in Int.random(in: 0...5, using: &generator) }
    try await load.run(400) { number in
      await load.fetch("GET", "/small", from: route)
      if number % 2 == 0 {
        _ = await pace.loop.run { await pace.fetch("GET", "/delay/\(pauses[number])", from: clockRoute) }
      }
    }
    #expect(load.failures == [])
    #expect(load.replies.count == 400)
    #expect(load.replies.allSatisfy { $0.status == 200 && $0.body == Self.small })
    // The pool removes closed connections without a request.
    await load.loop.run { await Wait.until("no connection is open") { load.pool.counts.connections == 0 } }
    #expect(await load.leftovers() == [])
    #expect(await pace.leftovers() == [])
  }

  /// Bodies that the server refuses before it has read them, between other requests. The server lingers, so that its
  /// response is not lost.
  @Test func nginxLingers() async throws {
    let server = try KeepAliveServer(.nginx, .init())
    let load = try PoolLoad()
    let route = route(server.port)
    let body = TestServer.content(count: 300_000)
    try await load.run(400) { number in
      if number % 2 == 0 {
        await load.fetch("POST", "/refuse", body: body, from: route)
      } else {
        await load.fetch("GET", "/small", from: route)
      }
    }
    #expect(load.failures == [])
    #expect(load.replies.count { $0.status == 413 } == 200)
    #expect(load.replies.count { $0.status == 200 && $0.body == Self.small } == 200)
    #expect(await load.leftovers() == [])
  }

  /// Each process closes its idle connections when its successor has started, while requests are in progress.
  @Test func haproxyIsReloadedUnderLoad() async throws {
    let server = try TestServer()
    let proxy = try HAProxyServer(before: server.port)
    let load = try PoolLoad()
    let route = route(proxy.port)
    let isReloading = Atomic(true)
    let posted = Mutex<(sent: Set<String>, answered: Set<String>)>(([], []))
    async let requests: Void = load.run(12) { lane in
      var number = 0
      // At least 100 requests run, however fast the reloads are.
      while isReloading.load(ordering: .relaxed) || number < 100 {
        number += 1
        guard number % 4 == 0 else {
          await load.fetch("GET", "/bytes/2000", from: route)
          continue
        }
        let target = "/anything/\(lane)-\(number)"
        posted.withLock { _ = $0.sent.insert(target) }
        if case .success = await load.fetch("POST", target, body: [1, 2, 3], from: route) {
          posted.withLock { _ = $0.answered.insert(target) }
        }
      }
    }
    do {
      // Also if a process does not start: otherwise the requests would continue for ever.
      defer { isReloading.store(false, ordering: .relaxed) }
      for _ in 0..<6 { try proxy.reload() }
    }
    try await requests
    // Only a POST may fail, and then the client cannot know whether the server has received it.
    let (sent, answered) = posted.withLock { $0 }
    #expect(load.failures.count == sent.count - answered.count, "\(load.failures)")
    #expect(load.replies.allSatisfy { $0.status == 200 })
    let received = server.requests.filter { $0.method == "POST" }.map(\.target)
    #expect(Set(received).count == received.count, "a POST was sent twice")
    #expect(answered.isSubset(of: received))
    #expect(Set(received).isSubset(of: sent))
    #expect(server.failures == [])
    #expect(await load.leftovers() == [])
  }

  /// The server resets the connection at each position of its response, on new connections and on used ones.
  @Test(arguments: ["GET", "POST"], [false, true])
  func aResetAtEachPlace(method: String, isUsed: Bool) async throws {
    let server = try TestServer()
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
    let route = route(UInt16(server.port))
    for offset in 0..<answer.utf8.count {
      let first: TestServer.Script = isUsed ? [.expectRequest, .send(answer)] : []
      server.enqueue(first + [.reset(afterSending: offset), .expectRequest, .send(answer)])
      let load = try PoolLoad { $0.limits.perEndpointMax = 1 }
      let before = server.requestsReceived
      try await load.run(1) { _ in
        if isUsed { await load.fetch("GET", "/get", from: route) }
        await load.fetch(method, "/anything", body: method == "POST" ? [1] : [], from: route)
      }
      let failure = load.failures.first
      let requests = server.requestsReceived - before
      #expect(load.replies.allSatisfy { $0.status == 200 })
      if isUsed, offset == 0, method == "GET" {
        // The request was sent again, to the ordinary routes.
        #expect(failure == nil)
        #expect(requests == 3)
      } else {
        #expect(failure != nil, "\(offset)")
        #expect(requests == (isUsed ? 2 : 1), "\(offset)")
      }
      #expect(await load.leftovers() == [])
    }
    #expect(server.failures == [])
  }

  /// The server resets each connection while the request's body is being sent.
  @Test(arguments: ["POST", "PUT"]) func aResetInMidUpload(method: String) async throws {
    let server = try TestServer()
    server.defaultScript = [.expectHead, .expectBytes(count: 10_000), .reset]
    let load = try PoolLoad()
    let route = route(UInt16(server.port))
    let body = TestServer.content(count: 4 << 20)
    try await load.run(100) { _ in await load.fetch(method, "/", body: body, from: route) }
    #expect(load.replies.isEmpty)
    #expect(load.failures.count == 100)
    #expect(load.failures.allSatisfy { if case .connectionLost = $0 { true } else { false } }, "\(Set(load.failures))")
    #expect(server.requestsReceived == 100)
    #expect(server.connectionsAccepted == 100)
    #expect(await load.leftovers() == [])
  }

  /// The literal addresses of the loopback interface, and its name.
  @Test(arguments: [TestServer.Address.ipv4, .ipv6]) func loopback(address: TestServer.Address) async throws {
    var options = TestServer.Options()
    options.address = address
    let server = try TestServer(options)
    let load = try PoolLoad()
    let route = Route(host: address == .ipv4 ? "LocalHost" : "::1", port: UInt16(server.port))
    try await load.run(300) { _ in await load.fetch("GET", "/bytes/10", from: route) }
    #expect(load.failures == [])
    #expect(load.replies.count { $0.status == 200 && $0.body.count == 10 } == 300)
    #expect(server.connectionsAccepted <= 6)
    #expect(await load.leftovers() == [])
  }
}
