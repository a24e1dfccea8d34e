import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport
import Testing

/// Servers that do not come to the end of a handshake, or go away just behind it.
@Suite struct HandshakeFaultTests {
  enum End: String, CaseIterable, Sendable {
    case close, reset
  }

  /// Cut wherever it may be, also where the handshake is complete for the client and the request meets nobody: each
  /// time the request fails, and the loop is free for the next.
  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3], End.allCases)
  func cutAnywhere(version: TestServer.TLS.Version, end: End) async throws {
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

  /// Whatever flight the server stops before, the deadline ends the wait.
  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3], [1, 2])
  func stalls(version: TestServer.TLS.Version, flight: Int) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    let client = try SecureClient(trusting: ca)
    server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: flight), .hang])
    let outcome = await client.get(from: server, deadline: .seconds(2))
    // In TLS 1.3 the server's second flight is its tickets: for the client the handshake is over before.
    if version == .tls1_3, flight == 2 {
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
      (112, .alert(TLSAlert(number: 112))), (120, .applicationProtocol),
    ] as [(UInt8, TLSError.Problem)])
  func alerts(number: UInt8, problem: TLSError.Problem) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca)
    server.enqueue([.beforeHandshake, .refuseHandshake(alert: number)])
    let outcome = try await SecureClient(trusting: ca).get(from: server)
    #expect(outcome.problem == problem)
    #expect(outcome.reason != nil)
  }

  @Test func aServerWithoutTLS() async throws {
    let ca = try TestCA()
    let server = try TestServer()
    server.enqueue([.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), .close])
    #expect(try await SecureClient(trusting: ca).get(from: server).problem == .notTLS)
  }

  /// The bytes of a handshake one by one.
  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3])
  func byteByByte(version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    server.enqueue([.beforeHandshake, .setSegment(bytes: 1), .handshake, .serveRoutes])
    #expect(try await SecureClient(trusting: ca).get(from: server).status == 200)
  }

  /// After the handshake: what is not HTTP's.
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

  /// What a server chooses has to be among what was offered (RFC 7301 3.2).
  @Test func aProtocolThatWasNotOffered() async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.alpn = .answer("h2") }
    let refused = try await SecureClient(trusting: ca).get(from: server)
    // Newer versions of OpenSSL notice it first, and call it by another name.
    #expect(refused.problem == .applicationProtocol || refused.problem == .protocolViolation)
    let silent = try SecureExchangeTests.server(ca) { $0.alpn = .ignore }
    #expect(try await SecureClient(trusting: ca).get(from: silent).status == 200)
  }
}
