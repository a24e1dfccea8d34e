import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Synchronization
import TestKit
import Testing

/// Proxies over real sockets, with TLS in the tunnel and around it. The server plays the proxy and the server
/// behind it.
@Suite struct ProxyServerTests {
  typealias Script = TestServer.Script

  let ca: TestCA
  let client: SecureClient

  init() throws {
    ca = try TestCA()
    client = try SecureClient(trusting: ca)
  }

  static let connect = TestServer.Step.expectRequest("CONNECT", "localhost:443")
  static let established = TestServer.Step.send("HTTP/1.1 200 Connection established\r\n\r\n")

  static func challenge(_ fields: String, body: String = "") -> TestServer.Step {
    .send("HTTP/1.1 407 Proxy Authentication Required\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
  }

  /// Starts a proxy that is also the server behind it. Its script decides whether TLS comes before CONNECT.
  func proxy(_ change: (inout TestServer.TLS) -> Void = { _ in }) throws -> TestServer {
    try SecureExchangeTests.server(ca, change)
  }

  func script(isSecure: Bool, _ steps: [TestServer.Step]) -> Script {
    Script((isSecure ? [] : [.beforeHandshake]) + steps + [.handshake, .serveRoutes])
  }

  func route(
    _ proxy: TestServer, isSecure: Bool, login: String = "",
    authorize: (@Sendable (ProxyChallenge) async -> String?)? = nil
  ) throws -> ProxyRoute {
    var route = ProxyRoute(
      try Proxy("\(isSecure ? "https" : "http")://\(login)localhost:\(proxy.port)"), security: client.security)
    if let authorize { route.makeAuthorizer = { AskingAuthorizer(authorize) } }
    return route
  }

  /// Uploads and downloads `count` bytes in two requests.
  ///
  /// - Returns: The downloaded bytes.
  func transfer(
    _ count: Int = 100, via route: ProxyRoute, deadline: Duration = .seconds(600)
  ) async -> Result<[UInt8], TransportError> {
    let (loop, security) = (client.loop, client.security)
    return await loop.run {
      do throws(TransportError) {
        let until = loop.kernel.now().advanced(by: deadline)
        let connection = try await Connection.open(
          host: "localhost", port: 443, security: security, via: route, on: loop, deadline: until)
        defer { connection.close() }
        let upload = TestServer.content(0..<count)
        let posted = try await connection.send(request("POST", "/post", body: count), body: upload, deadline: until)
        try await posted.discardBody()
        let exchange = try await connection.send(request("GET", "/bytes/\(count)"), deadline: until)
        return .success(try await exchange.collectBody(bytesMax: 2_000_000))
      } catch {
        return .failure(error)
      }
    }
  }

  // MARK: - Tunnels

  /// TLS in the tunnel, and with an `https` proxy TLS within TLS, with several sizes of bodies and records in both
  /// directions.
  @Test(
    arguments: [false, true], [(TestServer.TLS.Version.tls1_2, 16_384), (.tls1_3, 16_384), (.tls1_3, 1)])
  func bodies(isSecure: Bool, of form: (version: TestServer.TLS.Version, recordBytes: Int)) async throws {
    let proxy = try proxy {
      $0.versions = form.version...form.version
      $0.recordBytesMax = form.recordBytes
    }
    for count in form.recordBytes == 1 ? [0, 1, 3000] : [0, 1, 16_383, 16_385, 1_000_000] {
      proxy.enqueue(script(isSecure: isSecure, [Self.connect, Self.established]))
      let body = try await transfer(count, via: route(proxy, isSecure: isSecure)).get()
      #expect(body == TestServer.content(0..<count))
      let upload = proxy.requests.last { $0.method == "POST" }?.body
      #expect(upload == TestServer.content(0..<count))
    }
    #expect(proxy.failures == [])
    let loop = client.loop
    #expect(await loop.run { loop.chunkBytesLent } == 0)
  }

  /// An orderly end sends close_notify through both layers. The server does not read further on the outer layer
  /// after that.
  @Test func closeNotify() async throws {
    let proxy = try proxy()
    proxy.enqueue(script(isSecure: true, [Self.connect, Self.established]))
    _ = try await transfer(via: route(proxy, isSecure: true)).get()
    try await proxy.waitForClosedConnections(1)
    #expect(proxy.handshakes.count == 2)
    #expect(proxy.handshakes.last?.alertsReceived.map(\.number) == [0])
  }

  /// With small send buffers and segments, the layers wait for each other and for the kernel.
  @Test func aNarrowWay() async throws {
    let proxy = try proxy()
    proxy.enqueue(
      Script([
        .setSegment(bytes: 700), Self.connect, .setSendBuffer(bytes: 4096), Self.established, .handshake, .serveRoutes,
      ]))
    let body = try await transfer(1_000_000, via: route(proxy, isSecure: true)).get()
    #expect(body == TestServer.content(0..<1_000_000))
  }

  /// Key updates and tickets of the outer layer are handled while the inner layer starts and while it transfers data.
  @Test func keysAndTicketsOfTheOuterLayer() async throws {
    let proxy = try proxy { $0.versions = .tls1_3 ... .tls1_3 }
    proxy.enqueue(
      script(
        isSecure: true,
        [
          Self.connect, .updateKey(isRequested: true, times: 3), .sendTickets(3), Self.established,
          .updateKey(isRequested: true, times: 3), .sendTickets(3),
        ]))
    let body = try await transfer(100_000, via: route(proxy, isSecure: true)).get()
    #expect(body == TestServer.content(0..<100_000))
  }

  /// After a thousand key updates of the inner layer, with nothing else to send, each answer is sent at once.
  @Test func keysOfTheInnerLayer() async throws {
    let proxy = try proxy { $0.versions = .tls1_3 ... .tls1_3 }
    proxy.enqueue([
      Self.connect, Self.established, .handshake, .expectRequest, .updateKey(isRequested: true, times: 1000),
      .serveRoutes,
    ])
    let (loop, security, route) = (client.loop, client.security, try route(proxy, isSecure: true))
    let error = await loop.run { () async -> TransportError? in
      do throws(TransportError) {
        let connection = try await Connection.open(
          host: "localhost", port: 443, security: security, via: route, on: loop)
        defer { connection.close() }
        // The script does not answer the request: only TLS's own messages arrive.
        _ = try await connection.send(request(), deadline: loop.kernel.now().advanced(by: .seconds(2)))
        return nil
      } catch {
        return error
      }
    }
    #expect(error == .timedOut(.awaitingHead))
  }

  /// A body that is in the kernel as a whole before the client reads is delivered: bytes that one TLS layer still holds
  /// do not wait for another readiness event.
  @Test(arguments: Array(stride(from: 8_000, through: 200_000, by: 8_000))) func bodiesThatAreThere(count: Int)
    async throws
  {
    let proxy = try proxy()
    let isThere = TestServer.Signal()
    proxy.enqueue([
      Self.connect, Self.established, .handshake, .expectRequest,
      .send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n"), .sendContent(0..<count), .fire(isThere), .hang,
    ])
    let (loop, security, route) = (client.loop, client.security, try route(proxy, isSecure: true))
    let body = try await loop.run { () async throws in
      let connection = try await Connection.open(
        host: "localhost", port: 443, security: security, via: route, on: loop)
      defer { connection.close() }
      let exchange = try await connection.send(request(), deadline: loop.kernel.now().advanced(by: .seconds(600)))
      try await isThere.wait()
      return try await exchange.collectBody(bytesMax: count)
    }
    #expect(body == TestServer.content(0..<count))
  }

  /// A connection that waits for its next request holds no memory of the loop in either layer.
  @Test func idleConnectionsHoldNoChunk() async throws {
    let proxy = try proxy()
    proxy.enqueue(script(isSecure: true, [Self.connect, Self.established]))
    let (loop, security, route) = (client.loop, client.security, try route(proxy, isSecure: true))
    let lent = try await loop.run { () async throws(TransportError) in
      let connection = try await Connection.open(
        host: "localhost", port: 443, security: security, via: route, on: loop)
      defer { connection.close() }
      // Without a request, the handshake's last flight leaves at the end of the tick.
      let tick = loop.tickNumber
      await Wait.until("the tick is over") { loop.tickNumber != tick }
      var lent = [loop.chunkBytesLent]
      try await connection.send(request("GET", "/bytes/100000")).discardBody()
      lent.append(loop.chunkBytesLent)
      return lent
    }
    #expect(lent == [0, 0])
  }

  /// Sessions of one path are not resumed on another path, even to the same server.
  @Test func sessionsAreOfTheirPath() async throws {
    let proxy = try proxy()
    for host in ["localhost", "localhost", "127.0.0.1", "localhost"] {
      proxy.enqueue(script(isSecure: false, [Self.connect, Self.established]))
      let route = ProxyRoute(try Proxy("http://\(host):\(proxy.port)"))
      _ = try await transfer(via: route).get()
    }
    #expect(proxy.handshakes.map(\.isResumed) == [false, true, false, true])
  }

  @Test(arguments: [false, true]) func theEndInTheHandshake(isSecure: Bool) async throws {
    let proxy = try proxy()
    proxy.enqueue(
      Script((isSecure ? [] : [.beforeHandshake]) + [Self.connect, Self.established, .expectBytes(count: 100), .close]))
    let outcome = await transfer(via: try route(proxy, isSecure: isSecure))
    let problem: TLSError.Problem? = if case .failure(.tls(let error)) = outcome { error.problem } else { nil }
    #expect(problem == .connectionLost, "\(outcome)")
  }

  /// CVE-2021-28363: the certificate of a proxy has to be valid for that proxy, too.
  @Test func aProxyThatIsNotTrusted() async throws {
    let elsewhere = TestCertificate.Request(names: ["elsewhere.example"], ipAddresses: [])
    for (leaf, expected) in try [
      (TestCA().issue(), TLSError.Problem.untrustedRoot), (ca.issue(elsewhere), .wrongHost),
    ] {
      let proxy = try TestServer(tls: TestServer.TLS(certificate: leaf))
      let outcome = await transfer(via: try route(proxy, isSecure: true))
      guard case .failure(.proxy(let error)) = outcome, case .transport(.tls(let problem)) = error.failure else {
        Issue.record("\(outcome)")
        return
      }
      #expect(problem.problem == expected)
      #expect(proxy.requestsReceived == 0)
    }
  }

  @Test func socks() async throws {
    let proxy = try proxy()
    proxy.enqueue([
      .beforeHandshake, .expectBytes([5, 1, 0]), .send([5, 0]),
      .expectBytes([5, 1, 0, 3, 9] + Array("localhost".utf8) + [1, 187]), .send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
      .handshake, .serveRoutes,
    ])
    let route = ProxyRoute(try Proxy("socks5h://\(proxy.authority)"))
    #expect(try await transfer(via: route).get() == TestServer.content(0..<100))
    #expect(proxy.handshakes.first?.serverName == "localhost")
  }

  // MARK: - Authentication

  private func authorizations(_ proxy: TestServer) -> [String?] {
    proxy.requests.map { $0.fields["Proxy-Authorization"] }
  }

  /// CVE-2023-32681: credentials for the proxy are not sent to the server behind its tunnel.
  @Test(arguments: [false, true]) func credentialsAreSentUnasked(isSecure: Bool) async throws {
    let proxy = try proxy()
    proxy.enqueue(script(isSecure: isSecure, [Self.connect, Self.established]))
    _ = try await transfer(via: route(proxy, isSecure: isSecure, login: "me:pw@")).get()
    // The credentials are sent to the proxy only.
    #expect(authorizations(proxy) == ["Basic bWU6cHc=", nil, nil])
  }

  /// A challenge is answered on the same connection if its body can be drained, and on a new one otherwise.
  @Test(arguments: [("", "", 1), ("", "denied", 1), ("Connection: close\r\n", "denied", 2)])
  func aChallenge(fields: String, body: String, connections: Int) async throws {
    let proxy = try proxy()
    let challenge = Self.challenge(
      "Proxy-Authenticate: Digest realm=\"a\", nonce=\"n\"\r\nproxy-authenticate: Basic realm=\"b\"\r\n\(fields)",
      body: body)
    if connections == 1 {
      proxy.enqueue(script(isSecure: false, [Self.connect, challenge, Self.connect, Self.established]))
    } else {
      proxy.enqueue(
        [.beforeHandshake, Self.connect, challenge, .close],
        script(isSecure: false, [Self.connect, Self.established]))
    }
    let asked = Mutex<[ProxyChallenge]>([])
    let route = try route(proxy, isSecure: false) { challenge in
      asked.withLock { $0.append(challenge) }
      return "Digest x"
    }
    _ = try await transfer(via: route).get()
    #expect(authorizations(proxy) == [nil, "Digest x", nil, nil])
    let challenges = asked.withLock { $0 }
    #expect(challenges.map(\.values) == [["Digest realm=\"a\", nonce=\"n\"", "Basic realm=\"b\""]])
    #expect(challenges.first?.request.proxy == route.proxy)
    #expect(challenges.map { $0.request.method + " " + $0.request.target } == ["CONNECT localhost:443"])
    #expect(proxy.connectionsAccepted == connections)
  }

  /// The limit on drained bytes, and one byte past it.
  @Test(arguments: [0, 1], [true, false]) func drains(excess: Int, isChunked: Bool) async throws {
    let count = TunnelMachine.drainBytesMax + excess
    let challenge: [TestServer.Step] = [
      .send(
        "HTTP/1.1 407 X\r\n" + (isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(count)") + "\r\n\r\n"),
      .send(isChunked ? String(count, radix: 16) + "\r\n" : ""), .sendContent(0..<count),
      .send(isChunked ? "\r\n0\r\n\r\n" : ""),
    ]
    let proxy = try proxy()
    if excess == 0 {
      proxy.enqueue(script(isSecure: false, [Self.connect] + challenge + [Self.connect, Self.established]))
    } else {
      proxy.enqueue(
        Script([.beforeHandshake, Self.connect] + challenge + [.hang]),
        script(isSecure: false, [Self.connect, Self.established]))
    }
    _ = try await transfer(via: route(proxy, isSecure: false) { _ in "x" }).get()
    #expect(proxy.connectionsAccepted == 1 + excess)
  }

  /// The client does not wait for a challenge's body that does not arrive.
  @Test(arguments: ["", "x"]) func aBodyThatDoesNotCome(start: String) async throws {
    let proxy = try proxy()
    proxy.enqueue(
      [.beforeHandshake, Self.connect, .send("HTTP/1.1 407 X\r\nContent-Length: 9\r\n\r\n\(start)"), .hang],
      script(isSecure: false, [Self.connect, Self.established]))
    _ = try await transfer(via: route(proxy, isSecure: false) { _ in "x" }).get()
    #expect(authorizations(proxy) == [nil, "x", nil, nil])
  }

  /// The proxy may close the connection while the authorizer works.
  @Test func anIdleConnectionThatIsClosed() async throws {
    let proxy = try proxy()
    proxy.enqueue(
      [.beforeHandshake, Self.connect, Self.challenge(""), .close],
      script(isSecure: false, [Self.connect, Self.established]))
    let route = try route(proxy, isSecure: false) { _ in
      try? await proxy.waitForClosedConnections(1)
      return "x"
    }
    _ = try await transfer(via: route).get()
    #expect(authorizations(proxy) == [nil, "x", nil, nil])
  }

  @Test func endlessChallenges() async throws {
    let proxy = try TestServer()
    proxy.enqueue([.repeat([Self.connect, Self.challenge("")])])
    let outcome = await transfer(via: try route(proxy, isSecure: false) { _ in "x" })
    guard case .failure(.proxy(let error)) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(error.failure == .tunnel(.tooManyChallenges(limit: TunnelMachine.requestsMax)))
    #expect(proxy.requestsReceived == TunnelMachine.requestsMax)
  }

  @Test func theHookIsTakenBack() async throws {
    let proxy = try TestServer()
    proxy.enqueue([Self.connect, Self.challenge(""), .hang])
    let route = try route(proxy, isSecure: false) { _ in
      // The signal is never fired: only the cancellation ends the wait.
      try? await TestServer.Signal().wait()
      return "x"
    }
    let outcome = await transfer(via: route, deadline: .seconds(2))
    guard case .failure(.timedOut(.tunnelling, _)) = outcome else {
      Issue.record("\(outcome)")
      return
    }
  }

  /// An invalid value from the authorizer is not sent.
  @Test func anAuthorizationThatCannotBe() async throws {
    let proxy = try TestServer()
    proxy.enqueue([Self.connect, Self.challenge(""), .expectClose])
    let outcome = await transfer(via: try route(proxy, isSecure: false) { _ in "x\r\nEvil: y" })
    guard case .failure(.proxy(let error)) = outcome, case .tunnel(.requestInvalid) = error.failure else {
      Issue.record("\(outcome)")
      return
    }
    #expect(proxy.requestsReceived == 1)
  }
}
