import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Darwin's `proxyConfigurations` with squid, microsocks and dante. The metrics show the way of each load.
@Suite(.serialized, .ownThread, .timeLimit(.minutes(1))) struct ProxyOptionTests {
  private let server: OptionServer

  init() throws { server = try OptionServer.get() }

  private func endpoint(_ host: NWEndpoint.Host, _ port: UInt16) -> NWEndpoint {
    .hostPort(host: host, port: NWEndpoint.Port(integerLiteral: port))
  }

  /// Loads from the server through the proxies, and returns the port that the connection led to.
  private func load(_ proxies: [ProxyConfiguration], roots: [TLSCertificate] = []) async throws -> Int? {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.proxyConfigurations = proxies
    configuration.tlsTrustSettings.roots = .only(roots)
    return try await URLSession.withSession(configuration: configuration) { session in
      let delegate = MetricsRecorder()
      let url = try #require(URL(string: "http://localhost:\(server.port)/bytes/1000"))
      #expect(try await session.load(url, delegate: delegate).data == Data(OptionServer.content(1000)))
      let metrics = try #require(delegate.metrics.withLock { $0 }?.transactionMetrics.last)
      #expect(metrics.isProxyConnection == (metrics.remotePort != "\(server.port)"))
      return metrics.remotePort.flatMap { Int($0) }
    }
  }

  @Test func squid() async throws {
    let authority = try TestCA()
    let proxy = try RealProxy(.squid, certificate: try authority.issue())
    let plain = ProxyConfiguration(httpCONNECTProxy: endpoint("127.0.0.1", proxy.port))
    plain.applyCredential(username: "me", password: "secret")
    #expect(try await load([plain]) == Int(proxy.port))
    let secure = ProxyConfiguration(httpCONNECTProxy: endpoint("localhost", proxy.securePort), tlsOptions: .init())
    secure.applyCredential(username: "me", password: "secret")
    let root = try #require(TLSCertificate(Data(authority.rootCertificateDER)))
    #expect(try await load([secure], roots: [root]) == Int(proxy.securePort))
    // A refusal is obeyed, also where a proxy that is not there would be left out.
    var wrong = ProxyConfiguration(httpCONNECTProxy: endpoint("127.0.0.1", proxy.port))
    wrong.applyCredential(username: "me", password: "wrong")
    wrong.allowFailover = true
    await #expect(throws: URLError.self) { try await load([wrong]) }
    // The first configuration that covers the host counts.
    var other = ProxyConfiguration(httpCONNECTProxy: endpoint("127.0.0.1", 1))
    other.matchDomains = ["other.example"]
    #expect(try await load([other, plain]) == Int(proxy.port))
    other.matchDomains = []
    other.excludedDomains = ["localhost"]
    #expect(try await load([other]) == server.port)
  }

  @Test func microsocks() async throws {
    let proxy = try RealProxy(.microsocks)
    let known = ProxyConfiguration(socksv5Proxy: endpoint("127.0.0.1", proxy.port))
    known.applyCredential(username: "me", password: "secret")
    #expect(try await load([known]) == Int(proxy.port))
    let wrong = ProxyConfiguration(socksv5Proxy: endpoint("127.0.0.1", proxy.port))
    wrong.applyCredential(username: "me", password: "wrong")
    await #expect(throws: URLError.self) { try await load([wrong]) }
  }

  @Test func dante() async throws {
    let proxy = try RealProxy(.dante)
    #expect(try await load([ProxyConfiguration(socksv5Proxy: endpoint("127.0.0.1", proxy.port))]) == Int(proxy.port))
  }

  /// The proxy's port refuses connections.
  @Test func aProxyThatIsNotThere() async throws {
    var absent = ProxyConfiguration(socksv5Proxy: endpoint("127.0.0.1", 1))
    await #expect(throws: URLError.self) { try await load([absent]) }
    absent.allowFailover = true
    #expect(try await load([absent]) == server.port)
  }
}
