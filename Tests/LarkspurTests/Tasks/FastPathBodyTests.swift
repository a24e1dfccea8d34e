import Foundation
import LarkspurTestServer
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// Awaited loads with a small body over an idle connection take the fast path, which needs no Swift task, and follow
/// the rules for repeating requests.
@Suite(.timeLimit(.minutes(2))) struct FastPathBodyTests {
  let server: TestServer
  let session: URLSession

  init() throws { try self.init(TestServer(), URLSession(configuration: .ephemeral)) }

  private init(_ server: TestServer, _ session: URLSession) {
    self.server = server
    self.session = session
  }

  private func get() throws -> URLRequest { URLRequest(url: try #require(URL(string: server.url("/")))) }

  private func post(_ bytes: Int = 3) throws -> URLRequest {
    var request = try get()
    request.httpMethod = "POST"
    request.httpBody = Data(repeating: UInt8(ascii: "x"), count: bytes)
    return request
  }

  private static func answer(_ status: String, _ fields: String, _ body: String) -> TestServer.Script {
    [.send("HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(fields)\r\n\(body)")]
  }

  private static let ok = answer("200 OK", "", "ok")
  /// Two responses: after one, the client does not know yet whether the server keeps the connection open.
  private static let first: TestServer.Script = [.expectRequest] + ok + [.expectRequest] + ok

  private func openConnection() async throws {
    for _ in 0..<2 { #expect(try await session.data(for: get()).0 == Data("ok".utf8)) }
  }

  private struct Outcome: Equatable {
    var status: Int?
    var text: String?
    var code: URLError.Code?
  }

  /// Loads a request that takes the fast path until `script` answers it.
  private func load(
    _ request: URLRequest, isUpload: Bool = false, answeredBy script: TestServer.Script
  ) async throws -> Outcome {
    let (hasCome, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue(Self.first + [.expectRequest, .fire(hasCome), .wait(mayAnswer)] + script)
    // The server for a repeated request.
    server.enqueue([.expectRequest] + Self.ok + [.hang])
    try await openConnection()
    let (session, bytes) = (session, request.httpBody?.count)
    let load = Task { () -> Outcome in
      do {
        let (data, response) =
          isUpload
          ? try await session.upload(for: request, from: request.httpBody ?? Data())
          : try await session.data(for: request)
        return Outcome(status: (response as? HTTPURLResponse)?.statusCode, text: String(decoding: data, as: UTF8.self))
      } catch {
        return Outcome(code: (error as? URLError)?.code)
      }
    }
    try await hasCome.wait()
    let task = try #require(await session.allTasks.first)
    #expect(await task.isQuick)
    mayAnswer.fire()
    let outcome = await load.value
    #expect(server.requests.dropFirst(2).first?.body.count == bytes)
    if outcome.code == nil { #expect(task.countOfBytesSent == Int64(bytes ?? 0)) }
    return outcome
  }

  @Test(arguments: [1, 16 * 1024], [true, false]) func itIsSent(bytes: Int, isUpload: Bool) async throws {
    #expect(
      try await load(post(bytes), isUpload: isUpload, answeredBy: Self.ok + [.hang]) == Outcome(status: 200, text: "ok")
    )
    let request = try #require(server.requests.last)
    #expect(request.method == "POST" && request.fields["Content-Type"] == "application/x-www-form-urlencoded")
    #expect(request.body == Array(repeating: UInt8(ascii: "x"), count: bytes))
  }

  @Test(arguments: [1, 16 * 1024]) func itIsSentOverTLS(bytes: Int) async throws {
    let authority = try TestCA()
    let secure = try TestServer(tls: TestServer.TLS(certificate: authority.issue()))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings.roots = .only([try ServerTrustTests.certificate(authority.rootCertificateDER)])
    let others = FastPathBodyTests(secure, URLSession(configuration: configuration))
    #expect(
      try await others.load(others.post(bytes), answeredBy: Self.ok + [.hang]) == Outcome(status: 200, text: "ok"))
    #expect(secure.requests.last?.body == Array(repeating: UInt8(ascii: "x"), count: bytes))
  }

  @Test func itBringsACookie() async throws {
    let script = Self.answer("200 OK", "Set-Cookie: a=b\r\n", "ok") + [.expectRequest] + Self.ok + [.hang]
    #expect(try await load(post(), answeredBy: script).text == "ok")
    #expect(try await session.data(for: get()).0 == Data("ok".utf8))
    #expect(server.requests.last?.fields["Cookie"] == "a=b")
  }

  /// A load that is cancelled or suspended while it waits for a connection does not take the one that becomes idle.
  /// After `resume` the suspended load gets a connection.
  @Test(arguments: [true, false]) func itWaitsForAConnection(andIsCancelled isCancelled: Bool) async throws {
    let (hasCome, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue(
      Self.first + [.expectRequest, .fire(hasCome), .wait(mayAnswer)] + Self.ok
        + [.expectRequest] + Self.ok + [.expectRequest] + Self.ok + [.hang])
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 1
    let others = FastPathBodyTests(server, URLSession(configuration: configuration))
    try await others.openConnection()
    let (session, busy, request) = (others.session, try get(), try post())
    let first = Task { try await session.data(for: busy).0 }
    try await hasCome.wait()
    let second = Task { try await session.data(for: request).0 }
    var waiting: URLSessionTask?
    await Wait.until("the second load has begun") {
      waiting = await session.allTasks.first { $0.originalRequest?.httpMethod == "POST" }
      return waiting != nil
    }
    let task = try #require(waiting)
    await Wait.until("the task waits for a connection") { await task.isQuick }
    if isCancelled {
      second.cancel()
      let error = await #expect(throws: URLError.self) { try await second.value }
      #expect(error?.code == .cancelled)
    } else {
      task.suspend()
    }
    mayAnswer.fire()
    #expect(try await first.value == Data("ok".utf8))
    #expect(try await session.data(for: busy).0 == Data("ok".utf8))
    #expect(server.requests.allSatisfy { $0.method == "GET" })
    guard !isCancelled else { return }
    task.resume()
    #expect(try await second.value == Data("ok".utf8))
    #expect(server.requests.map(\.method) == ["GET", "GET", "GET", "GET", "POST"])
  }

  @Test func anAnswerInTwoPieces() async throws {
    let script: TestServer.Script = [
      .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", inPiecesOf: 5), .hang,
    ]
    #expect(try await load(post(), answeredBy: script).text == "ok")
  }

  /// A lost POST is not repeated, since the server may have acted on it (RFC 9110 9.2.2).
  @Test func whatIsLostIsNotSentAgain() async throws {
    #expect(try await load(post(), answeredBy: [.close]) == Outcome(code: .networkConnectionLost))
    #expect(server.requestsReceived == 3)
  }

  /// A lost idempotent request is repeated.
  @Test func whatIsLostIsSentAgain() async throws {
    var request = try post()
    request.httpMethod = "PUT"
    #expect(try await load(request, answeredBy: [.close]).text == "ok")
    #expect(server.requestsReceived == 4)
    #expect(server.requests.last?.body == Array("xxx".utf8))
  }

  /// A 408 response to a POST is delivered, and the POST is not repeated: the response may be the server's answer, or a
  /// note about an idle connection.
  @Test func tooLateForTheServer() async throws {
    let script = Self.answer("408 Request Timeout", "Connection: close\r\n", "late") + [.close]
    #expect(try await load(post(), answeredBy: script) == Outcome(status: 408, text: "late"))
    #expect(server.requestsReceived == 3)
  }

  @Test func itGoesElsewhere() async throws {
    let script =
      Self.answer("307 Temporary Redirect", "Location: /there\r\n", "no") + [.expectRequest] + Self.ok + [.hang]
    #expect(try await load(post(), answeredBy: script).text == "ok")
    let request = try #require(server.requests.last)
    #expect(request.target == "/there" && request.method == "POST" && request.body == Array("xxx".utf8))
  }

  /// The server closed the connection before the request was sent, so even a POST uses a new connection.
  @Test func theConnectionIsGone() async throws {
    let isGone = TestServer.Signal()
    server.enqueue(Self.first + [.close, .fire(isGone)])
    server.enqueue([.expectRequest] + Self.ok + [.hang])
    try await openConnection()
    try await isGone.wait()
    #expect(try await session.data(for: post()).0 == Data("ok".utf8))
    #expect(server.requestsReceived == 3)
  }

  /// A successful POST invalidates the stored response (RFC 9111 4.4); a failed one does not.
  @Test(arguments: [200, 500]) func theCacheForgets(status: Int) async throws {
    let fields = "Cache-Control: max-age=60\r\n"
    server.enqueue(
      [.expectRequest] + Self.answer("200 OK", fields, "old")
        + [.expectRequest] + Self.answer("\(status) So", fields, "posted")
        + [.expectRequest] + Self.answer("200 OK", fields, "new") + [.hang])
    for text in ["old", "old"] { #expect(try await session.data(for: get()).0 == Data(text.utf8)) }
    #expect(try await session.data(for: post()).0 == Data("posted".utf8))
    #expect(try await session.data(for: get()).0 == Data((status == 200 ? "new" : "old").utf8))
  }

  /// A body that waits for `100 Continue` does not take the fast path, whether the request or the configuration asks
  /// for it.
  @Test(arguments: [true, false]) func consent(isAskedForByTheRequest: Bool) async throws {
    server.enqueue(Self.first + [.expectRequest] + Self.ok + [.hang])
    let configuration = URLSessionConfiguration.ephemeral
    var request = try post()
    if isAskedForByTheRequest {
      request.setValue("100-continue", forHTTPHeaderField: "Expect")
    } else {
      configuration.httpAdditionalHeaders = ["Expect": "100-continue"]
    }
    let session = URLSession(configuration: configuration)
    for _ in 0..<2 { _ = try await session.data(for: get()) }
    #expect(try await session.data(for: request).0 == Data("ok".utf8))
    #expect(server.requests.last?.body == Array("xxx".utf8))
  }

  /// An interim response counts as progress for the timeout.
  @Test func aServerThatTakesItsTime() async throws {
    let (hasCome, mayGoOn) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue(
      Self.first + [.expectRequest, .fire(hasCome), .wait(mayGoOn), .send("HTTP/1.1 102 Processing\r\n\r\n")] + [.hang])
    try await openConnection()
    let (session, request) = (session, try post())
    let caller = Task { try await session.data(for: request) }
    try await hasCome.wait()
    let load = try #require(await session.allTasks.first?.read { $0.load })
    let before = await load.engine.loop.run { load.clock.lastProgress }
    mayGoOn.fire()
    await Wait.until("the response counts") {
      await load.engine.loop.run { load.clock.lastProgress } != before
    }
    caller.cancel()
    _ = await caller.result
  }

  /// A GET request with a body is refused on this path, too.
  @Test func aGETWithABody() async throws {
    server.enqueue(Self.first + [.hang])
    try await openConnection()
    var request = try post()
    request.httpMethod = "GET"
    let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
    #expect(error?.code == .dataLengthExceedsMaximum)
  }

  /// Loads on and off the loop succeed with fewer, as many and more concurrent requests than connections.
  @Test(arguments: [true, false], [1, 4, 24]) func manyLoads(onLoop: Bool, atOnce: Int) async throws {
    server.route("POST", "/") { .text($0.bodyText) }
    let (session, request) = (session, try post())
    try await withTaskExecutorPreference(onLoop ? session.taskExecutor : nil) {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for index in 0..<atOnce {
          group.addTask {
            var request = request
            request.httpBody = Data("\(index)".utf8)
            for _ in 0..<(240 / atOnce) {
              let data = try await session.data(for: request).0
              #expect(data == Data("\(index)".utf8))
            }
          }
        }
        try await group.waitForAll()
      }
    }
    #expect(server.requestsReceived == 240)
  }
}
