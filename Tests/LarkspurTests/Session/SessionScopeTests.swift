import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests sessions of a scope, and connections that are open before the first request.
@Suite(.timeLimit(.minutes(1))) struct SessionScopeTests {
  let server: TestServer
  private struct Failure: Error {}

  init() throws { server = try TestServer() }

  private func url(_ path: String = "/get") throws -> URL { try #require(URL(string: server.url(path))) }

  private func isOver(_ session: URLSession?) async throws -> Bool {
    let session = try #require(session)
    let error = await #expect(throws: URLError.self) { _ = try await session.data(from: try url()) }
    return error?.code == .cancelled
  }

  @Test func theSessionEndsWithTheScope() async throws {
    var kept: URLSession?
    let status = try await URLSession.withSession(configuration: .ephemeral) { session in
      kept = session
      return (try await session.data(from: try url()).1 as? HTTPURLResponse)?.statusCode
    }
    #expect(status == 200)
    #expect(try await isOver(kept))
    await #expect(throws: Failure.self) {
      try await URLSession.withSession(configuration: .ephemeral) { session throws(Failure) in
        kept = session
        throw Failure()
      }
    }
    #expect(try await isOver(kept))
  }

  @Test func connectionsBeforeTheFirstRequest() async throws {
    try await URLSession.withSession(configuration: .ephemeral) { session in
      #expect(try await session.prepareConnections(to: try url(), count: 2) == 2)
      #expect(try await session.prepareConnections(to: try url("/other")) == 2)
      async let one = session.data(from: try url("/delay/50"))
      async let two = session.data(from: try url("/delay/50"))
      _ = try await (one, two)
      #expect(server.connectionsAccepted == 2)
      #expect(try await session.prepareConnections(to: try url(), count: 1000) == 6)
    }
  }

  @Test func connectionsThatCannotBePrepared() async throws {
    func code(_ url: String, count: Int = 1, _ configuration: URLSessionConfiguration = .ephemeral) async throws
      -> URLError.Code?
    {
      let url = try #require(URL(string: url))
      return await URLSession.withSession(configuration: configuration) { session in
        await #expect(throws: URLError.self) { try await session.prepareConnections(to: url, count: count) }?.code
      }
    }
    #expect(try await code(server.url("/"), count: 0) == .cannotConnectToHost)
    #expect(try await code("ftp://a.invalid/") == .unsupportedURL)
    #expect(try await code("http://a.invalid/") == .cannotFindHost)
    #expect(server.connectionsAccepted == 0)
  }
}
