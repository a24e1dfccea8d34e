import CLarkspurOpenSSL
import LarkspurIO
import LarkspurTestServer
import TestKit
import Testing

/// Tests servers that misbehave below HTTP.
@Suite(.ownThread) struct TLSFaultTests {
  let server: TestServer
  private let leaf: TestCertificate

  init() throws {
    leaf = try TestCA().issue()
    server = try TestServer(tls: .init(certificate: leaf))
  }

  private func server(_ version: TestServer.TLS.Version, ciphers: String? = nil) throws -> TestServer {
    var tls = TestServer.TLS(certificate: leaf)
    tls.versions = version...version
    if version == .tls1_3 { tls.cipherSuites = ciphers } else { tls.ciphers = ciphers }
    return try TestServer(tls: tls)
  }

  private func connect(_ server: TestServer) throws -> RawClient { try RawClient(server, tls: try ClientTLS()) }

  // MARK: Stalls and cuts

  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3], 1...2)
  func stallBeforeAFlight(version: TestServer.TLS.Version, flight: Int) async throws {
    let server = try server(version)
    let reached = TestServer.Signal()
    server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: flight, reached: reached), .send("x")])
    let client = try RawClient(server)
    let tls = try ClientTLS()
    // Runs on a thread of its own, since the pool of threads is small and the test waits for the signal.
    let thread = try SystemThread(name: "client") { [socket = client.socket, box = Box(tls)] in
      // In TLS 1.3 the client's handshake is complete after one flight of the server; the tickets stall.
      try? box.value.handshake(socket)
      _ = try? box.value.receive(socket)
    }
    try await reached.wait()
    #expect(server.handshakes.isEmpty)
    client.halfClose()
    thread.join()
    #expect(tls.received.joined().isEmpty == (flight == 1))
    try await server.waitForHandshakes(1)
    #expect(server.handshakes[0].failure == "the connection ended")
    #expect(server.handshakes[0].serverName == "localhost")
    #expect(server.failures.isEmpty)
  }

  /// Passes a value from one thread to another.
  private struct Box: @unchecked Sendable {
    let value: ClientTLS
    init(_ value: ClientTLS) { self.value = value }
  }

  @Test func stallBehindAHelloRetryRequest() async throws {
    var settings = TestServer.TLS(certificate: leaf)
    settings.groups = "P-521"
    let server = try TestServer(tls: settings)
    let reached = TestServer.Signal()
    server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: 2, reached: reached)])
    let client = try RawClient(server)
    let tls = try ClientTLS(.init(groups: "X25519:P-521"))
    let thread = try SystemThread(name: "client") { [socket = client.socket, box = Box(tls)] in
      try? box.value.handshake(socket)
    }
    try await reached.wait()
    client.halfClose()
    thread.join()
    #expect(!tls.received.joined().isEmpty)
    #expect(tls.received.joined().count < 200)
  }

  @Test func flightsThatDoNotComeDoNotStall() throws {
    server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: 9), .serveRoutes])
    #expect(try connect(server).get("/get").status == 200)
  }

  @Test func stallEndsWithTheServer() async throws {
    let reached = TestServer.Signal()
    server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: 1, reached: reached)])
    let client = try RawClient(server)
    try ClientTLS().hello(client.socket)
    try await reached.wait()
    server.stop()
    #expect(server.handshakes.map(\.failure) == ["the server was stopped"])
    #expect(server.connectionsClosed == 1)
  }

  @Test func silentClientEndsWithTheServer() async throws {
    let client = try RawClient(server)
    try await server.waitForConnections(1)
    server.stop()
    #expect(server.connectionsClosed == 1)
    withExtendedLifetime(client) {}
  }

  /// Connects to a server that ends the connection early.
  ///
  /// - Returns: The number of ciphertext bytes that the client received, or `nil` if the connection was reset.
  private func ciphertext(_ step: TestServer.Step) throws -> Int? {
    server.enqueue([.beforeHandshake, step, .handshake, .send("hello"), .close])
    let tls = try ClientTLS()
    guard let client = try? RawClient(server, tls: tls) else { return tls.received.joined().count }
    do {
      _ = try client.readToEnd()
    } catch is Errno {
      return nil
    }
    return tls.received.joined().count
  }

  @Test func closeAfterSomeBytes() async throws {
    let all = try #require(try ciphertext(.close(afterSending: 100_000)))
    // Signatures vary in length, but the last count lies inside the close_notify record in any case.
    for count in [0, 1, 5, 100, 500, all - 12] {
      #expect(try ciphertext(.close(afterSending: count)) == count)
    }
    #expect(server.failures.isEmpty)
    // The records of the handshakes show which of them failed.
    try await server.waitForClosedConnections(7)
    let handshakes = server.handshakes.sorted { $0.connection < $1.connection }
    #expect(handshakes.map { $0.failure == nil } == [true, false, false, false, false, false, true])
  }

  @Test func resetAfterSomeBytes() async throws {
    for count in [0, 100] {
      server.enqueue([.beforeHandshake, .reset(afterSending: count), .handshake])
      #expect(throws: Errno.connectionReset) { try connect(server) }
    }
    try await server.waitForClosedConnections(2)
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func stallInABody(transport: Transport) async throws {
    let server = try transport.start()
    let reached = TestServer.Signal()
    server.enqueue([.expectRequest, .stall(afterSending: 50, reached: reached), .respond(.content(count: 1000))])
    let client = try transport.client(server)
    try client.request("GET", "/")
    try await reached.wait()
    client.halfClose()
    _ = try client.readToEnd()
    if let tls = client.tls {
      #expect(tls.received.joined().count >= 50)
      #expect(!tls.hasEnded)
    }
    try await server.waitForClosedConnections(1)
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func segmentsOfOneByte(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue(
      [.beforeHandshake, .setSegment(bytes: 1)] + (transport == .plain ? [] : [.handshake]) + [.serveRoutes])
    #expect(try transport.client(server).get("/bytes/3000").body == TestServer.content(count: 3000))
  }

  // MARK: Below and before TLS

  @Test func plainAnswerToAClientHello() throws {
    server.enqueue([.beforeHandshake, .send("HTTP/1.1 400 Bad Request\r\n\r\n"), .halfClose])
    let error = #expect(throws: ClientTLS.Failed.self) { try connect(server) }
    #expect(error?.reason == "wrong version number" || error?.reason == "http request")
    #expect(server.handshakes.isEmpty)
  }

  @Test func refusedHandshake() async throws {
    for (index, alert) in [UInt8](arrayLiteral: 40, 70, 80, 112).enumerated() {
      server.enqueue([.beforeHandshake, .refuseHandshake(alert: alert), .send("x")])
      #expect(throws: ClientTLS.Failed.self) { try connect(server) }
      // The client may learn of the failure before the server has recorded it.
      try await server.waitForHandshakes(index + 1)
    }
    #expect(server.handshakes.map(\.alertsSent) == [40, 70, 80, 112].map { [.init(number: $0)] })
    #expect(server.failures.isEmpty)
  }

  @Test func proxyThatBecomesTheServer() throws {
    server.enqueue([
      .beforeHandshake, .expectRequest("CONNECT", "localhost:443"),
      .send("HTTP/1.1 200 OK\r\n\r\n"), .handshake, .serveRoutes,
    ])
    let client = try RawClient(server)
    try client.request("CONNECT", "localhost:443")
    #expect(try client.response(hasBody: false).status == 200)
    let tls = try ClientTLS()
    try tls.handshake(client.socket)
    try tls.send(Array("GET /get HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8), client.socket)
    #expect(try tls.receive(client.socket).starts(with: Array("HTTP/1.1 200".utf8)))
    #expect(server.requests.map(\.isSecure) == [false, true])
  }

  @Test func proxyThatSpeaksTLSItself() throws {
    server.enqueue([
      .expectRequest("CONNECT", "localhost:443"), .send("HTTP/1.1 200 OK\r\n\r\n"), .handshake, .serveRoutes,
    ])
    let proxy = try connect(server)
    try proxy.request("CONNECT", "localhost:443")
    #expect(try proxy.response(hasBody: false).status == 200)
    let tls = try ClientTLS()
    try tls.handshake(proxy)
    try tls.send(Array("GET /bytes/100000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8), proxy)
    var answer: [UInt8] = []
    while case let bytes = try tls.receive(proxy), !bytes.isEmpty { answer += bytes }
    #expect(Array(answer.suffix(100_000)) == TestServer.content(count: 100_000))
    #expect(tls.hasEnded)
    #expect(try proxy.readToEnd() == [])
    #expect(proxy.tls?.hasEnded == true)
    #expect(server.handshakes.map(\.connection) == [1, 1])
  }

  @Test func garbageBeneathTLS() throws {
    for bytes: [UInt8] in [[1, 2, 3, 4, 5, 6, 7], [23, 3, 3, 0x48, 1], [23, 3, 3, 0, 5, 1, 2, 3, 4, 5]] {
      server.enqueue([.send("a"), .sendBelowTLS(bytes), .halfClose])
      let client = try connect(server)
      #expect(try client.read(count: 1) == [UInt8(ascii: "a")])
      #expect(throws: ClientTLS.Failed.self) { try client.readToEnd() }
    }
  }

  // MARK: Records and messages

  static let suites: [(TestServer.TLS.Version, String)] = [
    (.tls1_2, "ECDHE-ECDSA-AES128-GCM-SHA256"), (.tls1_2, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (.tls1_2, "ECDHE-ECDSA-CHACHA20-POLY1305"), (.tls1_3, "TLS_AES_128_GCM_SHA256"),
    (.tls1_3, "TLS_AES_256_GCM_SHA384"), (.tls1_3, "TLS_CHACHA20_POLY1305_SHA256"),
  ]

  @Test(arguments: suites) func recordsOfTheScriptsOwn(version: TestServer.TLS.Version, suite: String) async throws {
    let server = try server(version, ciphers: suite)
    server.enqueue(
      [
        .send("one "), .sendRecord(type: 23, Array("two ".utf8)), .sendRecord(type: 23, []), .send("three "),
        .sendContent(0..<50_000), .close,
      ], [.send("x"), .sendAlert(80), .halfClose],
      [.send("x"), .sendRecord(type: 23, [UInt8](repeating: 0, count: 16_385))])
    let client = try connect(server)
    #expect(try client.readToEnd() == Array("one two three ".utf8) + TestServer.content(count: 50_000))
    #expect(client.tls?.hasEnded == true)
    for reason in ["internal error", "data length too long"] {
      let client = try connect(server)
      #expect(try client.read(count: 1) == [UInt8(ascii: "x")])
      let error = #expect(throws: ClientTLS.Failed.self) { try client.readToEnd() }
      #expect(error?.reason.hasSuffix(reason) == true, "\(error?.reason ?? "")")
      client.halfClose()
    }
    #expect(server.failures.isEmpty)
  }

  @Test func warningThatIsNoEnd() throws {
    let server = try server(.tls1_2)
    server.enqueue([.send("a"), .sendAlert(112, isFatal: false), .send("b"), .closeNotify, .halfClose])
    let client = try connect(server)
    #expect(try client.textToEnd() == "ab")
    #expect(client.tls?.hasEnded == true)
  }

  @Test(arguments: [false, true]) func keyUpdates(isRequested: Bool) throws {
    let server = try server(.tls1_3)
    server.enqueue([
      .send("a"), .updateKey(isRequested: isRequested, times: 20), .send("b"), .expectBytes("ping"),
      .updateKey(isRequested: isRequested), .sendRecord(type: 23, [99]), .expectBytes("pong"),
    ])
    let client = try connect(server)
    #expect(try client.read(count: 2) == Array("ab".utf8))
    try client.send("ping")
    #expect(try client.read(count: 1) == Array("c".utf8))
    try client.send("pong")
    #expect(try client.readToEnd() == [])
    #expect(server.failures.isEmpty)
  }

  @Test func moreTickets() throws {
    let server = try server(.tls1_3)
    server.enqueue([.sendTickets(500), .send("a")])
    let client = try connect(server)
    #expect(try client.textToEnd() == "a")
    #expect(client.tls?.ticketCount == 502)
  }

  @Test func renegotiation() async throws {
    let server = try server(.tls1_2)
    server.enqueue([
      .expectRequest, .requestRenegotiation, .respond(.text("one")), .serveRoutes(requests: 1), .send("end"),
    ])
    let client = try connect(server)
    #expect(try client.get("/").text == "one")
    #expect(try client.get("/bytes/20000").body == TestServer.content(count: 20_000))
    #expect(try client.textToEnd() == "end")
    client.halfClose()
    try await server.waitForClosedConnections(1)
    #expect(server.handshakes.map(\.renegotiations) == [1])
    #expect(server.failures.isEmpty)
  }

  @Test func renegotiationThatTheClientRefuses() async throws {
    let server = try server(.tls1_2)
    server.enqueue([.expectRequest, .requestRenegotiation, .respond(.text("one")), .expectClose])
    let client = try connect(server)
    SSL_set_options(client.tls?.ssl, UInt64(1) << 30)
    #expect(try client.get("/").text == "one")
    client.halfClose()
    try await server.waitForClosedConnections(1)
    #expect(server.handshakes[0].alertsReceived == [.init(isFatal: false, number: 100)])
  }

  // MARK: Impossible scripts

  @Test func whatCannotBe() async throws {
    let plain = try TestServer()
    plain.enqueue(
      [.sendTickets(1)], [.handshake], [.send("x"), .beforeHandshake], [.closeNotify, .closeWithoutNotify])
    for _ in 1...4 { _ = try RawClient(plain).readToEnd() }
    try await plain.waitForClosedConnections(4)
    #expect(
      plain.failures == [
        "connection 1, script step 1 (sendTickets(1)): there is no TLS on the connection",
        "connection 2, script step 1 (handshake): the server has been started without TLS",
        "connection 3, script step 2 (beforeHandshake): it is to be the first step of a connection's script",
      ])
    let old = try server(.tls1_2, ciphers: "ECDHE-ECDSA-AES128-SHA")
    old.enqueue([.updateKey()], [.sendAlert(80)], [.close, .sendAlert(80)])
    for _ in 1...3 { _ = try connect(old).readToEnd() }
    try await old.waitForClosedConnections(3)
    #expect(
      old.failures == [
        "connection 1, script step 1 (updateKey): wrong ssl version",
        "connection 2, script step 1 (sendAlert(80)): such records can be made with AES-GCM and ChaCha20-Poly1305 only",
        "connection 3, script step 2 (sendAlert(80)): the script has closed the connection already",
      ])
  }
}
