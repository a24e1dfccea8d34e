import Foundation
import LarkspurTestServer
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// Loads over a connection that is there already: they begin without a task of Swift's own, and go on in one where the answer is
/// not what most are.
@Suite(.timeLimit(.minutes(2))) struct QuickLoadTests {
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

  /// A load behind another one, and a task that has begun it.
  private func second(
    _ request: URLRequest? = nil
  ) async throws -> (task: URLSessionDataTask, outcome: @Sendable () async -> Outcome?) {
    #expect(try await session.data(for: self.request()).0 == Data("first".utf8))
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

  /// Whether no task of Swift's own runs for it.
  private func isQuick(_ task: URLSessionTask) async -> Bool {
    guard let performer = task.read({ $0.performer }) else { return false }
    return await performer.engine.loop.run { performer.isUnderWay }
  }

  struct Answer: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var script: TestServer.Script
    var text: String?
    var status: Int? = 200
    var code: URLError.Code?
    /// Over another connection.
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
      code: .badServerResponse),
    Answer(testDescription: "no HTTP", script: [.send("220 mail\r\n\r\n")], status: nil, code: .badServerResponse),
  ]

  private static func answer(_ body: String) -> String { answer("200 OK", "", body) }
  private static func answer(_ status: String, _ body: String) -> String { answer(status, "", body) }

  @Test(arguments: answers) func answersOfAllKinds(_ answer: Answer) async throws {
    let (hasCome, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue(Self.first + [.expectRequest, .fire(hasCome), .wait(mayAnswer)] + answer.script + [.hang])
    if let retry = answer.retry { server.enqueue(retry + [.hang]) }
    let (task, outcome) = try await second()
    try await hasCome.wait()
    #expect(await isQuick(task))
    mayAnswer.fire()
    let end = try #require(await outcome())
    #expect(end.text == answer.text && end.code == answer.code && (answer.code != nil || end.status == answer.status))
    #expect(task.state == .completed)
  }

  /// Its connection goes with it, and the next load gets another one.
  @Test func itIsCancelled() async throws {
    let hasCome = TestServer.Signal()
    server.enqueue(Self.first + [.expectRequest, .fire(hasCome), .hang])
    server.enqueue(Self.ok + [.hang])
    let (task, outcome) = try await second()
    try await hasCome.wait()
    #expect(await isQuick(task))
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

  /// Whatever comes while it is suspended waits until it goes on.
  @Test(arguments: [true, false]) func itIsSuspended(whileTheAnswerComes: Bool) async throws {
    let (hasCome, mayAnswer, isAnswered) = (TestServer.Signal(), TestServer.Signal(), TestServer.Signal())
    server.enqueue(
      Self.first + [
        .expectRequest, .fire(hasCome), .wait(mayAnswer), .send(Self.answer("ok")), .fire(isAnswered), .hang,
      ])
    let (task, outcome) = try await second()
    try await hasCome.wait()
    #expect(await isQuick(task))
    task.suspend()
    if whileTheAnswerComes {
      mayAnswer.fire()
      try await isAnswered.wait()
      // The loop has seen it by then: it is asked.
      for _ in 0..<3 { _ = await isQuick(task) }
      #expect(task.state == .suspended)
    }
    task.resume()
    mayAnswer.fire()
    #expect(await outcome()?.text == "ok")
  }

  private final class Refuser: NSObject, URLSessionTaskDelegate {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { completionHandler(nil) }
  }

  /// A delegate that comes while the answer is waited for is asked all the same.
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

  /// The response may be stored, and is.
  @Test func theCacheHears() async throws {
    server.enqueue(
      Self.first + [.expectRequest, .send(Self.answer("200 OK", "Cache-Control: max-age=60\r\n", "ok")), .hang])
    let (_, outcome) = try await second()
    #expect(await outcome()?.text == "ok")
    #expect(try await session.data(for: request()).0 == Data("ok".utf8))
  }

  /// On the loop, off it, and as many at once as there are connections, or more.
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

  /// Whose answers come from the cache, and so at once, does not keep the executor's other tasks away.
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

  /// Wherever its caller is cancelled: it ends once.
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
