import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests the cache policies of loads without a cache: in a session that has none, and of downloads.
@Suite(.timeLimit(.minutes(1))) struct CachelessPolicyTests {
  private let server: TestServer
  private let session: URLSession

  init() throws {
    server = try TestServer()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    session = URLSession(configuration: configuration)
  }

  private func request(_ policy: URLRequest.CachePolicy) throws -> URLRequest {
    URLRequest(url: try #require(URL(string: server.url("/get"))), cachePolicy: policy)
  }

  @Test func whatMayNotBeLoadedIsNot() async throws {
    let request = try request(.returnCacheDataDontLoad)
    let data = await #expect(throws: URLError.self) { try await session.data(for: request) }
    #expect(data?.code == .resourceUnavailable && data?.failingURL == request.url)
    let file = await #expect(throws: URLError.self) {
      try await URLSession(configuration: .ephemeral).download(for: request)
    }
    #expect(file?.code == .resourceUnavailable)
    #expect(server.requestsReceived == 0)
  }

  @Test func cachesOnTheWayGetFields() async throws {
    _ = try await session.data(for: try request(.reloadIgnoringLocalAndRemoteCacheData))
    #expect(server.requests.last?.fields["Cache-Control"] == "no-cache")
    #expect(server.requests.last?.fields["Pragma"] == "no-cache")
    var own = try request(.reloadIgnoringLocalAndRemoteCacheData)
    own.setValue("max-age=5", forHTTPHeaderField: "Cache-Control")
    _ = try await session.data(for: own)
    #expect(server.requests.last?.fields.values("Cache-Control") == ["max-age=5"])
    // Caches of HTTP/1.0 do not know `Cache-Control`, so `Pragma` is sent although the request has its own
    // `Cache-Control`.
    #expect(server.requests.last?.fields["Pragma"] == "no-cache")
    _ = try await session.data(for: try request(.reloadIgnoringLocalCacheData))
    #expect(server.requests.last?.fields["Cache-Control"] == nil)
  }
}
