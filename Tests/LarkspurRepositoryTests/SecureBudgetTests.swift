import CAllocations
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// The cost that TLS adds to a request: no system calls.
@Suite struct SecureBudgetTests {
  static let versions: [TestServer.TLS.Version] = [.tls1_2, .tls1_3]

  /// Maximum number of allocations per request. Includes OpenSSL's own small ones for each record: 2 with TLS 1.2, 4
  /// with TLS 1.3 (OpenSSL 3.0). The rest is the budget of a request without TLS.
  static let allocationsPerRequestMax: [TestServer.TLS.Version: Int] = [
    .tls1_2: BudgetTests.allocationsPerRequestMax + 2, .tls1_3: BudgetTests.allocationsPerRequestMax + 4,
  ]

  let ca: TestCA
  let security: Security

  init() throws {
    ca = try TestCA()
    var configuration = TLSConfiguration()
    configuration.roots = .only(try #require(Certificate.read(ca.rootCertificateDER)))
    security = Security(try TLSContext(configuration))
  }

  private func server(_ version: TestServer.TLS.Version) throws -> TestServer {
    var tls = TestServer.TLS(certificate: try ca.issue())
    tls.versions = version...version
    return try TestServer(tls: tls)
  }

  @Test(arguments: versions) func systemCallsPerRequest(version: TestServer.TLS.Version) throws {
    let cost = try BudgetTests.measure(over: try server(version), by: security)
    #expect(cost.calls.sends == BudgetTests.requests)
    #expect(cost.calls.receives == BudgetTests.requests)
    #expect(cost.calls.waits == BudgetTests.requests)
    #expect(cost.calls.others == 0)
    // In TLS 1.3 the client's last handshake message leaves with the request. In TLS 1.2 the client first waits for the
    // server's last message.
    #expect(cost.firstSends == (version == .tls1_3 ? 2 : 3))
  }

  /// TLS within TLS adds no system calls either.
  @Test(arguments: versions) func systemCallsThroughASecureProxy(version: TestServer.TLS.Version) throws {
    let server = try server(version)
    let route = ProxyRoute(try Proxy("https://\(server.authority)"), security: security)
    let cost = try BudgetTests.measure(over: server, by: security, via: route)
    #expect(cost.calls.sends == BudgetTests.requests)
    #expect(cost.calls.receives == BudgetTests.requests)
    #expect(cost.calls.waits == BudgetTests.requests)
    #expect(cost.calls.others == 0)
  }

  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc here"), arguments: versions)
  func allocationsPerRequest(version: TestServer.TLS.Version) throws {
    let cost = try BudgetTests.measure(over: try server(version), by: security)
    let allowed = try #require(Self.allocationsPerRequestMax[version])
    #expect(cost.allocations <= UInt64(allowed * BudgetTests.requests))
  }

  /// OpenSSL's record buffers, one for sending and one for receiving, stay with a loop's first eight connections. Other
  /// connections allocate both for each record and free them afterwards.
  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc here"), arguments: versions)
  func recordBuffersOfFewConnectionsStay(version: TestServer.TLS.Version) throws {
    let few = try BudgetTests.measurePool(over: try server(version), by: security, beside: 7)
    let many = try BudgetTests.measurePool(over: try server(version), by: security, beside: 8)
    let requests = UInt64(BudgetTests.requests)
    #expect(many.allocations / requests == few.allocations / requests + 2)
  }

  /// An idle connection holds no chunk, so that a thousand idle connections do not hold a thousand buffers.
  @Test(arguments: versions) func idleConnectionsHoldNoChunk(version: TestServer.TLS.Version) async throws {
    let server = try server(version)
    let loop = try ClientLoop()
    defer { loop.stop() }
    let (security, port) = (security, UInt16(server.port))
    let lent = try await loop.run { () async throws(TransportError) in
      let connection = try await Connection.open(
        to: [.loopback(port: port)], as: "localhost", security: security, on: loop)
      // Without a request, the handshake's last flight leaves at the end of the tick.
      let tick = loop.tickNumber
      await Wait.until("the tick is over") { loop.tickNumber != tick }
      var lent = ["connected": loop.chunkBytesLent]
      let exchange = try await connection.send(request("GET", "/bytes/1000000"))
      lent["busy"] = loop.chunkBytesLent
      try await exchange.discardBody()
      lent["idle"] = loop.chunkBytesLent
      connection.close()
      lent["closed"] = loop.chunkBytesLent
      return lent
    }
    #expect(lent["busy", default: 0] > 0)
    for moment in ["connected", "idle", "closed"] { #expect(lent[moment] == 0, "\(moment)") }
  }
}
