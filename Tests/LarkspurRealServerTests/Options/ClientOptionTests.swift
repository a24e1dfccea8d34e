import LarkspurClient
import TestKit
import Testing

/// The client's trailers and compressed bodies, with a server of Python's standard library.
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
}
