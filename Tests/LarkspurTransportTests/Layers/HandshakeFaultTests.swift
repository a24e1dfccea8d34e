import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport
import Testing

/// Servers that do not finish a handshake, or that go away just after it.
@Suite struct HandshakeFaultTests {
  enum ConnectionEnd: String, CaseIterable, Sendable {
    case close, reset
  }

  /// A handshake that is cut anywhere fails the request, and the loop serves the next one. Cuts include those where the
  /// client has completed the handshake and its request meets no server.
  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3], ConnectionEnd.allCases)
  func cutAnywhere(version: TestServer.TLS.Version, end: ConnectionEnd) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    let client = try SecureClient(trusting: ca) { $0.resumesSessions = false }
    for count in stride(from: 0, through: 1500, by: 3) {
      server.enqueue([
        .beforeHandshake, end == .close ? .close(afterSending: count) : .reset(afterSending: count), .handshake,
        .expectRequest, .close,
      ])
      let outcome = await client.get(from: server)
      #expect(outcome.error != nil, "\(count)")
      if outcome.handshake == nil {
        let isTLS = outcome.problem != nil
        let isLoss = if case .connectionLost? = outcome.error { true } else { false }
        #expect(isTLS || isLoss, "\(count): \(String(describing: outcome.error))")
      }
    }
    #expect(await client.get(from: server).status == 200)
  }

  /// The deadline ends the wait, before whichever flight the server stops.
  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3], [1, 2])
  func stalls(version: TestServer.TLS.Version, flight: Int) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    let client = try SecureClient(trusting: ca)
    server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: flight), .hang])
    // In TLS 1.3 the server's second flight consists of tickets: the client's handshake is complete before.
    let isComplete = version == .tls1_3 && flight == 2
    let outcome = await client.get(from: server, deadline: .seconds(isComplete ? 5 : 1))
    if isComplete {
      #expect(outcome.error == .timedOut(.awaitingHead))
    } else {
      #expect(outcome.problem == .handshakeTimedOut)
    }
    server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: flight), .hang])
    let task = Task { await client.get(from: server) }
    try await server.waitForConnections(2)
    task.cancel()
    #expect(await task.value.error == .cancelled)
  }

  @Test(
    arguments: [
      (40, .noSharedCipher), (70, .protocolVersion), (71, .noSharedCipher), (80, .alert(TLSAlert(number: 80))),
      (112, .alert(TLSAlert(number: 112))), (120, .noSharedProtocol),
    ] as [(UInt8, TLSError.Problem)])
  func alerts(number: UInt8, problem: TLSError.Problem) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca)
    server.enqueue([.beforeHandshake, .refuseHandshake(alert: number)])
    let outcome = try await SecureClient(trusting: ca).get(from: server)
    #expect(outcome.problem == problem)
    #expect(outcome.reason != nil)
  }

  /// Alerts in plain text, before the server has sent anything else.
  @Test(
    arguments: [
      // RFC 5246 7.2: a level is 1 or 2. OpenSSL would otherwise report the alert's own text.
      ([[7, 40]], .protocolViolation), ([[0, 70]], .protocolViolation), ([[3, 120]], .protocolViolation),
      // A warning does not end the handshake; the message after the warning does.
      ([[1, 112], [7, 40]], .protocolViolation), ([[1, 112], [2, 40]], .noSharedCipher), ([[2, 40]], .noSharedCipher),
      ([[2, 200]], .alert(TLSAlert(number: 200))),
    ] as [([[UInt8]], TLSError.Problem)])
  func alertsByHand(alerts: [[UInt8]], problem: TLSError.Problem) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca)
    server.enqueue([.beforeHandshake, .send(alerts.flatMap { [21, 3, 3, 0, 2] + $0 }), .hang])
    #expect(try await SecureClient(trusting: ca).get(from: server).problem == problem)
  }

  /// By default only ECDHE is offered, and errors name the option that offers more.
  @Test(arguments: ["AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"]) func legacyKeyExchange(cipher: String)
    async throws
  {
    let ca = try TestCA()
    var request = TestCertificate.Request()
    request.key = .rsa(2048)
    request.keyUsage = [.digitalSignature, .keyEncipherment]
    var tls = TestServer.TLS(certificate: try ca.issue(request))
    tls.versions = .tls1_2 ... .tls1_2
    (tls.ciphers, tls.dhBits) = (cipher, 2048)
    let server = try TestServer(tls: tls)
    let refused = try await SecureClient(trusting: ca).get(from: server)
    #expect(refused.problem == .noSharedCipher)
    #expect(refused.reason?.contains("dangerouslyAllowsLegacyKeyExchange") == true)
    let client = try SecureClient(trusting: ca) { $0.dangerouslyAllowsLegacyKeyExchange = true }
    #expect(await client.get(from: server).status == 200)
  }

  /// With the option, only groups of acceptable sizes are computed with; others are refused before.
  @Test(
    arguments: [
      (1024, .weakKey), (2048, nil), (4096, nil), (6144, .keyTooLarge), (8192, .keyTooLarge),
    ] as [(Int, TLSError.Problem?)])
  func groups(bits: Int, problem: TLSError.Problem?) async throws {
    let ca = try TestCA()
    var request = TestCertificate.Request()
    request.key = .rsa(2048)
    var tls = TestServer.TLS(certificate: try ca.issue(request))
    tls.versions = .tls1_2 ... .tls1_2
    (tls.ciphers, tls.dhBits) = ("DHE-RSA-AES128-GCM-SHA256", bits)
    let server = try TestServer(tls: tls)
    let outcome = try await SecureClient(trusting: ca) { $0.dangerouslyAllowsLegacyKeyExchange = true }
      .get(from: server)
    #expect(outcome.problem == problem)
    if problem == .keyTooLarge { #expect(outcome.reason?.contains("4096") == true) }
  }

  /// TLS 1.3 has finite-field groups of its own (RFC 8446 4.2.7).
  @Test(
    arguments: [
      ("ffdhe2048", false, .noSharedCipher), ("ffdhe2048", true, nil), ("ffdhe4096", true, nil),
      ("ffdhe6144", true, .noSharedCipher), ("ffdhe8192", true, .noSharedCipher), ("P-384", false, nil),
    ] as [(String, Bool, TLSError.Problem?)])
  func namedGroups(group: String, allowsLegacy: Bool, problem: TLSError.Problem?) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { ($0.versions, $0.groups) = (.tls1_3 ... .tls1_3, group) }
    let client = try SecureClient(trusting: ca) { $0.dangerouslyAllowsLegacyKeyExchange = allowsLegacy }
    #expect(await client.get(from: server).problem == problem)
  }

  @Test func aServerWithoutTLS() async throws {
    let ca = try TestCA()
    let server = try TestServer()
    server.enqueue([.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), .close])
    #expect(try await SecureClient(trusting: ca).get(from: server).problem == .notTLS)
  }

  /// The bytes of a handshake arrive one by one.
  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3])
  func byteByByte(version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    server.enqueue([.beforeHandshake, .setSegment(bytes: 1), .handshake, .serveRoutes])
    #expect(try await SecureClient(trusting: ca).get(from: server).status == 200)
  }

  /// TLS messages after the handshake do not disturb HTTP.
  @Test func messagesOfTLSItself() async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca)
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    let client = try SecureClient(trusting: ca)
    server.enqueue([.expectRequest, .updateKey(isRequested: true, times: 5), .send(response), .close])
    #expect(await client.get(from: server).status == 200)
    server.enqueue([.expectRequest, .sendTickets(200), .send(response), .close])
    #expect(await client.get(from: server).status == 200)
    server.enqueue([.expectRequest, .sendAlert(80), .close])
    #expect(await client.get(from: server).problem == .alert(TLSAlert(number: 80)))
    server.enqueue([.expectRequest, .sendBelowTLS([23, 3, 3, 0x48, 1] + [UInt8](repeating: 0, count: 18_433)), .close])
    #expect(await client.get(from: server).problem == .protocolViolation)
  }

  @Test func renegotiationIsRefused() async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = .tls1_2 ... .tls1_2 }
    server.enqueue([
      .expectRequest, .requestRenegotiation, .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .close,
    ])
    _ = try await SecureClient(trusting: ca).get(from: server)
    #expect(server.handshakes.first?.renegotiations == 0)
  }

  /// The server's choice has to be among the offered protocols (RFC 7301 3.2).
  @Test func aProtocolThatWasNotOffered() async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.alpn = .answer("h2") }
    let refused = try await SecureClient(trusting: ca).get(from: server)
    // Newer versions of OpenSSL detect this first, and report another error.
    #expect(refused.problem == .applicationProtocol || refused.problem == .protocolViolation)
    let silent = try SecureExchangeTests.server(ca) { $0.alpn = .ignore }
    #expect(try await SecureClient(trusting: ca).get(from: silent).status == 200)
  }
}
