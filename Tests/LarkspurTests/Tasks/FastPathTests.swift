import Foundation
import LarkspurTestServer
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// Loads over an idle connection start on the fast path, without a Swift task, and fall back to one if the response
/// needs more than delivery.
@Suite(.timeLimit(.minutes(2))) struct FastPathTests {
  let server: TestServer
  let session: URLSession

  init() throws {
    server = try TestServer()
    session = URLSession(configuration: .ephemeral)
  }

  private func request(_ path: String = "/") throws -> URLRequest {
    URLRequest(url: try #require(URL(string: server.url(path))))
  }

  private static func answer(_ status: String, _ fields: String, _ body: String) -> String {
    "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(fields)\r\n\(body)"
  }

  private static let first: TestServer.Script = [.expectRequest, .send(answer("first"))]

  private struct Outcome: Sendable {
    var text: String?
    var status: Int?
    var code: URLError.Code?
  }

  private typealias Load = (task: URLSessionDataTask, outcome: @Sendable () async -> Outcome?)

  /// Performs a load that opens the connection, and then starts a task that reuses it.
  private func second(_ request: URLRequest? = nil) async throws -> Load {
    #expect(try await session.data(for: self.request()).0 == Data("first".utf8))
    return try start(request, in: session)
  }

  private func start(_ request: URLRequest? = nil, in session: URLSession) throws -> Load {
    let (outcomes, source) = AsyncStream<Outcome>.makeStream()
    let task = session.dataTask(with: try request ?? self.request()) { data, response, error in
      source.yield(
        Outcome(
          text: data.map { String(decoding: $0, as: UTF8.self) }, status: (response as? HTTPURLResponse)?.statusCode,
          code: (error as? URLError)?.code))
    }
    task.resume()
    return (
      task,
      {
        for await outcome in outcomes { return outcome }
        return nil
      }
    )
  }

  struct Answer: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var script: TestServer.Script
    var text: String?
    var status: Int? = 200
    var code: URLError.Code?
    /// The script of another connection, for a repeated request.
    var retry: TestServer.Script?
  }

  private static let ok: TestServer.Script = [.expectRequest, .send(answer("ok"))]
  private static let gzipped: [UInt8] = [
    31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 207, 6, 0, 71, 221, 220, 121, 2, 0, 0, 0,
  ]

  static let answers: [Answer] = [
    Answer(testDescription: "plain", script: [.send(answer("ok"))], text: "ok"),
    Answer(testDescription: "in bytes", script: [.send(answer("ok"), inPiecesOf: 1)], text: "ok"),
    Answer(testDescription: "empty", script: [.send("HTTP/1.1 204 No Content\r\n\r\n")], text: "", status: 204),
    Answer(testDescription: "not found", script: [.send(answer("404 Not Found", "no"))], text: "no", status: 404),
    Answer(
      testDescription: "interim", script: [.send("HTTP/1.1 103 Early Hints\r\n\r\n"), .send(answer("ok"))],
      text: "ok"),
    Answer(
      testDescription: "chunked",
      script: [
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", inPiecesOf: 5)
      ],
      text: "ok"),
    Answer(testDescription: "to the end", script: [.send("HTTP/1.1 200 OK\r\n\r\nok"), .close], text: "ok"),
    Answer(
      testDescription: "coded",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(gzipped.count)\r\n\r\n"), .send(gzipped),
      ], text: "ok"),
    Answer(
      testDescription: "redirection", script: [.send(answer("302 Found", "Location: /there\r\n", "no"))] + ok,
      text: "ok"),
    Answer(
      testDescription: "challenge", script: [.send(answer("401 No", "WWW-Authenticate: Basic realm=a\r\n", "who"))],
      text: "who", status: 401),
    Answer(testDescription: "closed before it", script: [.close], text: "ok", retry: ok),
    Answer(
      testDescription: "too late for the server",
      script: [.send(answer("408 Request Timeout", "Connection: close\r\n", "")), .close], text: "ok", retry: ok),
    Answer(
      testDescription: "cut", script: [.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"), .close], status: nil,
      code: .networkConnectionLost),
    Answer(
      testDescription: "no chunks",
      script: [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz")], status: nil,
      code: .cannotParseResponse),
    Answer(testDescription: "no HTTP", script: [.send("220 mail\r\n\r\n")], status: nil, code: .cannotParseResponse),
  ]

  private static func answer(_ body: String) -> String { answer("200 OK", "", body) }
  private static func answer(_ status: String, _ body: String) -> String { answer(status, "", body) }

  @Test(arguments: answers) func answersOfAllKinds(_ answer: Answer) async throws {
    let (hasCome, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue(Self.first + [.expectRequest, .fire(hasCome), .wait(mayAnswer)] + answer.script + [.hang])
    if let retry = answer.retry { server.enqueue(retry + [.hang]) }
    let (task, outcome) = try await second()
    try await hasCome.wait()
    #expect(await task.isQuick)
    mayAnswer.fire()
    let end = try #require(await outcome())
    #expect(end.text == answer.text && end.code == answer.code && (answer.code != nil || end.status == answer.status))
    #expect(task.state == .completed)
  }

  /// Cancelling a load closes its connection, and the next load dials a new one.
  @Test func itIsCancelled() async throws {
    let hasCome = TestServer.Signal()
    server.enqueue(Self.first + [.expectRequest, .fire(hasCome), .hang])
    server.enqueue(Self.ok + [.hang])
    let (task, outcome) = try await second()
    try await hasCome.wait()
    #expect(await task.isQuick)
    task.cancel()
    #expect(await outcome()?.code == .cancelled)
    #expect(try await session.data(for: request()).0 == Data("ok".utf8))
  }

  @Test func itsTimeIsUp() async throws {
    server.enqueue(Self.first + [.expectRequest, .hang])
    var request = try request()
    request.timeoutInterval = 0.2
    let (_, outcome) = try await second(request)
    #expect(await outcome()?.code == .timedOut)
  }

  /// A response that arrives while the task is suspended is delivered after `resume`.
  @Test(arguments: [true, false]) func itIsSuspended(whileTheAnswerComes: Bool) async throws {
    let (hasCome, mayAnswer, isAnswered) = (TestServer.Signal(), TestServer.Signal(), TestServer.Signal())
    server.enqueue(
      Self.first + [
        .expectRequest, .fire(hasCome), .wait(mayAnswer), .send(Self.answer("ok")), .fire(isAnswered), .hang,
      ])
    let (task, outcome) = try await second()
    try await hasCome.wait()
    #expect(await task.isQuick)
    task.suspend()
    if whileTheAnswerComes {
      mayAnswer.fire()
      try await isAnswered.wait()
      // `isQuick` runs on the loop, which has processed the response by then.
      for _ in 0..<3 { _ = await task.isQuick }
      #expect(task.state == .suspended)
    }
    task.resume()
    mayAnswer.fire()
    #expect(await outcome()?.text == "ok")
  }

  enum WaitOutcome: CaseIterable {
    case answered
    case answeredOverAnother
    case cancelled
    case suspended
    case answeredLate
  }

  /// A load that waits for a connection is answered, cancelled and suspended like any other. The time of its request does
  /// not count.
  @Test(arguments: WaitOutcome.allCases) func itWaitsForAConnection(_ end: WaitOutcome) async throws {
    let (hasCome, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    let closes = end == .answeredOverAnother
    let fields = closes ? "Connection: close\r\n" : ""
    server.enqueue(
      Self.first + [.expectRequest, .fire(hasCome), .wait(mayAnswer), .send(Self.answer("200 OK", fields, "busy"))]
        + (closes ? [.close] : Self.ok + Self.ok + [.hang]))
    server.enqueue(Self.ok + [.hang])
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 1
    let session = URLSession(configuration: configuration)
    #expect(try await session.data(for: request()).0 == Data("first".utf8))
    let busy = try start(in: session)
    try await hasCome.wait()
    var request = try request()
    if end == .answeredLate { request.timeoutInterval = 2 }
    let (task, outcome) = try start(request, in: session)
    await Wait.until("the task waits for a connection") { await task.isQuick }
    switch end {
    case .answered, .answeredOverAnother:
      mayAnswer.fire()
      #expect(await outcome()?.text == "ok")
    case .cancelled:
      task.cancel()
      #expect(await outcome()?.code == .cancelled)
      mayAnswer.fire()
    case .suspended:
      task.suspend()
      mayAnswer.fire()
      #expect(await busy.outcome()?.text == "busy")
      // The connection serves other loads while the task is suspended.
      #expect(try await session.data(for: self.request()).0 == Data("ok".utf8))
      task.resume()
      #expect(await outcome()?.text == "ok")
    case .answeredLate:
      let other = try TestServer()
      _ = try await URLSession(configuration: .ephemeral).data(
        from: try #require(URL(string: other.url("/delay/5000"))))
      mayAnswer.fire()
      #expect(await outcome()?.text == "ok")
    }
    if end != .suspended { #expect(await busy.outcome()?.text == "busy") }
    let pool = try #require(try session.core.engine()).pool
    let (waiting, isIdle) = await pool.loop.run { (pool.counts.waiting, pool.counts.idle == pool.counts.connections) }
    #expect(waiting == 0 && isIdle)
  }

  /// Opens two connections and leaves both idle.
  private func openConnections() async throws {
    let (isHeld, mayGo) = (TestServer.Signal(), TestServer.Signal())
    server.route("GET", "/held", script: [.fire(isHeld), .wait(mayGo), .send(Self.answer("held")), .serveRoutes])
    server.route("GET", "/other") { _ in .text("other") }
    let held = try start(request("/held"), in: session)
    try await isHeld.wait()
    #expect(try await session.data(for: request("/other")).0 == Data("other".utf8))
    mayGo.fire()
    #expect(await held.outcome()?.text == "held")
  }

  /// Credentials that another load has stored after this request was sent are used to answer its challenge.
  @Test func credentialsComeWhileItWaits() async throws {
    try await openConnections()
    let (hasCome, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    let answer: @Sendable (TestServer.Request) -> TestServer.Response = {
      if $0.fields["Authorization"] != nil { return .text("known") }
      return TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=a"])
    }
    server.route("GET", "/learns", respond: answer)
    server.route(
      "GET", "/waits",
      script: [
        .fire(hasCome), .wait(mayAnswer), .send(Self.answer("401 No", "WWW-Authenticate: Basic realm=a\r\n", "who")),
        .serveRoutes,
      ])
    let urls = try ["/waits", "/learns"].map {
      try #require(URL(string: server.url($0).replacing("http://", with: "http://user:password@")))
    }
    let (task, outcome) = try start(URLRequest(url: urls[0]), in: session)
    try await hasCome.wait()
    #expect(await task.isQuick)
    server.route("GET", "/waits", respond: answer)
    #expect(try await session.data(from: urls[1]).0 == Data("known".utf8))
    mayAnswer.fire()
    #expect(await outcome()?.text == "known")
  }

  /// A response is stored as the answer to the fields that were sent, not to the current cookies.
  @Test func cookiesComeWhileItWaits() async throws {
    try await openConnections()
    let (hasCome, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    let fields = "Cache-Control: max-age=60\r\nVary: Cookie\r\n"
    server.route(
      "GET", "/page",
      script: [.fire(hasCome), .wait(mayAnswer), .send(Self.answer("200 OK", fields, "nobody's")), .serveRoutes])
    server.route("GET", "/login", script: [.send(Self.answer("200 OK", "Set-Cookie: a=b\r\n", "")), .serveRoutes])
    let (task, outcome) = try start(request("/page"), in: session)
    try await hasCome.wait()
    #expect(await task.isQuick)
    _ = try await session.data(for: request("/login"))
    mayAnswer.fire()
    #expect(await outcome()?.text == "nobody's")
    server.route("GET", "/page") { .text($0.fields["Cookie"] ?? "") }
    #expect(try await session.data(for: request("/page")).0 == Data("a=b".utf8))
  }

  /// The load resumed first gets the connection first, even if it has a body that is not on the fast path.
  @Test func noLoadIsOvertaken() async throws {
    server.route("*", "/") { .text($0.method) }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 1
    let session = URLSession(configuration: configuration)
    var put = try request()
    for _ in 0..<2 { _ = try await session.data(for: put) }
    put.httpMethod = "PUT"
    put.httpBody = Data(count: 20_000)
    let (first, second) = (put, try request())
    for _ in 0..<20 {
      let loads = try await withTaskExecutorPreference(session.taskExecutor) {
        // Both loads start in one tick.
        [try start(first, in: session), try start(second, in: session)]
      }
      for load in loads { _ = await load.outcome() }
      #expect(server.requests.suffix(2).map(\.method) == ["PUT", "GET"])
    }
  }

  private final class Refuser: NSObject, URLSessionTaskDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(nil) }
  }

  /// A delegate set while the load waits for the response is asked.
  @Test func aDelegateComes() async throws {
    let (hasCome, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue(
      Self.first + [
        .expectRequest, .fire(hasCome), .wait(mayAnswer), .send(Self.answer("302 Found", "Location: /\r\n", "here")),
        .hang,
      ])
    let (task, outcome) = try await second()
    try await hasCome.wait()
    let refuser = Refuser()
    task.delegate = refuser
    mayAnswer.fire()
    let end = await outcome()
    #expect(end?.status == 302 && end?.text == "here")
    withExtendedLifetime(refuser) {}
  }

  @Test func cookiesAreKept() async throws {
    server.enqueue(
      Self.first + [.expectRequest, .send(Self.answer("200 OK", "Set-Cookie: a=b\r\n", "ok")), .hang])
    let (_, outcome) = try await second()
    #expect(await outcome()?.text == "ok")
    let cookies = session.configuration.httpCookieStorage?.cookies ?? []
    #expect(cookies.map(\.name) == ["a"])
  }

  /// A response that may be stored is stored.
  @Test func theCacheHears() async throws {
    server.enqueue(
      Self.first + [.expectRequest, .send(Self.answer("200 OK", "Cache-Control: max-age=60\r\n", "ok")), .hang])
    let (_, outcome) = try await second()
    #expect(await outcome()?.text == "ok")
    #expect(try await session.data(for: request()).0 == Data("ok".utf8))
  }

  /// Loads on and off the loop succeed with fewer, as many and more concurrent requests than connections.
  @Test(arguments: [true, false], [1, 4, 24]) func manyLoads(onLoop: Bool, atOnce: Int) async throws {
    server.route("GET", "/") { _ in .text("ok") }
    let (session, request) = (session, try request())
    try await withTaskExecutorPreference(onLoop ? session.taskExecutor : nil) {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<atOnce {
          group.addTask {
            for _ in 0..<(240 / atOnce) {
              let (data, response) = try await session.data(for: request)
              #expect(data == Data("ok".utf8) && (response as? HTTPURLResponse)?.statusCode == 200)
            }
          }
        }
        try await group.waitForAll()
      }
    }
    #expect(await session.allTasks.isEmpty)
  }

  /// A caller whose responses come from the cache at once does not block the executor's other tasks.
  @Test(.ownThread) func othersComeBetweenAnswersFromTheCache() async throws {
    server.route("GET", "/") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=600"], body: .bytes(Array("ok".utf8)))
    }
    let (session, request, hasCome) = (session, try request(), TestServer.Signal())
    _ = try await session.data(for: request)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        while !hasCome.hasFired { _ = try await session.data(for: request) }
      }
      group.addTask { hasCome.fire() }
      try await group.waitForAll()
    }
    #expect(server.requests.count == 1)
  }

  /// A caller that has been cancelled before the call sends no request.
  @Test(arguments: [true, false]) func callersAreCancelledBefore(onLoop: Bool) async throws {
    server.route("GET", "/") { _ in .text("ok") }
    let (session, request) = (session, try request())
    _ = try await session.data(for: request)
    let task = Task(executorPreference: onLoop ? session.taskExecutor : nil) {
      try await Event.cancellation()
      return try await session.data(for: request).0
    }
    task.cancel()
    let error = await #expect(throws: URLError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    #expect(try await session.data(for: request).0 == Data("ok".utf8))
    #expect(server.requestsReceived == 2)
  }

  /// A caller that is cancelled at a random moment gets one result.
  @Test(arguments: [true, false]) func callersAreCancelled(onLoop: Bool) async throws {
    server.route("GET", "/") { _ in .text("ok") }
    let (session, request) = (session, try request())
    for _ in 0..<200 {
      let task = Task {
        try await withTaskExecutorPreference(onLoop ? session.taskExecutor : nil) {
          for _ in 0..<3 { _ = try await session.data(for: request) }
        }
      }
      for _ in 0..<Int.random(in: 0..<40) { await Task.yield() }
      task.cancel()
      let result = await task.result
      if case .failure(let error) = result { #expect((error as? URLError)?.code == .cancelled) }
    }
    #expect(try await session.data(for: request).0 == Data("ok".utf8))
  }
}

extension URLSessionTask {
  /// Whether the load has started and has no Swift task.
  var isQuick: Bool {
    get async {
      guard let load = read({ $0.load }) else { return false }
      return await load.engine.loop.run { load.networkLoad != nil && !load.hasWorker }
    }
  }
}
