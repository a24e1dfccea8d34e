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

  // MARK: - The observer

  /// The events of a session in words.
  private final class Events: Sendable {
    private let names = Mutex<[String]>([])

    var all: [String] { names.withLock { $0 } }

    func note(_ event: ConnectionEvent) {
      let name: String? =
        switch event {
        case .resolving: "resolving"
        case .connected: "connected"
        case .requestStarted(let head, let bytes):
          "> \(String(decoding: head.prefix { $0 != 13 }, as: UTF8.self)), \(bytes - head.count)"
        case .requestSent: "sent"
        case .interimReceived(let status, _, _): "interim \(status)"
        case .headReceived(_, let head): "< \(String(decoding: head, as: UTF8.self).debugDescription)"
        case .bodyReceived(let bytes): "body \(bytes)"
        case .completed: "completed"
        case .failed: "failed"
        case .closed(let reason): "closed \(reason)"
        case .resolved, .connecting, .connectFailed, .tunnelling, .tunnelled, .securing, .secured, .bodySent,
          .handedOver:
          nil
        }
      if let name { names.withLock { $0.append(name) } }
    }
  }

  /// A body's sending has an observer of the task's own, and the session's observer gets its events, too.
  @Test(arguments: [false, true]) func observer(hasDelegate: Bool) async throws {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200  odd\r\nb:1\r\nContent-Length: 2\r\n\r\nok"),
      .expectRequest, .send("HTTP/1.1 204 No Content\r\n\r\n"), .expectRequest, .close,
    ])
    let events = Events()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldUsePipelining = true
    configuration.connectionObserver = { event, _ in events.note(event) }
    let recorder = hasDelegate ? SessionRecorder() : nil
    let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    var request = URLRequest(url: try #require(URL(string: server.url("/a"))))
    request.httpMethod = "POST"
    request.httpBody = Data("body".utf8)
    _ = try await session.data(for: request)
    let url = try #require(URL(string: server.url("/b")))
    _ = try await session.data(from: url)
    request.url = url
    await #expect(throws: URLError.self) { _ = try await session.data(for: request) }
    await session.flush()
    let first = [
      "resolving", "connected", "> POST /a HTTP/1.1, 4", "sent", "interim 103",
      "< \("HTTP/1.1 200  odd\r\nb:1\r\nContent-Length: 2\r\n\r\n".debugDescription)", "body 2", "completed",
    ]
    let second = [
      "> GET /b HTTP/1.1, 0", "sent", "< \("HTTP/1.1 204 No Content\r\n\r\n".debugDescription)", "completed",
    ]
    let third = ["> POST /b HTTP/1.1, 4", "sent", "failed", "closed exchangeFailed"]
    #expect(events.all == first + second + third)
    session.invalidateAndCancel()
  }

  /// The end of an idle connection is reported.
  @Test func idleConnection() async throws {
    let events = Events()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionObserver = { event, _ in events.note(event) }
    let session = URLSession(configuration: configuration)
    _ = try await session.data(from: try #require(URL(string: server.url("/bytes/9"))))
    #expect(events.all.last == "completed")
    await session.flush()
    #expect(events.all.last == "closed unneeded")
    session.invalidateAndCancel()
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
