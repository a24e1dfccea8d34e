import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// The observer of a session's tasks and connections.
@Suite struct SessionEventTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  /// The events of a session in words.
  private final class Events: HTTPEventObserver {
    private let names = Mutex<[String]>([])

    var all: [String] { names.withLock { $0 } }

    func observe(_ event: HTTPEvent) {
      guard case .connection(let kind) = event.kind else { return }
      let name: String? =
        switch kind {
        case .resolving: "resolving"
        case .connected: "connected"
        case .requestStarted(let head, let bytes, _):
          "> \(String(decoding: head.prefix { $0 != 13 }, as: UTF8.self)), \(bytes - head.count)"
        case .requestSent: "sent"
        case .interimReceived(let status, _, _): "interim \(status)"
        case .headReceived(_, let head): "< \(String(decoding: head, as: UTF8.self).debugDescription)"
        case .bodyReceived(let bytes): "body \(bytes)"
        case .completed: "completed"
        case .failed: "failed"
        case .closed(let reason): "closed \(reason)"
        default: nil
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
    configuration.eventObserver = events
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
    configuration.eventObserver = events
    let session = URLSession(configuration: configuration)
    _ = try await session.data(from: try #require(URL(string: server.url("/bytes/9"))))
    #expect(events.all.last == "completed")
    await session.flush()
    #expect(events.all.last == "closed unneeded")
    session.invalidateAndCancel()
  }

  /// The events of tasks, with the numbers of tasks and connections.
  private final class Tasks: HTTPEventObserver {
    private let seen = Mutex<[String]>([])

    func take() -> [String] {
      seen.withLock { seen in
        defer { seen = [] }
        return seen
      }
    }

    func observe(_ event: HTTPEvent) {
      let word: String? =
        switch event.redacted.kind {
        case .started(let method, let url): "started \(method) \(Self.path(url))"
        case .request(let method, let url): "request \(method) \(Self.path(url))"
        case .cache(let use): "\(use)"
        case .retry(let delay): "retry \(delay)"
        case .ended(let error): "ended\(error == nil ? "" : " with an error")"
        case .connection(.connected): "connected"
        case .connection(.openFailed): "open failed"
        case .connection(.requestStarted(_, _, let isReused)): isReused ? "reused" : "new"
        case .connection(.completed): "completed"
        case .connection: nil
        }
      if let word { seen.withLock { $0.append("\(event.task ?? 0).\(event.connection ?? 0) \(word)") } }
    }

    private static func path(_ url: String) -> String {
      "/" + url.split(separator: "/", omittingEmptySubsequences: false).dropFirst(3).joined(separator: "/")
    }
  }

  private struct OneRetry: URLSessionInterceptor {
    func decide(after attempt: URLSessionAttempt) async -> URLSession.InterceptorDecision {
      attempt.statusCode == 503 && attempt.number == 1 ? .retry(after: .zero) : .deliver
    }
  }

  @Test func tasksAndConnections() async throws {
    let tasks = Tasks()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.eventObserver = tasks
    configuration.interceptors = [OneRetry()]
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    server.route("GET", "/kept") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=60"], body: .text("kept"))
    }
    _ = try await session.data(from: try #require(URL(string: server.url("/redirect/1?token=secret"))))
    #expect(
      tasks.take() == [
        "1.0 started GET /redirect/1?token=(redacted)", "1.0 request GET /redirect/1?token=(redacted)", "1.1 connected",
        "1.1 new", "1.1 completed", "1.0 request GET /get", "1.1 reused", "1.1 completed", "1.0 ended",
      ])
    let kept = try #require(URL(string: server.url("/kept")))
    _ = try await session.data(from: kept)
    #expect(
      tasks.take() == [
        "2.0 started GET /kept", "2.0 request GET /kept", "2.1 reused", "2.0 storing", "2.1 completed", "2.0 ended",
      ])
    _ = try await session.data(from: kept)
    #expect(tasks.take() == ["3.0 started GET /kept", "3.0 served", "3.0 ended"])
    _ = try await session.data(from: try #require(URL(string: server.url("/status/503"))))
    #expect(
      tasks.take().filter { $0.contains("retry") || $0.contains("request") || $0.contains("ended") }
        == ["4.0 request GET /status/503", "4.0 retry 0.0 seconds", "4.0 request GET /status/503", "4.0 ended"])
    await #expect(throws: URLError.self) {
      _ = try await session.data(from: try #require(URL(string: "http://127.0.0.1:1/")))
    }
    #expect(
      tasks.take() == ["5.0 started GET /", "5.0 request GET /", "5.2 open failed", "5.0 ended with an error"])
  }
}
