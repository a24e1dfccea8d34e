import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport
import Synchronization
import Testing

/// Sessions that are resumed, and sessions that must not be.
@Suite struct ResumptionTests {
  private static let versions: [TestServer.TLS.Version] = [.tls1_2, .tls1_3]

  private func isResumed(_ client: SecureClient, _ server: TestServer, host: String = "localhost") async throws -> Bool
  {
    let outcome = await client.get(from: server, host: host)
    #expect(outcome.error == nil, "\(String(describing: outcome.error))")
    let isResumed = try #require(outcome.handshake).isResumed
    #expect(server.handshakes.last?.isResumed == isResumed)
    return isResumed
  }

  @Test(arguments: versions) func isOffered(version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    let client = try SecureClient(trusting: ca)
    #expect(try await !isResumed(client, server))
    for _ in 0..<5 { #expect(try await isResumed(client, server)) }
    client.security.context.forgetSessions()
    #expect(try await !isResumed(client, server))
  }

  @Test(arguments: versions) func whereItIsSwitchedOff(version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    let client = try SecureClient(trusting: ca) { $0.resumesSessions = false }
    for _ in 0..<3 { #expect(try await !isResumed(client, server)) }
  }

  /// Each configuration, host and path has sessions of its own.
  /// CVE-2021-22890: a session from a proxy is not used for the origin behind it.
  @Test(arguments: versions) func isNotShared(version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    let client = try SecureClient(trusting: ca)
    #expect(try await !isResumed(client, server))
    #expect(try await !isResumed(client, server, host: "127.0.0.1"))
    client.security.path = "proxy"
    #expect(try await !isResumed(client, server))
    #expect(try await !isResumed(try SecureClient(trusting: ca), server))
    client.security.path = ""
    #expect(try await isResumed(client, server))
  }

  /// A server that has lost its sessions makes a full handshake, on the same connection.
  @Test(arguments: versions) func fallsBack(version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) {
      $0.versions = version...version
      $0.hasStatelessTickets = false
      $0.keepsSessions = false
      $0.ticketCount = 1
    }
    let client = try SecureClient(trusting: ca)
    for _ in 0..<3 { #expect(try await !isResumed(client, server)) }
    #expect(server.connectionsAccepted == 3)
  }

  /// A ticket is used once, and only a few of many tickets are kept.
  @Test func ticketsAreUsedOnce() async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.ticketCount = 1000 }
    let client = try SecureClient(trusting: ca)
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    #expect(try await !isResumed(client, server))
    // Connections that end before new tickets arrive take one stored ticket each.
    let resumed = try await loop.run { () async throws(TransportError) in
      var resumed = 0
      for _ in 0..<10 {
        let connection = try await Connection.open(
          to: [.loopback(port: port)], as: "localhost", security: security, on: loop,
          observer: { event, _ in if case .secured(let made) = event, made.isResumed { resumed += 1 } })
        connection.close()
      }
      return resumed
    }
    #expect(1...4 ~= resumed)
  }

  /// Pins apply to resumed sessions: pins belong to the configuration, which has sessions of its own.
  /// CVE-2024-0853: every connection is checked, whatever its handshake omits.
  @Test(arguments: versions) func pinsCountAgain(version: TestServer.TLS.Version) async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca) { $0.versions = version...version }
    let pin = try Certificate.one(try TestCA().certificate).pin
    let reports = Mutex(0)
    let (first, second) = (TestServer.Signal(), TestServer.Signal())
    let client = try SecureClient(trusting: ca) {
      $0.pins = PinPolicy(PinPolicy.Host("localhost", pins: [pin], reportsOnly: true).map { [$0] } ?? [])
    } pinMismatched: { _ in
      let count = reports.withLock { count in
        count += 1
        return count
      }
      (count == 1 ? first : second).fire()
    }
    #expect(try await !isResumed(client, server))
    try await first.wait()
    #expect(try await isResumed(client, server))
    try await second.wait()
  }
}
