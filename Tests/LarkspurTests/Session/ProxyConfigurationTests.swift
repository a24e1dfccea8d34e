import Foundation
import LarkspurHTTP
import LarkspurTestServer
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// Proxies by the types of Darwin's framework Network.
@Suite(.timeLimit(.minutes(1))) struct ProxyConfigurationTests {
  private func endpoint(_ port: Int) -> NWEndpoint {
    .hostPort(host: "127.0.0.1", port: NWEndpoint.Port(rawValue: UInt16(port)) ?? .any)
  }

  private func session(_ proxies: [ProxyConfiguration], _ roots: [TLSCertificate] = []) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.proxyConfigurations = proxies
    // The configurations count in place of the dictionary.
    configuration.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "127.0.0.1", "HTTPPort": 1]
    configuration.tlsTrustSettings.roots = .only(roots)
    return URLSession(configuration: configuration)
  }

  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  /// Requests of plain HTTP, too, go through a tunnel.
  @Test func httpByCONNECT() async throws {
    let proxy = try TestServer()
    proxy.enqueue([.expectRequest("CONNECT", "a.example:80"), .send("HTTP/1.1 200 OK\r\n\r\n"), .serveRoutes])
    let configuration = ProxyConfiguration(httpCONNECTProxy: endpoint(proxy.port))
    configuration.applyCredential(username: "user", password: "pass")
    let session = session([configuration])
    defer { session.invalidateAndCancel() }
    let (data, _) = try await session.data(from: try url("http://a.example/bytes/9"))
    #expect(Array(data) == TestServer.content(count: 9))
    #expect(proxy.requests.map { $0.fields["Proxy-Authorization"] } == ["Basic dXNlcjpwYXNz", nil])
    #expect(proxy.requests.last?.target == "/bytes/9")
  }

  @Test func overTLSToTheProxy() async throws {
    let ca = try TestCA()
    let proxy = try TestServer(tls: TestServer.TLS(certificate: try ca.issue()))
    proxy.enqueue([.expectRequest("CONNECT", "a.example:80"), .send("HTTP/1.1 200 OK\r\n\r\n"), .serveRoutes])
    let session = session(
      [ProxyConfiguration(httpCONNECTProxy: endpoint(proxy.port), tlsOptions: .init())],
      [try #require(TLSCertificate(Data(ca.rootCertificateDER)))])
    defer { session.invalidateAndCancel() }
    let (data, _) = try await session.data(from: try url("http://a.example/bytes/9"))
    #expect(data.count == 9 && proxy.handshakes.count == 1)
  }

  @Test func socks() async throws {
    let proxy = try TestServer()
    let name = Array("a.example".utf8)
    proxy.enqueue([
      .expectBytes([5, 2, 0, 2]), .send([5, 2]),
      .expectBytes([1, 4] + Array("user".utf8) + [4] + Array("pass".utf8)), .send([1, 0]),
      .expectBytes([5, 1, 0, 3, UInt8(name.count)] + name + [0, 80]), .send([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]),
      .serveRoutes,
    ])
    let configuration = ProxyConfiguration(socksv5Proxy: endpoint(proxy.port))
    configuration.applyCredential(username: "user", password: "pass")
    let session = session([configuration])
    defer { session.invalidateAndCancel() }
    let (data, _) = try await session.data(from: try url("http://a.example/bytes/9"))
    #expect(data.count == 9)
  }

  @Test func theFirstThatCoversAHostCounts() throws {
    var first = ProxyConfiguration(httpCONNECTProxy: endpoint(1001))
    first.matchDomains = ["example.com", "*.example.org", "192.0.2.0/24"]
    first.excludedDomains = ["direct.example.com"]
    var second = ProxyConfiguration(socksv5Proxy: endpoint(1002))
    second.excludedDomains = ["example.net"]
    second.allowFailover = true
    var storage = URLSessionConfiguration.ephemeral.storage
    storage.proxyConfigurations = [first, second]
    let settings = try SessionProxies.settings(storage)
    func port(_ host: String) -> UInt16? { settings.rule(toHost: host, port: 443, isSecure: true)?.proxy.port }
    #expect(port("example.com") == 1001 && port("a.example.com") == 1001 && port("a.example.org") == 1001)
    #expect(port("192.0.2.9") == 1001 && port("direct.example.com") == 1002 && port("other.example") == 1002)
    #expect(port("a.example.net") == nil)
    #expect(settings.rules.map(\.allowsFailover) == [false, true] && settings.rules.allSatisfy(\.alwaysTunnels))
  }

  /// A proxy that cannot be reached is left out only if the configuration says so. A refusal is obeyed.
  @Test(arguments: [true, false]) func failover(isAllowed: Bool) async throws {
    let server = try TestServer()
    var unreachable = ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: 1))
    unreachable.allowFailover = isAllowed
    let session = session([unreachable])
    defer { session.invalidateAndCancel() }
    if isAllowed {
      let (data, _) = try await session.data(from: try url(server.url("/bytes/9")))
      #expect(data.count == 9 && server.requests.last?.target == "/bytes/9")
    } else {
      await #expect(throws: URLError.self) { try await session.data(from: try url(server.url("/bytes/9"))) }
      #expect(server.connectionsAccepted == 0)
    }
    let refusing = try TestServer()
    refusing.enqueue([
      .expectRequest("CONNECT", server.authority), .send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"),
    ])
    var obeyed = ProxyConfiguration(httpCONNECTProxy: endpoint(refusing.port))
    obeyed.allowFailover = true
    let other = self.session([obeyed])
    defer { other.invalidateAndCancel() }
    let before = server.connectionsAccepted
    await #expect(throws: URLError.self) { try await other.data(from: try url(server.url("/bytes/9"))) }
    #expect(server.connectionsAccepted == before)
  }

  /// A value that cannot be one fails with the name of the property, before anything is sent.
  @Test func badValues() async throws {
    let server = try TestServer()
    var noDomain = ProxyConfiguration(httpCONNECTProxy: endpoint(3128))
    noDomain.matchDomains = ["a b"]
    var emptyDomain = ProxyConfiguration(httpCONNECTProxy: endpoint(3128))
    emptyDomain.excludedDomains = [""]
    let long = ProxyConfiguration(socksv5Proxy: endpoint(1080))
    long.applyCredential(username: String(repeating: "a", count: 256), password: "")
    for configuration in [
      ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "a b", port: 3128)),
      ProxyConfiguration(socksv5Proxy: endpoint(0)), noDomain, emptyDomain, long,
    ] {
      let session = session([configuration])
      defer { session.invalidateAndCancel() }
      let error = await #expect(throws: URLError.self) { try await session.data(from: try url(server.url("/get"))) }
      #expect(error?.code == .cannotConnectToHost)
      #expect(error?.localizedDescription.contains("proxyConfigurations[0]") == true, "\(configuration)")
    }
    #expect(server.connectionsAccepted == 0)
  }

  @Test func theyTravelToBackgroundSessions() throws {
    let configuration = URLSessionConfiguration.background(withIdentifier: "a")
    var proxy = ProxyConfiguration(httpCONNECTProxy: endpoint(3128), tlsOptions: NWProtocolTLS.Options())
    proxy.applyCredential(username: "user", password: "pass")
    proxy.matchDomains = ["example.com"]
    proxy.excludedDomains = ["a.example.com"]
    proxy.allowFailover = true
    configuration.proxyConfigurations = [proxy, ProxyConfiguration(socksv5Proxy: .hostPort(host: "::1", port: .socks))]
    let encoded = try SessionSettings.encoded(configuration)
    let read = try SessionSettings.configuration(from: encoded.bytes, identifier: "a")
    #expect(encoded.leftBehind == [])
    #expect(
      try read.proxyConfigurations.indices.map { try read.proxyConfigurations[$0].rule($0) }
        == configuration.proxyConfigurations.indices.map { try configuration.proxyConfigurations[$0].rule($0) })
  }

  @Test func endpoints() {
    #expect(NWEndpoint.Host("192.0.2.1") == IPv4Address("192.0.2.1").map { .ipv4($0) })
    #expect(NWEndpoint.Host("::1") == .ipv6(.loopback) && NWEndpoint.Host("127.0.0.1") == .ipv4(.loopback))
    #expect(NWEndpoint.Host("proxy.example") == .name("proxy.example", nil))
    #expect(IPv4Address("::1") == nil && IPv6Address("127.0.0.1") == nil && NWEndpoint.Port("70000") == nil)
    #expect(NWEndpoint.Port("80") == .http && NWEndpoint.Port(rawValue: 443) == .https)
    #expect("\(NWEndpoint.hostPort(host: "::1", port: .socks).debugDescription)" == "[::1]:1080")
  }
}
