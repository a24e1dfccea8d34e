import CLarkspurOpenSSL
import LarkspurTestServer
import Testing

/// Tests the effect of the server's TLS settings on handshakes.
@Suite struct TLSSettingsTests {
  let ca: TestCA
  let leaf: TestCertificate
  var tls: TestServer.TLS

  init() throws {
    ca = try TestCA()
    leaf = try ca.issue()
    tls = .init(certificate: leaf)
  }

  /// Connects a client to the server.
  private func connect(
    _ server: TestServer, _ change: (inout ClientTLS.Options) -> Void = { _ in }
  ) throws -> RawClient {
    var options = ClientTLS.Options(root: ca.rootCertificateDER)
    change(&options)
    return try RawClient(server, tls: try ClientTLS(options))
  }

  // MARK: Client certificates

  private func clientCertificate(_ name: String, _ ca: TestCA) throws -> TestCertificate {
    var request = TestCertificate.Request(names: [], ipAddresses: [])
    request.commonName = name
    request.organization = "Lärkspur, Ltd"
    return try ca.issue(request)
  }

  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3])
  func clientCertificateThatIsAccepted(version: TestServer.TLS.Version) throws {
    var tls = tls
    tls.versions = version...version
    let me = try clientCertificate("me", try TestCA())
    for mode in [TestServer.TLS.ClientCertificate.asked, .required] {
      tls.clientCertificate = mode
      let server = try TestServer(tls: tls)
      #expect(try connect(server) { $0.certificate = me }.get("/get").status == 200)
      #expect(server.handshakes[0].clientCertificateSubject == "CN=me,O=Lärkspur\\, Ltd")
      #expect(server.handshakes[0].clientCertificateDER == me.certificateDER)
    }
    tls.clientCertificate = .asked
    let server = try TestServer(tls: tls)
    #expect(try connect(server).get("/get").status == 200)
    #expect(server.handshakes[0].clientCertificateSubject == nil)
  }

  @Test func clientCertificateThatIsMissing() async throws {
    var tls = tls
    tls.clientCertificate = .required
    let server = try TestServer(tls: tls)
    // In TLS 1.3 the client's handshake is complete before the server has checked the certificate.
    let client = try connect(server)
    #expect(throws: ClientTLS.Failed.self) { try client.get("/get") }
    client.halfClose()
    try await server.waitForHandshakes(1)
    #expect(throws: ClientTLS.Failed.self) { try connect(server) { $0.versions = .tls1_2 ... .tls1_2 } }
    try await server.waitForHandshakes(2)
    #expect(server.handshakes.map(\.failure).allSatisfy { $0 == "peer did not return a certificate" })
    #expect(server.handshakes.map(\.alertsSent) == [[.init(number: 116)], [.init(number: 40)]])
  }

  @Test func clientCertificateThatIsVerified() async throws {
    let clients = try TestCA(name: "clients")
    var tls = tls
    tls.versions = .tls1_2 ... .tls1_2
    tls.clientCertificate = .verified(by: [clients.rootCertificateDER])
    tls.acceptableIssuersDER = [clients.rootCertificateDER, ca.rootCertificateDER]
    let server = try TestServer(tls: tls)
    let client = try connect(server) { [me = try clientCertificate("me", clients)] in $0.certificate = me }
    #expect(try client.get("/get").status == 200)
    #expect(client.tls?.acceptableIssuerCount == 2)
    #expect(throws: ClientTLS.Failed.self) {
      try connect(server) { [other = try clientCertificate("other", ca)] in $0.certificate = other }
    }
    try await server.waitForHandshakes(2)
    #expect(server.handshakes[1].alertsSent == [.init(number: 48)])
    #expect(server.handshakes[1].failure == "certificate verify failed")
  }

  // MARK: Resumption

  /// Connects twice.
  ///
  /// - Returns: Whether the second connection resumed the session of the first, and the number of tickets that the
  ///   first one received.
  private func resume(_ tls: TestServer.TLS) throws -> (isResumed: Bool, tickets: Int) {
    let server = try TestServer(tls: tls)
    let first = try connect(server)
    #expect(try first.get("/get").status == 200)
    let (session, tickets) = (first.tls?.session, first.tls?.ticketCount ?? 0)
    let second = try connect(server) { $0.session = session }
    #expect(try second.get("/get").status == 200)
    let isResumed = second.tls?.isResumed == true
    #expect(server.handshakes.map(\.isResumed) == [false, isResumed])
    withExtendedLifetime(first) {}
    return (isResumed, tickets)
  }

  @Test(arguments: [0, 1, 2, 5, 1000]) func tickets(count: Int) throws {
    var tls = tls
    tls.ticketCount = count
    for isStateless in [true, false] {
      tls.hasStatelessTickets = isStateless
      let (isResumed, tickets) = try resume(tls)
      #expect(tickets == count)
      #expect(isResumed == (count > 0))
    }
  }

  @Test func resumptionInTLS12() throws {
    var tls = tls
    tls.versions = .tls1_2 ... .tls1_2
    for (hasTickets, keepsSessions) in [(true, true), (true, false), (false, true), (false, false)] {
      tls.hasStatelessTickets = hasTickets
      tls.keepsSessions = keepsSessions
      #expect(try resume(tls).isResumed == (hasTickets || keepsSessions))
    }
  }

  // MARK: Stapling

  @Test func stapledResponse() throws {
    var tls = tls
    let response = try ca.ocspResponse(for: leaf)
    tls.stapledResponse = response
    let server = try TestServer(tls: tls)
    let client = try connect(server) { $0.asksForStaple = true }
    #expect(client.tls?.stapledResponse == response)
    #expect(try connect(server).tls?.stapledResponse == nil)
    _ = try client.get("/get")
    #expect(server.handshakes.first { $0.connection == 1 }?.asksForStaple == true)
  }

  // MARK: ALPN

  @Test func applicationProtocols() async throws {
    let cases: [(TestServer.TLS.ALPN, [String], String?)] = [
      (.choose(["http/1.1"]), ["h2", "http/1.1"], "http/1.1"), (.choose(["http/1.1"]), ["h2"], nil),
      (.choose(["http/1.1"]), [], nil), (.ignore, ["http/1.1"], nil), (.insist(["a", "b"]), ["b", "a"], "a"),
      (.answer("h2"), ["http/1.1"], "h2"), (.answer("h2"), [], nil),
    ]
    for (alpn, offered, chosen) in cases {
      var tls = tls
      tls.alpn = alpn
      // A client may refuse a protocol that it has not offered. The server's record shows the chosen one.
      let server = try TestServer(tls: tls)
      let client = try? connect(server) { $0.alpn = offered }
      _ = try? client?.get("/get")
      try await server.waitForHandshakes(1)
      #expect(server.handshakes[0].alpnOffered == offered)
      #expect(server.handshakes[0].alpnChosen == chosen)
      if let client { #expect(client.tls?.alpn == chosen) }
    }
    var tls = tls
    tls.alpn = .insist(["h2"])
    let server = try TestServer(tls: tls)
    #expect(throws: ClientTLS.Failed.self) { try connect(server) { $0.alpn = ["http/1.1"] } }
    try await server.waitForHandshakes(1)
    #expect(server.handshakes[0].alertsSent == [.init(number: 120)])
  }

  // MARK: Algorithms

  @Test func algorithms() throws {
    var request = TestCertificate.Request()
    request.key = .rsa(1024)
    var tls = TestServer.TLS(certificate: try ca.issue(request))
    tls.versions = .tls1_0 ... .tls1_2
    tls.ciphers = "DHE-RSA-AES128-SHA:AES128-SHA"
    for bits in [512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192] {
      tls.dhBits = bits
      let server = try TestServer(tls: tls)
      if bits < 1024 {
        let error = #expect(throws: ClientTLS.Failed.self) { try connect(server) }
        #expect(error?.reason == "dh key too small")
        continue
      }
      let client = try connect(server)
      #expect(try client.get("/get").status == 200)
      #expect(client.tls?.cipher == "DHE-RSA-AES128-SHA")
    }
    tls.dhBits = nil
    #expect(try connect(try TestServer(tls: tls)).tls?.cipher == "AES128-SHA")
    tls.dhBits = 5
    #expect(throws: TestServer.ListenError.self) { try TestServer(tls: tls) }
  }

  @Test func suitesAndGroups() throws {
    var tls = tls
    tls.cipherSuites = "TLS_CHACHA20_POLY1305_SHA256"
    tls.groups = "P-521"
    tls.signatureAlgorithms = "ECDSA+SHA256"
    let client = try connect(try TestServer(tls: tls)) { $0.groups = "X25519:P-521" }
    #expect(try client.get("/get").status == 200)
    #expect(client.tls?.cipher == "TLS_CHACHA20_POLY1305_SHA256")
  }

  // MARK: Chains

  @Test func chainInAnyOrder() throws {
    let below = try ca.intermediate()
    let leaf = try below.issue()
    let chains: [[[UInt8]]] = [
      leaf.chainDER, [leaf.certificateDER], leaf.chainDER + [leaf.rootDER], leaf.chainDER.reversed(),
      [leaf.certificateDER, leaf.certificateDER, self.leaf.certificateDER] + leaf.chainDER,
    ]
    for chain in chains {
      let server = try TestServer(tls: .init(chainDER: chain, privateKeyDER: leaf.privateKeyDER))
      let client = try? connect(server) { $0.root = nil }
      // In a reversed chain the first certificate does not belong to the key that signs.
      #expect((client == nil) == (chain.first != leaf.certificateDER))
      if let client { #expect(client.tls?.chainDER == chain) }
    }
    let server = try TestServer(tls: .init(chainDER: [], privateKeyDER: []))
    #expect(throws: ClientTLS.Failed.self) { try connect(server) }
  }

  @Test(arguments: [1, 2, 511, 512, 5000]) func recordsOfSomeSize(bytes: Int) throws {
    var tls = tls
    tls.recordBytesMax = bytes
    let client = try connect(try TestServer(tls: tls))
    #expect(try client.get("/bytes/20000").body == TestServer.content(count: 20_000))
  }
}
