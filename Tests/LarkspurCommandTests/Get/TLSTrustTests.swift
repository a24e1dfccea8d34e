import LarkspurTestServer
import TestKit
import Testing

/// Tests which servers `larkspur get` trusts.
@Suite struct TLSTrustTests {
  // MARK: - Roots

  @Test func rootsOfAFile() async throws {
    let server = try TLSServer()
    server.expectSuccess(try await server.get(server.trust))
    try server.directory.write(server.ca.rootCertificateDER, to: "root.der")
    server.expectSuccess(try await server.get(["--cacert", server.directory.path("root.der")]))
    // The file has several roots with comments around them.
    let roots = "# theirs\n" + (try TestCA().rootCertificatePEM) + "# ours\n" + server.ca.rootCertificatePEM
    try server.directory.write(roots, to: "roots.pem")
    server.expectSuccess(try await server.get(["--cacert=" + server.directory.path("roots.pem")]))
    #expect(server.server.requests.last?.fields["Host"] == server.server.authority)
  }

  @Test func rootsOfTheEnvironment() async throws {
    let server = try TLSServer()
    let file = server.directory.path("root.pem")
    server.expectSuccess(try await server.get([], environment: ["SSL_CERT_FILE": file]))
    let hashed = try TemporaryDirectory()
    try hashed.write(server.ca.rootCertificatePEM, to: try server.ca.certificate.hashedName())
    server.expectSuccess(try await server.get([], environment: ["SSL_CERT_DIR": hashed.path]))
    // A missing file is no error if there is a directory.
    server.expectSuccess(
      try await server.get([], environment: ["SSL_CERT_DIR": hashed.path, "SSL_CERT_FILE": hashed.path("none")]))
  }

  /// `--cacert` replaces the roots of the environment.
  @Test func optionsBeatTheEnvironment() async throws {
    let server = try TLSServer()
    try server.directory.write(try TestCA().rootCertificatePEM, to: "other.pem")
    let result = try await server.get(
      ["--cacert", server.directory.path("other.pem")],
      environment: ["SSL_CERT_FILE": server.directory.path("root.pem")])
    #expect(result.status == 60)
    #expect(server.server.requestsReceived == 0)
  }

  @Test func rootsThatCannotBeRead() async throws {
    let server = try TLSServer()
    let missing = server.directory.path("none")
    for arguments in [["get", server.server.url()], ["pins", server.server.url()]] {
      let result = try await Command(arguments + ["--cacert", missing]).end()
      #expect(result.status == 77)
      #expect(result.errors == "larkspur: could not read \(missing): No such file or directory (ENOENT)\n")
    }
    for (name, content) in [("empty", ""), ("words", "no certificate\n"), ("broken", brokenPEM)] {
      try server.directory.write(content, to: name)
      let file = server.directory.path(name)
      let result = try await server.get(["--cacert", file])
      #expect(result.status == 77)
      #expect(result.errors == "larkspur: \(file) holds no certificate that could be read\n")
    }
    #expect(server.server.connectionsAccepted == 0)
  }

  private let brokenPEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

  // MARK: - Untrusted certificates

  @Test func untrusted() async throws {
    let server = try TLSServer()
    server.expectFailure(
      try await server.get([]), 60,
      "TLS: the certificate leads to no root that is trusted (unable to get local issuer certificate)")
    #expect(server.server.requestsReceived == 0)
  }

  @Test func selfSigned() async throws {
    let server = try TLSServer {
      let alone = try TestCA.selfSigned()
      ($0.chainDER, $0.privateKeyDER) = (alone.chainDER, alone.privateKeyDER)
    }
    server.expectFailure(
      try await server.get(server.trust), 60,
      "TLS: the certificate is self-signed (self-signed certificate)")
  }

  @Test func wrongHost() async throws {
    let server = try TLSServer(.init(names: ["other.example"], ipAddresses: []))
    server.expectFailure(
      try await server.get(server.trust), 60, "TLS: the certificate is for another host (IP address mismatch)")
    let named = try await Command(["get", server.server.url(host: "localhost")] + server.trust).end()
    #expect(named.status == 60)
    #expect(
      named.errors == "larkspur: localhost:\(server.server.port): TLS: the certificate is for another host "
        + "(hostname mismatch)\n")
  }

  @Test func outOfDate() async throws {
    var request = TestCertificate.Request()
    request.notAfter = -1800
    let old = try TLSServer(request)
    old.expectFailure(
      try await old.get(old.trust), 60, "TLS: the certificate has expired (certificate has expired)")
    request = TestCertificate.Request()
    request.notBefore = 86_400
    let new = try TLSServer(request)
    new.expectFailure(
      try await new.get(new.trust), 60, "TLS: the certificate is not valid yet (certificate is not yet valid)")
  }

  /// With `--insecure` a faulty certificate causes a warning only.
  @Test func insecure() async throws {
    var request = TestCertificate.Request(names: ["other.example"], ipAddresses: [])
    request.notAfter = -1800
    let server = try TLSServer(request)
    for option in ["-k", "--insecure"] {
      let result = try await server.get([option])
      #expect(result.status == 0)
      #expect(result.output == TestServer.content(count: 9))
      #expect(
        result.errors == "larkspur: warning: --insecure: the server's certificate is not verified; "
          + "anybody could be answering\n")
    }
    // Without TLS there is no warning.
    let plain = try TestServer()
    #expect(try await Command.run("get", "-k", plain.url("/bytes/9")).errors == "")
  }

  // MARK: - Pins

  @Test func rightPin() async throws {
    let server = try TLSServer()
    let (leaf, root) = (try server.certificate.pin(), try server.ca.certificate.pin())
    let other = try TestCA().certificate.pin()
    for pins in [[leaf], [root], [other, leaf], [root, other, leaf]] {
      server.expectSuccess(try await server.get(server.trust + pins.flatMap { ["--pin", $0] }))
    }
  }

  @Test func wrongPin() async throws {
    let server = try TLSServer()
    let (leaf, root) = (try server.certificate.pin(), try server.ca.certificate.pin())
    let other = try TestCA().certificate.pin()
    server.expectFailure(
      try await server.get(server.trust + ["--pin", other]), 90,
      "TLS: no pin of 127.0.0.1 matches; seen: \(leaf), \(root)")
    #expect(server.server.requestsReceived == 0)
    // A matching pin does not replace the verification of the chain.
    #expect(try await server.get(["--pin", leaf]).status == 60)
  }
}
