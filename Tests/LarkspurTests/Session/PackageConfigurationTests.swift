import Foundation
import Larkspur
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport
import Synchronization
import Testing

/// Tests the settings of a configuration that only this package uses.
@Suite(.timeLimit(.minutes(1))) struct PackageConfigurationTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  // MARK: - The time for opening a connection

  private func error(
    _ url: String, proxy: String? = nil, connection: TimeInterval?
  ) async throws -> TransportError? {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForConnection = connection
    configuration.connectionProxyDictionary =
      proxy == nil ? [:] : ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": Int(server.port)]
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) {
      _ = try await session.data(from: try #require(URL(string: url)))
    }
    #expect(error?.code == .timedOut)
    return error?.transportError
  }

  @Test func phaseOfALateConnection() async throws {
    server.defaultScript = [.hang]
    #expect(
      try await error("https://a.invalid/", proxy: server.authority, connection: 0.2) == .timedOut(.tunnelling))
    let late = try await error("https://\(server.authority)/", connection: 0.2)
    guard case .tls(let problem) = late else {
      Issue.record("\(String(describing: late))")
      return
    }
    #expect(problem.problem == .handshakeTimedOut)
  }

  @Test(arguments: [0, -1]) func aLimitThatIsNotPositiveIsNone(limit: TimeInterval) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForConnection = limit
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    _ = try await session.data(from: try #require(URL(string: server.url("/get"))))
  }

  /// The limit ends with the opening of the connection.
  @Test func lateResponse() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForConnection = 2
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.data(from: try #require(URL(string: server.url("/delay/2500"))))
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
  }

  // MARK: - The proxy's tunnel

  @Test func userAgentOfTunnels() async throws {
    server.defaultScript = [.expectRequest, .send("HTTP/1.1 403 Forbidden\r\n\r\n"), .close]
    for agent in [nil, "mine"] {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.httpAdditionalHeaders = agent.map { ["user-agent": $0] }
      configuration.connectionProxyDictionary = [
        "HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": Int(server.port),
      ]
      let session = URLSession(configuration: configuration)
      await #expect(throws: URLError.self) {
        _ = try await session.data(from: try #require(URL(string: "https://a.invalid/")))
      }
      let sent = try #require(server.requests.last?.fields["User-Agent"])
      #expect(agent == nil ? sent.hasSuffix(" Larkspur") : sent == "mine")
      session.invalidateAndCancel()
    }
  }
}
