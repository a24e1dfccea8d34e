import LarkspurTestServer
import TestKit
import Testing

/// Tests the TLS failures of `larkspur get` other than untrusted certificates.
@Suite struct TLSFailureTests {
  // MARK: - Versions

  @Test func versions() async throws {
    let server = try TLSServer()
    for (arguments, version) in [
      ([], "TLSv1.3"), (["--tls-max", "1.2"], "TLSv1.2"), (["--tls-min", "1.3"], "TLSv1.3"),
      (["--tls-min=1.2", "--tls-max=1.2"], "TLSv1.2"),
    ] {
      server.expectSuccess(try await server.get(server.trust + arguments))
      #expect(server.server.handshakes.last?.version == version)
    }
  }

  @Test(
    arguments: [
      (.tls1_2 ... .tls1_2, ["--tls-min", "1.3"]), (.tls1_3 ... .tls1_3, ["--tls-max", "1.2"]),
      (.tls1_0 ... .tls1_1, []),
    ] as [(ClosedRange<TestServer.TLS.Version>, [String])])
  func noCommonVersion(versions: ClosedRange<TestServer.TLS.Version>, arguments: [String]) async throws {
    let server = try TLSServer { $0.versions = versions }
    let result = try await server.get(server.trust + arguments)
    #expect(result.status == 35)
    #expect(result.errors.hasPrefix("larkspur: \(server.server.authority): TLS: no version of TLS in common"))
    #expect(server.server.requestsReceived == 0)
  }

  // MARK: - Other protocols

  @Test func serverWithoutTLS() async throws {
    let plain = try TestServer()
    plain.enqueue([.expectBytes(count: 5), .send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), .hang])
    let result = try await Command.run("get", "https://\(plain.authority)/")
    #expect(result.status == 35)
    #expect(result.errors.hasPrefix("larkspur: \(plain.authority): TLS: the server does not speak TLS"))
    #expect(result.output == [])
  }

  @Test func alert() async throws {
    let server = try TLSServer()
    server.server.enqueue([.beforeHandshake, .refuseHandshake(alert: 80)])
    let result = try await server.get(server.trust)
    #expect(result.status == 35)
    #expect(result.errors.contains("TLS: the server sent the alert internal_error (80)"))
  }

  @Test func endOfTheHandshake() async throws {
    let server = try TLSServer()
    server.server.enqueue([.beforeHandshake, .close(afterSending: 100), .handshake])
    let result = try await server.get(server.trust)
    #expect(result.status == 35)
    #expect(result.errors.hasPrefix("larkspur: \(server.server.authority): TLS: the connection ended in mid-handshake"))
  }

  // MARK: - Time

  @Test(arguments: [
    (["--connect-timeout", "2.5"], "--connect-timeout"), (["--max-time", "2.5"], "--max-time"),
    (["--connect-timeout", "2.5", "--max-time", "600"], "--connect-timeout"),
    (["--connect-timeout", "600", "--max-time", "2.5"], "--max-time"),
    (["-L", "--connect-timeout", "2.5"], "--connect-timeout"),
  ])
  func stalledHandshake(arguments: [String], option: String) async throws {
    let server = try TLSServer()
    server.server.enqueue([.beforeHandshake, .handshake(stallingBeforeFlight: 1)])
    server.expectFailure(
      try await server.get(server.trust + arguments), 28, "TLS: the handshake took too long (\(option))")
  }

  // MARK: - End of the connection

  /// Without a length and without close_notify the body may be incomplete, so the command fails.
  @Test func bodyThatMayBeCut() async throws {
    let server = try TLSServer()
    server.server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\n\r\nhello"), .closeWithoutNotify])
    let file = server.directory.path("body")
    let result = try await server.get(server.trust + ["--retry", "0", "-o", file])
    #expect(result.status == 18)
    #expect(
      result.errors.hasPrefix("larkspur: \(server.server.authority): TLS: the connection ended without close_notify"))
    #expect(server.directory.names == ["root.pem"])
  }

  @Test func bodyThatIsCut() async throws {
    let server = try TLSServer()
    server.server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .closeWithoutNotify,
    ])
    let result = try await server.get(server.trust)
    server.expectFailure(result, 18, "bad response: the connection ended with 5 bytes of the body missing")
    #expect(result.text == "hello")
  }

  @Test func bodyThatIsComplete() async throws {
    let server = try TLSServer()
    for end in [TestServer.Step.close, .closeWithoutNotify] {
      server.server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), end])
      let result = try await server.get(server.trust)
      #expect(result.status == 0)
      #expect(result.errors == "")
      #expect(result.text == "hello")
    }
  }
}
