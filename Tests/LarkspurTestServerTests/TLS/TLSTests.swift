import LarkspurTestServer
import TestKit
import Testing

/// Tests a server with TLS that behaves well.
@Suite(.ownThread) struct TLSTests {
  let ca: TestCA
  let leaf: TestCertificate

  init() throws {
    ca = try TestCA()
    leaf = try ca.issue()
  }

  func client(_ server: TestServer, _ change: (inout ClientTLS.Options) -> Void = { _ in }) throws -> RawClient {
    var options = ClientTLS.Options(root: ca.rootCertificateDER)
    change(&options)
    return try RawClient(server, tls: try ClientTLS(options))
  }

  @Test func answersOverTLS() async throws {
    let server = try TestServer(tls: .init(certificate: leaf))
    #expect(server.url("/get") == "https://127.0.0.1:\(server.port)/get")
    #expect(server.url("/get", host: "localhost") == "https://localhost:\(server.port)/get")
    let client = try client(server)
    #expect(try client.get("/bytes/100000").body == TestServer.content(count: 100_000))
    #expect(try client.get("/redirect/1?absolute=1").field("Location") == "https://test/get")
    #expect(server.requests.map(\.url) == ["https://test/bytes/100000", "https://test/redirect/1?absolute=1"])
    try client.tls?.close(client.socket)
    client.halfClose()
    try await server.waitForClosedConnections(1)
    let handshake = try #require(server.handshakes.first)
    #expect(server.handshakes.count == 1)
    #expect(handshake.connection == 1)
    #expect(handshake.failure == nil)
    #expect(handshake.serverName == "localhost")
    #expect(handshake.version == "TLSv1.3")
    #expect(handshake.cipher == "TLS_AES_256_GCM_SHA384")
    #expect(!handshake.isResumed)
    #expect(handshake.alpnOffered == [])
    #expect(handshake.ciphersOffered.contains(0x1301))
    #expect(handshake.extensionsOffered.contains(43))
    #expect(handshake.alertsReceived == [.init(isFatal: false, number: 0)])
    #expect(handshake.alertsSent == [.init(isFatal: false, number: 0)])
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: TestServer.TLS.Version.allCases)
  func versions(version: TestServer.TLS.Version) throws {
    var tls = TestServer.TLS(certificate: leaf)
    tls.versions = version...version
    let server = try TestServer(tls: tls)
    let client = try client(server)
    #expect(try client.get("/get").status == 200)
    let names: [TestServer.TLS.Version: String] = [
      .tls1_0: "TLSv1", .tls1_1: "TLSv1.1", .tls1_2: "TLSv1.2", .tls1_3: "TLSv1.3",
    ]
    #expect(client.tls?.version == names[version])
    #expect(server.handshakes.map(\.version) == [names[version]])
  }

  @Test(arguments: [TestCertificate.KeyKind.rsa(2048), .ecP384, .ecP521, .ed25519])
  func keys(kind: TestCertificate.KeyKind) throws {
    var request = TestCertificate.Request()
    request.key = kind
    let server = try TestServer(tls: .init(certificate: try ca.issue(request)))
    #expect(try client(server).get("/get").status == 200)
  }

  @Test func endsAreSentByTLSThenByTCP() throws {
    let server = try TestServer(tls: .init(certificate: leaf))
    server.enqueue(
      [.send("a"), .close], [.send("b"), .closeWithoutNotify], [.send("c"), .closeNotify, .closeWithoutNotify],
      [.send("d"), .halfClose, .expectBytes("e")], [.send("f"), .reset])
    for (text, isNotified) in [("a", true), ("b", false), ("c", true), ("d", true)] {
      let client = try client(server)
      #expect(try client.textToEnd() == text)
      #expect(client.tls?.hasEnded == isNotified)
      if text == "d" { try client.send("e") }
    }
    let last = try client(server)
    #expect(throws: (any Error).self) { try last.readToEnd() }
    #expect(server.failures.isEmpty)
  }

  @Test func sendingAfterCloseNotifyIsAMistake() async throws {
    let server = try TestServer(tls: .init(certificate: leaf))
    server.enqueue([.closeNotify, .send("x")])
    let client = try client(server)
    #expect(try client.textToEnd() == "")
    try await server.waitForClosedConnections(1)
    #expect(
      server.failures == ["connection 1, script step 2 (send): the script has closed the connection already"])
  }

  @Test func clientThatDoesNotTrust() async throws {
    let other = try TestCA()
    let server = try TestServer(tls: .init(certificate: leaf))
    #expect(throws: ClientTLS.Failed.self) { try client(server) { $0.root = other.rootCertificateDER } }
    try await server.waitForHandshakes(1)
    #expect(server.handshakes[0].failure == "the client sent alert 48 unknown_ca")
    #expect(server.handshakes[0].alertsReceived == [.init(number: 48)])
    #expect(server.failures.isEmpty)
  }

  @Test func clientsThatDoNotSpeakTLS() async throws {
    let server = try TestServer(tls: .init(certificate: leaf))
    let plain = try RawClient(server)
    try plain.request("GET", "/")
    plain.halfClose()
    let silent = try RawClient(server)
    silent.halfClose()
    // OpenSSL sends no alert to a client that speaks HTTP.
    #expect(try plain.readToEnd() == [])
    #expect(try silent.readToEnd() == [])
    try await server.waitForHandshakes(2)
    #expect(Set(server.handshakes.map(\.failure)) == ["http request", "the connection ended"])
  }

  @Test func wrongPrivateKey() async throws {
    for kind in [TestCertificate.KeyKind.ecP256, .rsa(2048)] {
      var request = TestCertificate.Request()
      request.key = kind
      var tls = TestServer.TLS(certificate: try ca.issue(request))
      tls.privateKeyDER = try ca.issue(request).privateKeyDER
      let server = try TestServer(tls: tls)
      #expect(throws: ClientTLS.Failed.self) { try client(server) }
      try await server.waitForHandshakes(1)
      #expect(server.handshakes[0].failure == "the client sent alert 51 decrypt_error")
    }
  }

  @Test func settingsThatMakeNoSense() throws {
    var tls = TestServer.TLS(certificate: leaf)
    tls.ciphers = "nonsense"
    let error = #expect(throws: TestServer.ListenError.self) { try TestServer(tls: tls) }
    #expect(error?.description == "TLS cannot be set up: ciphers: no cipher match")
    tls = .init(chainDER: [[1, 2, 3]], privateKeyDER: leaf.privateKeyDER)
    #expect(throws: TestServer.ListenError.self) { try TestServer(tls: tls) }
    tls = .init(chainDER: leaf.chainDER, privateKeyDER: try TestCA(.ed25519).certificate.privateKeyDER)
    let other = #expect(throws: TestServer.ListenError.self) { try TestServer(tls: tls) }
    #expect(other?.description == "TLS cannot be set up: certificates and key: key type mismatch")
  }
}
