import Foundation
import LarkspurClient
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// A client's connections: TLS, pins and proxies.
@Suite struct HTTPClientRouteTests {
  let authority: TestCA
  let server: TestServer

  init() throws {
    authority = try TestCA()
    server = try TestServer(tls: .init(certificate: try authority.issue()))
  }

  private static func certificate(of authority: TestCA) throws -> Certificate {
    try #require(Certificate(der: authority.certificate.certificateDER))
  }

  private func client(_ change: (inout HTTPClient.Options) -> Void = { _ in }) throws -> HTTPClient {
    let roots = [try Self.certificate(of: authority)]
    return HTTPClientTests.client {
      $0.tls.roots = .only(roots)
      change(&$0)
    }
  }

  private func code(_ client: HTTPClient, byteCount: Int = 9) async -> HTTPClientError.Code? {
    await HTTPClientTests.failure {
      let url = server.url("/bytes/\(byteCount)")
      let body = try await client.get(url) { try await $0.body.collect(upTo: byteCount) }
      #expect(body.count == byteCount)
    }
  }

  @Test func aServerOfAKnownAuthority() async throws {
    let client = try client()
    #expect(await code(client) == nil)
    #expect(await code(HTTPClientTests.client()) == .insecure)
  }

  @Test func pins() async throws {
    let root = try Self.certificate(of: authority)
    let other = try Self.certificate(of: TestCA())
    for (pin, expected) in [(root.pin, nil), (other.pin, HTTPClientError.Code.insecure)] {
      let host = try #require(PinPolicy.Host("127.0.0.1", pins: [pin]))
      let local = try #require(PinPolicy.Host("localhost", pins: [pin]))
      let client = try client { $0.tls.pins = PinPolicy([host, local]) }
      #expect(await code(client) == expected)
    }
  }

  /// A proxy gets requests for `http` URLs, and opens tunnels for `https` URLs.
  @Test func aProxy() async throws {
    let proxy = try TestServer()
    proxy.enqueue(
      [
        .expectRequest("GET", "http://a.example/x"), .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
      ], [.expectRequest("CONNECT", "a.example:443"), .send("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"), .close])
    var settings = ProxySettings()
    settings.all = try Proxy("http://user:secret@\(proxy.authority)")
    let client = HTTPClientTests.client { $0.proxy = .settings(settings) }
    let body = try await client.get("http://a.example/x") { try await $0.body.collect(upTo: 10) }
    #expect(body == Array("ok".utf8))
    #expect(proxy.requests.first?.fields["Proxy-Authorization"]?.hasPrefix("Basic ") == true)
    #expect(
      await HTTPClientTests.failure { _ = try await client.get("https://a.example/") { $0.status } } == .proxyFailed)
    #expect(proxy.failures.isEmpty)
  }

  /// The URL keeps its host, and connections lead elsewhere.
  @Test func aHostThatIsOverridden() async throws {
    let client = try client { $0.hostOverrides.set("localhost", to: .host("127.0.0.1", port: UInt16(server.port))) }
    #expect(try await client.get("https://localhost/bytes/1") { $0.status } == 200)
    #expect(server.requests.first?.fields["Host"] == "localhost" && server.handshakes.first?.serverName == "localhost")
  }

  /// The rates and the local end belong to the client's connections.
  @Test func ratesAndTheLocalEnd() async throws {
    let client = try client {
      $0.localEndpoint = LocalEndpoint(interface: "lo")
      $0.rateLimits.requestsPerSecondPerHost = 1000
      $0.timeouts.total = .seconds(60)
    }
    #expect(await code(client) == nil)
    // The second request would leave after its time.
    let slow = try self.client {
      $0.rateLimits.requestsPerSecondPerHost = 0.001
      $0.timeouts.total = .seconds(5)
    }
    #expect(await code(slow) == nil)
    #expect(await code(slow) == .timedOut)
    let limited = try self.client {
      $0.rateLimits.bytesPerSecond = 1
      $0.timeouts.total = .seconds(1)
    }
    // The first piece is what has come, and more has to be paid for.
    #expect(await code(limited, byteCount: 1 << 20) == .timedOut)
  }

  /// Connections are open before the first request, which uses one of them.
  @Test func preparedConnections() async throws {
    let client = try client()
    #expect(try await client.prepareConnections(to: server.url("/"), count: 2) == 2)
    #expect(server.connectionsAccepted == 2 && server.requestsReceived == 0)
    #expect(await code(client) == nil)
    #expect(server.connectionsAccepted == 2)
    let failures = [("http://", 1, HTTPClientError.Code.invalidURL), (server.url("/"), 0, .invalidOption)]
    for (url, count, failure) in failures {
      let error = await #expect(throws: HTTPClientError.self) {
        try await client.prepareConnections(to: url, count: count)
      }
      #expect(error?.code == failure)
    }
  }

  /// A closure has an identity for each connection, and files are read again when they change.
  @Test func identities() async throws {
    var tls = TestServer.TLS(certificate: try authority.issue())
    tls.clientCertificate = .verified(by: [authority.rootCertificateDER])
    let server = try TestServer(tls: tls)
    func certificate(_ name: String) throws -> TestCertificate {
      var request = TestCertificate.Request(names: [], ipAddresses: [])
      request.commonName = name
      return try authority.issue(request)
    }
    let (first, port) = (try certificate("first"), server.port)
    let providing = try client {
      $0.provideIdentity = { host, asked in
        #expect(host == "127.0.0.1" && asked == port)
        return try? ClientIdentity(certificates: Array(first.chainPEM.utf8), key: Array(first.privateKeyPEM.utf8))
      }
    }
    #expect(try await providing.get(server.url("/get")) { $0.status } == 200)
    let folder = try TemporaryDirectory()
    func write(_ made: TestCertificate) throws {
      try Data((made.chainPEM + made.privateKeyPEM).utf8).write(to: folder.file("both.pem"), options: .atomic)
    }
    try write(certificate("second"))
    let identity = try ClientIdentity(files: .init(certificates: folder.path("both.pem")))
    let failures = Mutex<[String]>([])
    let reading = try client {
      $0.tls.identity = identity
      $0.fileFailed = { path, _ in failures.withLock { $0.append(path) } }
    }
    let fields = [Field("Connection", "close")]
    #expect(try await reading.get(server.url("/get"), fields: fields) { $0.status } == 200)
    try write(certificate("third"))
    #expect(try await reading.get(server.url("/get"), fields: fields) { $0.status } == 200)
    try Data().write(to: folder.file("both.pem"), options: .atomic)
    #expect(try await reading.get(server.url("/get"), fields: fields) { $0.status } == 200)
    #expect(server.handshakes.map(\.clientCertificateSubject) == ["CN=first", "CN=second", "CN=third", "CN=third"])
    #expect(failures.withLock { $0 } == [folder.path("both.pem")])
  }

  /// The error names the option, and nothing is sent.
  @Test func anOptionThatCannotBeUsed() async throws {
    let long = "/" + String(repeating: "s", count: 199)
    let changes: [(String, HTTPClientError.Code, @Sendable (inout HTTPClient.Options) -> Void)] = [
      ("timeouts.idle", .invalidOption, { $0.timeouts.idle = .zero }),
      ("timeouts.connect", .invalidOption, { $0.timeouts.connect = .seconds(-1) }),
      ("hostOverrides", .invalidOption, { $0.hostOverrides.set("*", to: .socket(path: "")) }),
      ("hostOverrides", .invalidOption, { $0.hostOverrides.set("*", to: .socket(path: long)) }),
      ("hostOverrides", .invalidOption, { $0.hostOverrides.set("*", to: .addresses([])) }),
      ("rateLimits.bytesPerSecond", .invalidOption, { $0.rateLimits.bytesPerSecond = 0 }),
      ("rateLimits.requestsPerSecondPerHost", .invalidOption, { $0.rateLimits.requestsPerSecondPerHost = .nan }),
      ("localEndpoint", .unconnected, { $0.localEndpoint = LocalEndpoint(interface: "nosuch0") }),
    ]
    for (name, code, change) in changes {
      let error = await #expect(throws: HTTPClientError.self) {
        try await client(change).get(server.url("/bytes/9")) { _ in }
      }
      #expect(error?.code == code && error?.reason.contains(name) == true, "\(name): \(String(describing: error))")
    }
    #expect(server.connectionsAccepted == 0)
  }
}
