import LarkspurTestServer
import TestKit
import Testing

/// Tests the client certificates that `larkspur get` uses.
@Suite struct TLSClientCertificateTests {
  let server: TLSServer
  let identity: TestCertificate
  let directory: TemporaryDirectory

  init() throws {
    server = try TLSServer { $0.clientCertificate = .required }
    var request = TestCertificate.Request(names: [], ipAddresses: [])
    request.commonName = "client"
    identity = try TestCA().intermediate().issue(request)
    directory = server.directory
    try directory.write(identity.chainPEM, to: "client.pem")
    try directory.write(identity.privateKeyPEM, to: "key.pem")
  }

  private func get(_ arguments: String...) async throws -> Command.Result {
    try await server.get(server.trust + arguments)
  }

  private func expectIdentified(_ result: Command.Result, sourceLocation: SourceLocation = #_sourceLocation) {
    server.expectSuccess(result, sourceLocation: sourceLocation)
    #expect(server.server.handshakes.last?.clientCertificateSubject == "CN=client", sourceLocation: sourceLocation)
  }

  /// Expects the error for an unusable file, and no connection.
  private func expectUnusable(
    _ result: Command.Result, _ message: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(result.status == 58, sourceLocation: sourceLocation)
    #expect(result.errors == "larkspur: \(message)\n", sourceLocation: sourceLocation)
    #expect(server.server.connectionsAccepted == 0, sourceLocation: sourceLocation)
  }

  @Test func pairOfFiles() async throws {
    expectIdentified(try await get("--cert", directory.path("client.pem"), "--key", directory.path("key.pem")))
    try directory.write(identity.certificateDER, to: "client.der")
    try directory.write(identity.privateKeyDER, to: "key.der")
    expectIdentified(try await get("--cert", directory.path("client.der"), "--key", directory.path("key.der")))
  }

  @Test(arguments: [false, true]) func oneFile(keyIsFirst: Bool) async throws {
    let parts = [identity.chainPEM, identity.privateKeyPEM]
    try directory.write((keyIsFirst ? parts.reversed() : parts).joined(), to: "both.pem")
    expectIdentified(try await get("--cert", directory.path("both.pem")))
  }

  @Test(arguments: [TestCertificate.KeyEncryption.pkcs8, .traditional])
  func encryptedKey(format: TestCertificate.KeyEncryption) async throws {
    try directory.write(try identity.encryptedPrivateKeyPEM(passphrase: "secret", format), to: "locked.pem")
    let (certificate, key) = (directory.path("client.pem"), directory.path("locked.pem"))
    for wrong in [[], ["--pass", "wrong"], ["--pass="]] {
      expectUnusable(
        try await server.get(server.trust + ["--cert", certificate, "--key", key] + wrong),
        "\(certificate): the password of the client's key is wrong or missing")
    }
    expectIdentified(try await get("--cert", certificate, "--key", key, "--pass", "secret"))
  }

  @Test(arguments: ["secret", "", "pässwörd"]) func archive(password: String) async throws {
    try directory.write(try identity.pkcs12(password: password), to: "client.p12")
    let file = directory.path("client.p12")
    for wrong in password.isEmpty ? [["--pass", "wrong"]] : [[], ["--pass", "wrong"]] {
      expectUnusable(
        try await server.get(server.trust + ["--cert", file] + wrong),
        "\(file): the password of the client's key is wrong or missing")
    }
    expectIdentified(try await get("--cert", file, "--pass", password))
    if password.isEmpty { expectIdentified(try await get("--cert", file)) }
  }

  @Test func unusableFiles() async throws {
    let (certificate, key) = (directory.path("client.pem"), directory.path("key.pem"))
    let missing = directory.path("none")
    let message = "could not read \(missing): No such file or directory (ENOENT)"
    expectUnusable(try await get("--cert", missing, "--key", key), message)
    expectUnusable(try await get("--cert", certificate, "--key", missing), message)
    // The file has no private key.
    expectUnusable(
      try await get("--cert", certificate), "\(certificate): the client certificate or its key cannot be read")
    try directory.write("nonsense", to: "nonsense")
    let nonsense = directory.path("nonsense")
    expectUnusable(try await get("--cert", nonsense), "\(nonsense): the client certificate or its key cannot be read")
    expectUnusable(
      try await get("--cert", certificate, "--key", nonsense),
      "\(certificate): the client certificate or its key cannot be read")
    try directory.write(try TestCA().certificate.privateKeyPEM, to: "other.pem")
    expectUnusable(
      try await get("--cert", certificate, "--key", directory.path("other.pem")),
      "\(certificate): the key is not the client certificate's")
  }

  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3])
  func noneWhereOneIsRequired(version: TestServer.TLS.Version) async throws {
    let server = try TLSServer {
      $0.clientCertificate = .required
      $0.versions = version...version
    }
    let result = try await server.get(server.trust)
    #expect(result.status == 98)
    #expect(
      result.errors.hasPrefix("larkspur: \(server.server.authority): TLS: the server wants a client certificate"))
    #expect(server.server.requestsReceived == 0)
  }

  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3])
  func oneThatIsRefused(version: TestServer.TLS.Version) async throws {
    let root = try TestCA().rootCertificateDER
    let server = try TLSServer {
      $0.clientCertificate = .verified(by: [root])
      $0.versions = version...version
    }
    let result = try await server.get(
      server.trust + ["--cert", directory.path("client.pem"), "--key", directory.path("key.pem")])
    #expect(result.status == 58)
    #expect(
      result.errors.hasPrefix("larkspur: \(server.server.authority): TLS: the server refused the client certificate"))
    #expect(server.server.requestsReceived == 0)
  }
}
