import LarkspurCommand
import LarkspurTestServer
import Testing

/// Tests the information about a server's certificates in the output of `-v` and of `larkspur pins`.
@Suite struct TLSVerboseLogTests {
  /// The lines of `-v` about the handshake, with T in place of each time.
  private func logLines(_ result: Command.Result) -> [String] {
    let lines = result.errors.split(separator: "\n").map { line in
      guard line.hasPrefix("* "), let end = line.firstRange(of: " ms  ") else { return String(line) }
      return "* T " + line[end.upperBound...]
    }
    return Array(lines.drop { !$0.hasPrefix("* T TLS") }.prefix { !$0.hasPrefix("* T sending") })
  }

  @Test(arguments: [TestServer.TLS.Version.tls1_2, .tls1_3])
  func handshake(version: TestServer.TLS.Version) async throws {
    var request = TestCertificate.Request()
    request.commonName = "a\u{1b}[31m"
    let server = try TLSServer(request) {
      $0.versions = version...version
      $0.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256"
      $0.cipherSuites = "TLS_AES_128_GCM_SHA256"
    }
    let result = try await server.get(server.trust + ["-v"])
    #expect(result.status == 0)
    #expect(result.output == TestServer.content(count: 9))
    let lines = logLines(result)
    #expect(
      lines.prefix(3) == [
        "* T TLS handshake with 127.0.0.1",
        version == .tls1_2
          ? "* T TLS 1.2, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" : "* T TLS 1.3, TLS_AES_128_GCM_SHA256",
        "*              verified chain:",
      ])
    let chain = lines.dropFirst(3).map { String($0.drop { $0 == "*" || $0 == " " }) }
    try #require(chain.count == 6)
    #expect(chain[0] == "0 CN=a\\1B[31m")
    let valid = /valid (\d{4}-\d\d-\d\d) to (\d{4}-\d\d-\d\d)/
    let days = try #require(chain[1].wholeMatch(of: valid)).output
    #expect(days.1 < days.2)
    #expect(chain[2] == (try server.certificate.pin()))
    #expect(chain[3] == "1 CN=Larkspur test root")
    #expect(chain[4].wholeMatch(of: valid) != nil)
    #expect(chain[5] == (try server.ca.certificate.pin()))
  }

  /// The validity shown is the certificate's.
  @Test func dates() async throws {
    var request = TestCertificate.Request.authority("Old root")
    (request.notBefore, request.notAfter) = (-400 * 86_400, 400 * 86_400)
    let server = try TLSServer(by: try TestCA(request))
    let lines = logLines(try await server.get(server.trust + ["-v"]))
    let message = try #require(lines.last { $0.contains("valid ") })
    let years = message.matches(of: /(\d{4})-\d\d-\d\d/).compactMap { Int($0.output.1) }
    #expect(years.count == 2 && 2...3 ~= years[1] - years[0])
  }

  /// A chain that was not verified is marked as such.
  @Test func insecureHandshake() async throws {
    let server = try TLSServer()
    let lines = logLines(try await server.get(["-vk"]))
    #expect(lines.count == 6)
    #expect(
      lines.dropFirst(2).first
        == "*              NOT VERIFIED (unable to get local issuer certificate); sent:")
    #expect(lines.last?.hasSuffix(try server.certificate.pin()) == true)
  }

  @Test func failedHandshake() async throws {
    let server = try TLSServer()
    let result = try await server.get(["-v"])
    #expect(result.status == 60)
    #expect(logLines(result).first == "* T TLS handshake with 127.0.0.1")
    #expect(logLines(result).last?.hasPrefix("larkspur: \(server.server.authority): TLS: ") == true)
  }

  // MARK: - Pins

  @Test func pins() async throws {
    let root = try TestCA()
    let middle = try root.intermediate()
    // The server also sends an unrelated certificate, which is not part of the verified chain and is not shown.
    let server = try TLSServer(by: middle) { $0.chainDER += [try TestCA().rootCertificateDER] }
    let result = try await server.pins(server.trust)
    #expect(result.status == 0)
    #expect(result.errors == "")
    #expect(
      result.text == """
        \(try server.certificate.pin())  CN=Larkspur test
        \(try middle.certificate.pin())  CN=Larkspur test intermediate 1
        \(try root.certificate.pin())  CN=Larkspur test root

        """)
    // The command makes the handshake and sends no request.
    #expect(server.server.requestsReceived == 0)
    for line in result.text.split(separator: "\n") {
      server.expectSuccess(try await server.get(server.trust + ["--pin", String(line.prefix { $0 != " " })]))
    }
  }

  @Test func pinsWithoutAScheme() async throws {
    let server = try TLSServer()
    let result = try await Command(["pins", server.server.authority] + server.trust).end()
    #expect(result.status == 0)
    #expect(result.text.hasPrefix(try server.certificate.pin()))
  }

  @Test func pinsOfACertificateWithoutASubject() async throws {
    var request = TestCertificate.Request()
    request.commonName = ""
    let server = try TLSServer(request)
    #expect(try await server.pins(server.trust).text.hasPrefix("\(try server.certificate.pin())  localhost\n"))
  }

  @Test func pinsWithoutTLS() async throws {
    let plain = try TestServer()
    let result = try await Command.run("pins", plain.url())
    #expect(result.status == 1)
    #expect(result.errors == "larkspur: \(plain.url()): only https:// has certificates\n")
    #expect(plain.connectionsAccepted == 0)
  }

  @Test func pinsOfAnUntrustedServer() async throws {
    let server = try TLSServer()
    let result = try await server.pins([])
    server.expectFailure(
      result, 60, "TLS: the certificate leads to no root that is trusted (unable to get local issuer certificate)")
    #expect(result.text == "")
    let careless = try await server.pins(["--insecure"])
    #expect(careless.status == 0)
    #expect(careless.errors.hasPrefix("larkspur: warning: --insecure: "))
    #expect(careless.text == "\(try server.certificate.pin())  CN=Larkspur test  (not verified)\n")
  }

  @Test func pinsThatDoNotMatch() async throws {
    let server = try TLSServer()
    let result = try await server.pins(server.trust + ["--pin", try TestCA().certificate.pin()])
    #expect(result.status == 90)
    #expect(result.text == "")
  }

  @Test func pinsOfAServerThatStalls() async throws {
    let server = try TLSServer()
    server.server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: 1)])
    server.expectFailure(
      try await server.pins(server.trust + ["--connect-timeout", "2.5"]), 28,
      "TLS: the handshake took too long (--connect-timeout)")
  }
}
