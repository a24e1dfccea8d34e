import LarkspurClient
import LarkspurTestServer
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

  private func code(_ client: HTTPClient) async -> HTTPClientError.Code? {
    await HTTPClientTests.failure {
      let body = try await client.get(server.url("/bytes/9")) { try await $0.body.collect(upTo: 9) }
      #expect(body.count == 9)
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

  @Test func anOptionThatCannotBeUsed() async {
    let limits = HTTPClientTests.client { $0.timeouts.idle = .zero }
    #expect(await code(limits) == .invalidOption)
    let places = HTTPClientTests.client { $0.hostOverrides.set("*", to: .socket(path: "")) }
    #expect(await code(places) == .invalidOption)
  }
}
