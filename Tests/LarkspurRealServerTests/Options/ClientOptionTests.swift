import Foundation
import LarkspurClient
import LarkspurTestServer
import TestKit
import Testing

/// The options of `HTTPClient` with real servers. The engine is that of sessions, which have more tests.
@Suite(.ownThread, .timeLimit(.minutes(1))) struct ClientOptionTests {
  private let server: OptionServer
  private let client: HTTPClient

  init() throws {
    server = try OptionServer.get()
    var options = HTTPClient.Options()
    options.proxy = .none
    client = HTTPClient(options)
  }

  private func report(
    _ body: HTTPClient.RequestBody, _ change: (inout HTTPClient.Request) -> Void
  ) async throws -> OptionServer.Report {
    var request = HTTPClient.Request("http://127.0.0.1:\(server.port)/echo", method: "POST", body: body)
    change(&request)
    return try OptionServer.Report(try await client.perform(request) { try await $0.body.collect(upTo: 1 << 16) })
  }

  @Test func trailersOfAResponse() async throws {
    try await client.get("http://127.0.0.1:\(server.port)/trailers") { response in
      let body = try await response.body.collect(upTo: 100)
      #expect(body == Array("onetwo".utf8))
      #expect(response.body.trailers == [Field("X-Sum", "6")])
    }
  }

  @Test(arguments: [10_000, 1_000_000]) func compressedBytes(count: Int) async throws {
    let report = try await report(.bytes(OptionServer.content(count))) { $0.bodyCompression = .gzip }
    #expect(report.coding == "gzip" && report.content == count && report.isRight && report.sent < count / 10)
    #expect(report.length == (count > 65_536 ? nil : "\(report.sent)"))
  }

  @Test(arguments: [nil, BodyCompression.gzip]) func trailersOfARequest(coding: BodyCompression?) async throws {
    let body = HTTPClient.RequestBody.produced { writer in
      for _ in 0..<3 { try await writer.write(OptionServer.content(100_000)) }
    }
    let report = try await report(body) {
      $0.bodyCompression = coding
      $0.setTrailers(["X-Sum"]) { ["X-Sum": "sum"] }
    }
    #expect(report.trailers == ["X-Sum": "sum"] && report.announced == "X-Sum")
    #expect(report.coding == coding.map { _ in "gzip" } && report.content == 300_000 && report.isRight)
  }

  /// The rules have what Darwin's `proxyConfigurations` have: a SOCKS proxy with credentials, and a proxy that is left out
  /// if it cannot be reached.
  @Test func rulesOfProxies() async throws {
    let socks = try RealProxy(.microsocks)
    let url = "http://localhost:\(server.port)/bytes/10"
    func isProxied(_ rules: [ProxyRule]) async throws -> Bool? {
      var (options, settings) = (HTTPClient.Options(), ProxySettings())
      settings.rules = rules
      options.proxy = .settings(settings)
      var request = HTTPClient.Request(url)
      let recorder = HTTPClient.Recorder()
      request.recorder = recorder
      let status = try await HTTPClient(options).perform(request) { $0.status }
      #expect(status == 200)
      return recorder.attempts.last?.isProxied
    }
    let known = ProxyRule(try Proxy("socks5h://me:secret@127.0.0.1:\(socks.port)"))
    #expect(try await isProxied([known]) == true)
    var other = known
    other.hosts = ProxyExceptions(domains: ["other.example"])
    #expect(try await isProxied([other]) == false)
    let wrong = ProxyRule(try Proxy("socks5h://me:wrong@127.0.0.1:\(socks.port)"))
    await #expect(throws: HTTPClientError.self) { try await isProxied([wrong]) }
    var absent = ProxyRule(try Proxy("http://127.0.0.1:1"))
    await #expect(throws: HTTPClientError.self) { try await isProxied([absent]) }
    (absent.alwaysTunnels, absent.allowsFailover) = (true, true)
    _ = try await isProxied([absent])
  }

  private func client(_ change: (inout HTTPClient.Options) throws -> Void) rethrows -> HTTPClient {
    var options = HTTPClient.Options()
    options.proxy = .none
    try change(&options)
    return HTTPClient(options)
  }

  @Test func placesAndTheLocalEnd() async throws {
    let server = try SessionServer(.nginx, "location = /ends { return 200 \"$http_host $remote_addr\"; }")
    let client = try client {
      $0.hostOverrides.set("a.invalid", to: .host("127.0.0.1", port: server.port))
      $0.localEndpoint = try LocalEndpoint(address: "127.0.0.9")
    }
    let ends = try await client.get("http://a.invalid/ends") { try await $0.body.collect(upTo: 100) }
    #expect(ends == Array("a.invalid 127.0.0.9".utf8))
  }

  @Test func limitsOfTime() async throws {
    let limits: [(String, @Sendable (inout Timeouts) -> Void)] = [
      ("http://127.0.0.1:\(server.port)/silent", { $0.firstByte = .milliseconds(200) }),
      ("http://127.0.0.1:\(server.fullPort)/", { $0.connect = .milliseconds(200) }),
      ("https://127.0.0.1:\(server.silentPort)/", { $0.secure = .milliseconds(200) }),
      (
        "http://127.0.0.1:\(server.port)/trickle",
        { $0.lowestRate = Timeouts.LowestRate(bytes: 1_000, over: .milliseconds(200)) }
      ),
    ]
    for (url, limit) in limits {
      let client = client { limit(&$0.timeouts) }
      let error = await #expect(throws: HTTPClientError.self) {
        try await client.get(url) { try await $0.body.collect(upTo: 1 << 16) }
      }
      #expect(error?.code == .timedOut, "\(url): \(String(describing: error))")
    }
  }

  /// nginx demands the identity of a file, and the client trusts the root of another, and writes the secrets to a third.
  @Test func filesOfTLS() async throws {
    let (authorities, folder) = (try TLSAuthorities.get(), try TemporaryDirectory())
    var plan = try TLSPlan(authorities, .tls1_3)
    plan.clients = .required
    let server = try NginxServer(plan)
    let made = try authorities.clients.issue(.init(names: [], ipAddresses: []))
    try Data((made.chainPEM + made.privateKeyPEM).utf8).write(to: folder.file("identity.pem"))
    try Data(authorities.root.rootCertificatePEM.utf8).write(to: folder.file("roots.pem"))
    let client = try client {
      $0.hostOverrides.set("a.test", to: .addresses(["127.0.0.1"]))
      $0.tls.roots = .only([])
      $0.tls.rootFiles = [folder.path("roots.pem")]
      $0.tls.identity = try ClientIdentity(files: .init(certificates: folder.path("identity.pem")))
      $0.tls.dangerousKeyLogFile = folder.path("keys")
    }
    #expect(try await client.get("https://a.test:\(server.tcpPort)/small") { $0.status } == 200)
    #expect(try String(contentsOf: folder.file("keys"), encoding: .utf8).contains("CLIENT_TRAFFIC_SECRET_0 "))
  }
}
