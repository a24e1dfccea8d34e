import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport
import Synchronization
import Testing

/// Servers that ask for a client certificate.
@Suite struct ClientCertificateTests {
  private static let versions: [TestServer.TLS.Version] = [.tls1_2, .tls1_3]
  let ca: TestCA
  let identity: ClientIdentity

  init() throws {
    ca = try TestCA()
    var request = TestCertificate.Request(names: [], ipAddresses: [])
    request.commonName = "client"
    let made = try ca.intermediate().issue(request)
    identity = try ClientIdentity(certificates: Array(made.chainPEM.utf8), key: Array(made.privateKeyPEM.utf8))
  }

  private func server(
    _ version: TestServer.TLS.Version, _ policy: TestServer.TLS.ClientCertificate
  ) throws -> TestServer {
    try SecureExchangeTests.server(ca) {
      $0.versions = version...version
      $0.clientCertificate = policy
      $0.acceptableIssuersDER = [ca.rootCertificateDER]
    }
  }

  @Test(arguments: versions) func byConfiguration(version: TestServer.TLS.Version) async throws {
    let server = try server(version, .verified(by: [ca.rootCertificateDER]))
    let client = try SecureClient(trusting: ca) { $0.identity = identity }
    #expect(await client.get(from: server).status == 200)
    #expect(server.handshakes.first?.clientCertificateSubject == "CN=client")
  }

  @Test(arguments: versions) func onDemand(version: TestServer.TLS.Version) async throws {
    let server = try server(version, .required)
    let client = try SecureClient(trusting: ca)
    let issuers = Mutex<[DistinguishedName]>([])
    client.security.provideIdentity = { [identity] names in
      issuers.withLock { $0 = names }
      return identity
    }
    #expect(await client.get(from: server).status == 200)
    let names = issuers.withLock { $0 }
    #expect(names.map(\.text) == ["CN=Larkspur test root"])
    // SEQUENCE { SET { SEQUENCE { OBJECT IDENTIFIER 2.5.4.3, text } } }.
    #expect(names.first?.der.starts(with: [0x30, 0x1d, 0x31, 0x1b, 0x30, 0x19, 6, 3, 0x55, 4, 3]) == true)
    #expect(names.first?.der.suffix(18) == Array("Larkspur test root".utf8)[...])
    #expect(server.handshakes.first?.clientCertificateSubject == "CN=client")
  }

  /// CVE-2016-5419: a session with a client certificate is not resumed for a request without that identity.
  @Test(arguments: versions) func aSessionThatKnowsTheClient(version: TestServer.TLS.Version) async throws {
    let server = try server(version, .asked)
    let client = try SecureClient(trusting: ca)
    client.security.provideIdentity = { [identity] _ in identity }
    #expect(await client.get(from: server).status == 200)
    #expect(server.handshakes.last?.clientCertificateSubject == "CN=client")
    client.security.provideIdentity = { _ in nil }
    let outcome = await client.get(from: server)
    #expect(outcome.status == 200 && outcome.handshake?.isResumed == false)
    #expect(server.handshakes.count == 2 && server.handshakes.last?.clientCertificateSubject == nil)
  }

  @Test(arguments: versions) func withoutOne(version: TestServer.TLS.Version) async throws {
    let asking = try server(version, .asked)
    #expect(try await SecureClient(trusting: ca).get(from: asking).status == 200)
    let requiring = try server(version, .required)
    #expect(try await SecureClient(trusting: ca).get(from: requiring).problem == .clientCertificateRequired)
    let client = try SecureClient(trusting: ca)
    client.security.provideIdentity = { _ in nil }
    #expect(await client.get(from: requiring).problem == .clientCertificateRequired)
  }

  @Test(arguments: versions) func oneThatIsRefused(version: TestServer.TLS.Version) async throws {
    let server = try server(version, .verified(by: [try TestCA().rootCertificateDER]))
    let client = try SecureClient(trusting: ca) { $0.identity = identity }
    #expect(await client.get(from: server).problem == .clientCertificateRefused)
  }

  @Test func noAnswerInTime() async throws {
    let server = try server(.tls1_3, .required)
    let client = try SecureClient(trusting: ca)
    client.security.provideIdentity = { _ in
      // The signal is never fired: only the cancellation ends the wait.
      try? await TestServer.Signal().wait()
      return nil
    }
    #expect(await client.get(from: server, deadline: .seconds(2)).problem == .handshakeTimedOut)
  }
}
