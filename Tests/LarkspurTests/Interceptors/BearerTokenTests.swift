import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@Suite struct BearerTokenTests {
  let server: TestServer

  init() throws {
    server = try TestServer()
    server.route("GET", "/private") { request in
      .text(request.fields["Authorization"] ?? "", status: request.fields["Authorization"] == "Bearer new" ? 200 : 401)
    }
  }

  private struct Refused: Error {}

  private func session(
    for origins: [String]? = nil, _ refresh: @escaping @Sendable (String) async throws -> String
  ) throws -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    let origins = (origins ?? [server.url("/")]).compactMap { URL(string: $0) }
    configuration.interceptors = [URLSession.BearerTokenInterceptor("old", for: origins, refresh: refresh)]
    return URLSession(configuration: configuration)
  }

  private func url(_ path: String = "/private") throws -> URL { try #require(URL(string: server.url(path))) }

  /// Many requests are refused, and the token is replaced once.
  @Test func oneReplacement() async throws {
    let count = Mutex(0)
    let (server, waiting) = (server, 6)
    let session = try session { refused in
      count.withLock { $0 += 1 }
      // All requests have been refused before the new token is there.
      _ = try await server.waitForRequests(waiting)
      return refused == "old" ? "new" : "wrong"
    }
    defer { session.invalidateAndCancel() }
    let statuses = try await withThrowingTaskGroup(of: Int?.self) { group in
      for _ in 0..<waiting {
        group.addTask { [url = try url()] in
          (try await session.data(from: url).1 as? HTTPURLResponse)?.statusCode
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == Array(repeating: 200, count: waiting) && count.withLock { $0 } == 1)
    #expect(server.requestsReceived == 2 * waiting)
  }

  /// Another token that is refused as well is not replaced for the same request.
  @Test func onceForEachRequest() async throws {
    let count = Mutex(0)
    let session = try session { _ in
      count.withLock { $0 += 1 }
      return "wrong"
    }
    defer { session.invalidateAndCancel() }
    let (data, response) = try await session.data(from: url())
    #expect((response as? HTTPURLResponse)?.statusCode == 401 && data == Data("Bearer wrong".utf8))
    #expect(count.withLock { $0 } == 1 && server.requestsReceived == 2)
  }

  @Test func aReplacementThatFails() async throws {
    let session = try session { _ in throw Refused() }
    defer { session.invalidateAndCancel() }
    for _ in 0..<2 { await #expect(throws: Refused.self) { try await session.data(from: url()) } }
    #expect(server.requestsReceived == 2)
  }

  /// The token does not follow a redirection, and other origins do not get it.
  @Test func otherOrigins() async throws {
    let other = try TestServer()
    let session = try session { $0 }
    defer { session.invalidateAndCancel() }
    _ = try await session.data(from: url("/redirect-to?url=\(other.url("/get"))"))
    _ = try await session.data(from: #require(URL(string: other.url("/status/401"))))
    #expect(server.requests.map { $0.fields["Authorization"] } == ["Bearer old"])
    #expect(other.requests.map { $0.fields["Authorization"] } == [nil, nil])
  }

  /// A request that was redirected before it was refused carries the earlier token.
  @Test func aRedirectionWithinTheOrigin() async throws {
    let session = try session { _ in "new" }
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.data(from: url("/redirect-to?url=\(server.url("/private"))"))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.requests.map { $0.fields["Authorization"] } == ["Bearer old", "Bearer old", "Bearer new"])
  }

  /// A field of the program's is not replaced.
  @Test func aFieldOfTheRequest() async throws {
    let session = try session { _ in throw Refused() }
    defer { session.invalidateAndCancel() }
    var request = URLRequest(url: try url())
    request.setValue("Basic x", forHTTPHeaderField: "Authorization")
    let (data, _) = try await session.data(for: request)
    #expect(data == Data("Basic x".utf8) && server.requestsReceived == 1)
  }
}
