import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests what interceptors see of a session's loads, and what their decisions do.
@Suite struct InterceptorTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  /// Decides by a list, and keeps what it was asked.
  private final class Recorder: URLSessionInterceptor {
    let attempts = Mutex<[URLSessionAttempt]>([])
    let adaptations = Mutex<[Int]>([])
    typealias Decision = URLSession.InterceptorDecision
    let decisions: [Decision]
    let attemptTimeout: Duration?

    init(_ decisions: [Decision] = [], attemptTimeout: Duration? = nil) {
      self.decisions = decisions
      self.attemptTimeout = attemptTimeout
    }

    func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
      adaptations.withLock { $0.append(attempt) }
      var request = request
      request.addValue("\(attempt)", forHTTPHeaderField: "X-Attempt")
      return request
    }

    func decide(after attempt: URLSessionAttempt) async -> Decision {
      attempts.withLock { $0.append(attempt) }
      return attempt.number <= decisions.count ? decisions[attempt.number - 1] : .deliver
    }
  }

  private struct Refused: Error {}

  private func session(_ interceptors: any URLSessionInterceptor...) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.interceptors = interceptors
    return URLSession(configuration: configuration)
  }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  /// The values of the field that `Recorder` adds, in the order of the requests.
  private var attemptsSeen: [String?] { server.requests.map { $0.fields["X-Attempt"] } }

  // MARK: - Requests

  /// Each attempt changes the program's request, and not the one of an earlier attempt.
  @Test func requestsAreAdapted() async throws {
    let recorder = Recorder([.retry(after: .zero), .retry(after: .zero)])
    let session = session(recorder)
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.data(from: url("/status/503"))
    #expect((response as? HTTPURLResponse)?.statusCode == 503)
    #expect(attemptsSeen == ["1", "2", "3"])
    #expect(recorder.attempts.withLock { $0.map(\.statusCode) } == [503, 503, 503])
    #expect(recorder.attempts.withLock { $0.map(\.earlierStatusCodes) } == [[], [503], [503, 503]])
  }

  /// A redirection is a part of an attempt. Another attempt begins at the place that the redirection led to.
  @Test func redirections() async throws {
    let recorder = Recorder([.retry(after: .zero)])
    let session = session(recorder)
    defer { session.invalidateAndCancel() }
    let target = server.url("/status/500")
    _ = try await session.data(from: url("/redirect-to?url=\(target)"))
    #expect(server.requests.dropFirst().map(\.target) == ["/status/500", "/status/500"])
    #expect(recorder.adaptations.withLock { $0 } == [1, 2])
    #expect(recorder.attempts.withLock { $0.map(\.number) } == [1, 2])
  }

  @Test func anErrorOfAnAdaptationIsTheTasks() async throws {
    struct Failing: URLSessionInterceptor {
      func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest { throw Refused() }
    }
    let session = session(Failing())
    defer { session.invalidateAndCancel() }
    await #expect(throws: Refused.self) { try await session.data(from: url("/get")) }
    #expect(server.requestsReceived == 0)
  }

  // MARK: - Decisions

  @Test func theFirstDecisionCounts() async throws {
    let (first, second) = (Recorder(), Recorder([.fail(Refused())]))
    let third = Recorder([.retry(after: .zero)])
    let session = session(first, second, third)
    defer { session.invalidateAndCancel() }
    await #expect(throws: Refused.self) { try await session.data(from: url("/get")) }
    #expect(first.attempts.withLock(\.count) == 1 && third.attempts.withLock(\.count) == 0)
    #expect(server.requestsReceived == 1)
  }

  /// The body of a response that is dropped is not delivered, and its connection serves the next attempt.
  @Test func aDroppedResponse() async throws {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"),
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ])
    let session = session(Recorder([.retry(after: .milliseconds(1))]))
    defer { session.invalidateAndCancel() }
    let (data, _) = try await session.data(from: url("/"))
    #expect(data == Data("ok".utf8) && server.connectionsAccepted == 1)
  }

  /// An error in the middle of a body: the bytes of the first attempt are dropped.
  @Test func aBodyThatBreaks() async throws {
    server.enqueue(
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .reset],
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")])
    let recorder = Recorder([.deliver, .deliver])
    // The first question is about the head, and the second about the error.
    let again = AfterErrors()
    let session = session(recorder, again)
    defer { session.invalidateAndCancel() }
    let (data, response) = try await session.data(from: url("/"))
    #expect(data == Data("ok".utf8) && response.expectedContentLength == 2)
    #expect(recorder.attempts.withLock { $0.map { $0.error?.code } } == [nil, .networkConnectionLost, nil])
    #expect(recorder.attempts.withLock { $0.allSatisfy(\.isRepeatable) })
  }

  private struct AfterErrors: URLSessionInterceptor {
    func decide(after attempt: URLSessionAttempt) async -> URLSession.InterceptorDecision {
      attempt.error == nil ? .deliver : .retry(after: .zero)
    }
  }

  /// Bytes that a program has are not delivered twice.
  @Test func deliveredBytes() async throws {
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .reset])
    let recorder = Recorder()
    let session = session(recorder, AfterErrors())
    defer { session.invalidateAndCancel() }
    let (bytes, _) = try await session.bytes(from: url("/"))
    var received: [UInt8] = []
    await #expect(throws: URLError.self) { for try await byte in bytes { received.append(byte) } }
    #expect(received == Array("hello".utf8) && server.requestsReceived == 1)
    #expect(recorder.attempts.withLock { $0.map(\.isRepeatable) } == [true, false])
  }

  /// A stream can be read once.
  @Test func streams() async throws {
    let recorder = Recorder([.retry(after: .zero)])
    let session = session(recorder)
    defer { session.invalidateAndCancel() }
    var request = URLRequest(url: try url("/status/503"))
    request.httpMethod = "POST"
    request.httpBodyStream = InputStream(data: Data("body".utf8))
    let (_, response) = try await session.data(for: request)
    #expect((response as? HTTPURLResponse)?.statusCode == 503 && server.requestsReceived == 1)
    #expect(recorder.attempts.withLock { $0.map(\.isRepeatable) } == [false])
  }

  @Test func bodiesAreSentAgain() async throws {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .serveRoutes(requests: 1),
    ])
    let session = session(Recorder([.retry(after: .zero)]))
    defer { session.invalidateAndCancel() }
    var request = URLRequest(url: try url("/anything"))
    request.httpMethod = "PUT"
    _ = try await session.upload(for: request, from: Data("body".utf8))
    #expect(server.requests.map(\.body) == [Array("body".utf8), Array("body".utf8)])
  }

  // MARK: - Time

  /// An attempt that takes too long ends, and another one begins.
  @Test func aLimitForEachAttempt() async throws {
    server.enqueue([.expectRequest, .hang])
    let recorder = Recorder(attemptTimeout: .milliseconds(200))
    let session = session(recorder, AfterErrors())
    defer { session.invalidateAndCancel() }
    let (_, response) = try await session.data(from: url("/status/204"))
    #expect((response as? HTTPURLResponse)?.statusCode == 204)
    // On a slow machine, further attempts may take too long.
    let codes = recorder.attempts.withLock { $0.map { $0.error?.code } }
    #expect(codes.first == .timedOut && codes.last == .some(nil))
  }

  /// Both limits of the session count while a delay passes.
  @Test(arguments: [false, true]) func aDelayThatIsTooLong(isForResource: Bool) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.interceptors = [Recorder([.retry(after: .seconds(3600))])]
    if isForResource {
      configuration.timeoutIntervalForResource = 5
    } else {
      configuration.timeoutIntervalForRequest = 5
    }
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) { try await session.data(from: url("/status/503")) }
    #expect(error?.code == .timedOut && error?.localizedDescription.contains("between two attempts") == true)
  }

  @Test func cancellationDuringADelay() async throws {
    let recorder = Recorder([.retry(after: .seconds(3600))])
    let session = session(recorder)
    defer { session.invalidateAndCancel() }
    let task = Task { [url = try url("/status/503")] in try await session.data(from: url) }
    await Wait.until("the interceptor has decided") { recorder.attempts.withLock(\.count) == 1 }
    task.cancel()
    let error = await #expect(throws: URLError.self) { try await task.value }
    #expect(error?.code == .cancelled && server.requestsReceived == 1)
  }

  /// No attempt begins while the task is suspended.
  @Test func suspensionDuringADelay() async throws {
    final class Suspending: URLSessionInterceptor {
      let task = Mutex<URLSessionTask?>(nil)
      let isResumed = Mutex(false)
      let wasResumed = Mutex<[Bool]>([])
      let decided = Event()

      func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
        let resumed = isResumed.withLock { $0 }
        wasResumed.withLock { $0.append(resumed) }
        return request
      }

      func decide(after attempt: URLSessionAttempt) async -> URLSession.InterceptorDecision {
        guard attempt.number == 1 else { return .deliver }
        task.withLock { $0 }?.suspend()
        decided.fire()
        return .retry(after: .zero)
      }
    }
    let interceptor = Suspending()
    let session = session(interceptor)
    defer { session.invalidateAndCancel() }
    let over = Event()
    let task = session.dataTask(with: try url("/status/503")) { _, _, _ in over.fire() }
    interceptor.task.withLock { $0 = task }
    task.resume()
    try await interceptor.decided.wait()
    interceptor.isResumed.withLock { $0 = true }
    task.resume()
    try await over.wait()
    #expect(interceptor.wasResumed.withLock { $0 } == [false, true] && server.requestsReceived == 2)
  }

  /// Code of the program's is cancelled with its load.
  @Test func cancellationDuringAnAdaptation() async throws {
    struct Endless: URLSessionInterceptor {
      let begun: Event
      func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
        begun.fire()
        // Ends when the task is cancelled.
        let endless = AsyncStream<Void> { _ in }
        for await _ in endless {}
        try Task.checkCancellation()
        return request
      }
    }
    let begun = Event()
    let session = session(Endless(begun: begun))
    defer { session.invalidateAndCancel() }
    let task = Task { [url = try url("/get")] in try await session.data(from: url) }
    try await begun.wait()
    task.cancel()
    let error = await #expect(throws: URLError.self) { try await task.value }
    #expect(error?.code == .cancelled && server.requestsReceived == 0)
  }

  // MARK: - Downloads

  /// A download continues from the bytes that have come.
  @Test func aDownloadContinues() async throws {
    let (total, part) = (300_000, 100_000)
    server.enqueue(
      [
        .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\nETag: \"1\"\r\n\r\n"),
        .sendContent(0..<part), .close,
      ],
      [
        .expectRequest,
        .send(
          "HTTP/1.1 206 Partial\r\nContent-Length: \(total - part)\r\nETag: \"1\"\r\n"
            + "Content-Range: bytes \(part)-\(total - 1)/\(total)\r\n\r\n"), .sendContent(part..<total),
      ])
    let session = session(AfterErrors())
    defer { session.invalidateAndCancel() }
    let (file, _) = try await session.download(from: url("/file"))
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try Data(contentsOf: file) == Data(TestServer.content(count: total)))
    #expect(server.requests.map { $0.fields["Range"] } == [nil, "bytes=\(part)-"])
    #expect(server.requests.last?.fields["If-Range"] == "\"1\"")
  }

  /// Without a strong validator a download starts over.
  @Test func aDownloadStartsOver() async throws {
    server.enqueue(
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close],
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew")])
    let session = session(AfterErrors())
    defer { session.invalidateAndCancel() }
    let (file, _) = try await session.download(from: url("/file"))
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(try Data(contentsOf: file) == Data("new".utf8))
    #expect(server.requests.map { $0.fields["Range"] } == [nil, nil])
  }

  // MARK: - Other sessions and tasks

  @Test func backgroundSessionsRefuseThem() async throws {
    let folder = try TemporaryDirectory()
    let configuration = URLSessionConfiguration.background(withIdentifier: "interceptors")
    configuration.transferStateHome = folder.url.path
    configuration.interceptors = [Recorder()]
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) { try await session.download(from: url("/get")) }
    #expect(error?.code == .resourceUnavailable && error?.localizedDescription.contains("interceptors") == true)
  }

  /// A WebSocket's handshake gets the changes.
  @Test func handshakes() async throws {
    let session = session(Recorder())
    defer { session.invalidateAndCancel() }
    let task = session.webSocketTask(with: try #require(URL(string: server.webSocketURL("/websocket/messages/1"))))
    task.resume()
    _ = try await task.receive()
    #expect(attemptsSeen == ["1"])
  }
}
