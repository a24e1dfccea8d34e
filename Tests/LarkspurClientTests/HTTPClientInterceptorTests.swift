import LarkspurClient
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests what interceptors see of a client's requests, and what their decisions do.
@Suite struct HTTPClientInterceptorTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  /// Decides by a list, and keeps what it was asked.
  private final class Recorder: HTTPClient.Interceptor {
    let attempts = Mutex<[HTTPClient.InterceptedAttempt]>([])
    let decisions: [HTTPClient.InterceptorDecision]
    let attemptTimeout: Duration?

    init(_ decisions: [HTTPClient.InterceptorDecision] = [], attemptTimeout: Duration? = nil) {
      self.decisions = decisions
      self.attemptTimeout = attemptTimeout
    }

    func adapt(_ request: HTTPClient.Request, attempt: Int) async throws -> HTTPClient.Request {
      var request = request
      request.fields.append(Field("X-Attempt", "\(attempt)"))
      return request
    }

    func decide(after attempt: HTTPClient.InterceptedAttempt) async -> HTTPClient.InterceptorDecision {
      attempts.withLock { $0.append(attempt) }
      return attempt.number <= decisions.count ? decisions[attempt.number - 1] : .deliver
    }
  }

  private struct Refused: Error {}

  private func client(
    _ interceptors: any HTTPClient.Interceptor..., change: (inout HTTPClient.Options) -> Void = { _ in }
  ) -> HTTPClient {
    HTTPClientTests.client {
      $0.interceptors = interceptors
      change(&$0)
    }
  }

  /// The values of the field that `Recorder` adds, in the order of the requests.
  private var attemptsSeen: [String?] { server.requests.map { $0.fields["X-Attempt"] } }

  private func failure(_ operation: () async throws -> Void) async -> (any Error)? {
    do {
      try await operation()
      return nil
    } catch {
      return error
    }
  }

  // MARK: - Requests and decisions

  /// Each attempt changes the program's request, and not the one of an earlier attempt.
  @Test func requestsAreAdapted() async throws {
    let recorder = Recorder([.retry(after: .zero), .retry(after: .milliseconds(1))])
    #expect(try await client(recorder).get(server.url("/status/503")) { $0.status } == 503)
    #expect(attemptsSeen == ["1", "2", "3"])
    #expect(recorder.attempts.withLock { $0.map(\.statusCode) } == [503, 503, 503])
    #expect(recorder.attempts.withLock { $0.map(\.earlierStatusCodes) } == [[], [503], [503, 503]])
    #expect(server.connectionsAccepted == 1)
  }

  /// A redirection is a part of an attempt. Another attempt begins at the place that the redirection led to.
  @Test func redirections() async throws {
    let recorder = Recorder([.retry(after: .zero)])
    let url = server.url("/redirect-to?url=\(server.url("/status/500"))")
    #expect(try await client(recorder).get(url) { $0.status } == 500)
    #expect(server.requests.dropFirst().map(\.target) == ["/status/500", "/status/500"])
    #expect(recorder.attempts.withLock { $0.map(\.number) } == [1, 2])
  }

  /// Errors of interceptors are the request's, as they are.
  @Test func errorsOfInterceptors() async {
    struct Failing: HTTPClient.Interceptor {
      func adapt(_ request: HTTPClient.Request, attempt: Int) async throws -> HTTPClient.Request { throw Refused() }
    }
    let (first, third) = (Recorder(), Recorder())
    let clients = [client(Failing()), client(first, Recorder([.fail(Refused())]), third)]
    for client in clients {
      let error = await failure { try await client.get(server.url("/get")) { _ in } }
      #expect(error is Refused)
    }
    #expect(server.requestsReceived == 1)
    #expect(first.attempts.withLock(\.count) == 1 && third.attempts.withLock(\.count) == 0)
  }

  /// Bodies are sent again, except a sequence, which can be iterated once.
  @Test func bodies() async throws {
    let pieces = AsyncStream { continuation in
      continuation.yield(Array("body".utf8))
      continuation.finish()
    }
    for body in [.text("body"), .sequence(pieces)] as [HTTPClient.RequestBody] {
      server.enqueue([
        .expectRequest, .send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .serveRoutes(requests: 1),
      ])
      let recorder = Recorder([.retry(after: .zero)])
      let request = HTTPClient.Request(server.url("/anything"), method: "PUT", body: body)
      _ = try await client(recorder).perform(request) { $0.status }
      #expect(recorder.attempts.withLock { $0.allSatisfy { $0.bytesSent == 4 } })
    }
    #expect(server.requests.map(\.body) == Array(repeating: Array("body".utf8), count: 3))
  }

  /// A WebSocket's handshake gets the changes.
  @Test func handshakes() async throws {
    let token = HTTPClient.BearerTokenInterceptor("token", for: [server.url("/")]) { $0 }
    try await client(Recorder([.retry(after: .zero)]), token).webSocket(server.webSocketURL("/websocket/messages/1")) {
      _ = try await $0.receive()
    }
    #expect(attemptsSeen == ["1"] && server.webSockets.first?.request.fields["Authorization"] == "Bearer token")
  }

  // MARK: - Time

  @Test func aLimitForEachAttempt() async throws {
    server.enqueue([.expectRequest, .hang])
    var policy = HTTPClient.RetryPolicy.standard
    policy.rules.firstDelay = .zero
    // On a slow machine, further attempts may take too long.
    policy.rules.attemptsMax = 10
    policy.attemptTimeout = .milliseconds(200)
    let recorder = Recorder()
    #expect(try await client(recorder, policy).get(server.url("/status/204")) { $0.status } == 204)
    #expect(recorder.attempts.withLock { $0.first?.error?.code } == .timedOut)
  }

  /// The limit of the whole request counts while a delay passes.
  @Test func aDelayThatIsTooLong() async {
    let client = client(Recorder([.retry(after: .seconds(3600))])) { $0.timeouts.total = .seconds(2) }
    let error = await failure { try await client.get(server.url("/status/503")) { _ in } } as? HTTPClientError
    #expect(error?.code == .timedOut && error?.reason.contains("between two attempts") == true)
  }

  @Test func cancellationDuringADelay() async throws {
    let recorder = Recorder([.retry(after: .seconds(3600))])
    let (client, url) = (client(recorder), server.url("/status/503"))
    let task = Task { try await client.get(url) { _ in } }
    await Wait.until("the interceptor has decided") { recorder.attempts.withLock(\.count) == 1 }
    task.cancel()
    #expect(await HTTPClientTests.failure { try await task.value } == .cancelled)
    #expect(server.requestsReceived == 1)
  }

  // MARK: - The policy

  private func policy(_ budget: HTTPClient.RetryPolicy.Budget = .init()) -> HTTPClient.RetryPolicy {
    var rules = HTTPClient.RetryPolicy.Rules()
    rules.firstDelay = .zero
    return HTTPClient.RetryPolicy(rules: rules, budget: budget)
  }

  @Test func aServerThatRecovers() async throws {
    server.enqueue(
      [.expectRequest, .send("HTTP/1.1 503 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close],
      [.expectRequest, .reset])
    #expect(try await client(policy()).get(server.url("/status/204")) { $0.status } == 204)
    #expect(server.requestsReceived == 3)
  }

  @Test func aServerThatBreaksConnections() async {
    let client = client(policy())
    let code = await HTTPClientTests.failure { try await client.get(server.url("/reset")) { _ in } }
    #expect(code == .connectionLost)
    #expect(server.requestsReceived == 3)
  }

  /// A request that may have had an effect is sent once, unless the server can recognize its repetition.
  @Test func methods() async throws {
    let client = client(policy())
    var request = HTTPClient.Request(server.url("/status/503"), method: "POST", body: .text("body"))
    #expect(try await client.perform(request) { $0.status } == 503)
    request.fields.append(Field("Idempotency-Key", "5"))
    #expect(try await client.perform(request) { $0.status } == 503)
    #expect(server.requests.map { $0.fields["Idempotency-Key"] } == [nil, "5", "5", "5"])
  }

  /// All requests of a policy share its budget.
  @Test func theBudget() async throws {
    let client = client(policy(.init(share: 0, reserve: 3)))
    for _ in 0..<5 { #expect(try await client.get(server.url("/status/503")) { $0.status } == 503) }
    #expect(server.requestsReceived == 8)
  }

  // MARK: - Tokens

  private func client(
    refreshing refresh: @escaping @Sendable (String) async throws -> String
  ) -> HTTPClient {
    server.route("GET", "/private") { request in
      .text("", status: request.fields["Authorization"] == "Bearer new" ? 200 : 401)
    }
    return client(HTTPClient.BearerTokenInterceptor("old", for: [server.url("/")], refresh: refresh))
  }

  /// Many requests are refused, and the token is replaced once.
  @Test func oneReplacement() async throws {
    let count = Mutex(0)
    let (server, waiting) = (server, 6)
    let client = client(refreshing: { refused in
      count.withLock { $0 += 1 }
      // All requests have been refused before the new token is there.
      _ = try await server.waitForRequests(waiting)
      return refused == "old" ? "new" : "wrong"
    })
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<waiting { group.addTask { try await client.get(server.url("/private")) { $0.status } } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == Array(repeating: 200, count: waiting) && count.withLock { $0 } == 1)
    #expect(server.requestsReceived == 2 * waiting)
  }

  @Test func aReplacementThatFails() async {
    let client = client(refreshing: { _ in throw Refused() })
    for _ in 0..<2 {
      let error = await failure { try await client.get(server.url("/private")) { _ in } }
      #expect(error is Refused)
    }
    #expect(server.requestsReceived == 2)
  }

  /// The token does not follow a redirection to another origin, and a request redirected within its origin gets the new one.
  @Test func redirectedTokens() async throws {
    let other = try TestServer()
    let client = client(refreshing: { _ in "new" })
    let within = server.url("/redirect-to?url=\(server.url("/private"))")
    let away = server.url("/redirect-to?url=\(other.url("/status/401"))")
    #expect(try await client.get(within) { $0.status } == 200)
    #expect(try await client.get(away) { $0.status } == 401)
    let tokens = ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]
    #expect(server.requests.map { $0.fields["Authorization"] } == tokens)
    #expect(other.requests.map { $0.fields["Authorization"] } == [nil])
  }
}
