import LarkspurClient
import LarkspurTestServer
import Synchronization
import Testing

/// A client's requests against a server on this machine.
@Suite struct HTTPClientTests {
  let server: TestServer
  let client: HTTPClient

  init() throws {
    server = try TestServer()
    client = Self.client()
  }

  /// A client that has no proxy, whatever the environment of the tests is.
  static func client(_ change: (inout HTTPClient.Options) -> Void = { _ in }) -> HTTPClient {
    var options = HTTPClient.Options()
    options.proxy = .none
    change(&options)
    return HTTPClient(options)
  }

  /// The error of a request, or `nil` if it succeeds.
  static func failure(_ operation: () async throws -> Void) async -> HTTPClientError.Code? {
    do {
      try await operation()
      return nil
    } catch {
      return (error as? HTTPClientError)?.code
    }
  }

  // MARK: - Responses

  @Test func get() async throws {
    let text = try await client.get(server.url("/headers"), fields: [Field("X-One", "1")]) { response in
      #expect(response.status == 200 && response.url == server.url("/headers"))
      #expect(response.value(of: "content-type")?.hasPrefix("application/json") == true)
      return String(decoding: try await response.body.collect(upTo: 1 << 16), as: UTF8.self)
    }
    #expect(text.contains("X-One"))
    let request = try #require(server.requests.first)
    #expect(
      request.fields["Accept-Encoding"] == "gzip, deflate"
        && request.fields["User-Agent"]?.hasSuffix("Larkspur") == true)
  }

  @Test(arguments: ["/bytes/300000", "/chunked/300000", "/close-delimited/300000", "/gzip/300000", "/deflate/300000"])
  func bodies(path: String) async throws {
    let (pieces, sum) = try await client.get(server.url(path)) { response in
      var sum = TestServer.Checksum()
      var pieces = 0
      for try await piece in response.body {
        #expect(!piece.isEmpty)
        sum.update(piece)
        pieces += 1
      }
      return (pieces, sum)
    }
    #expect(pieces > 1 && sum == TestServer.contentChecksum(count: 300_000))
  }

  @Test func anEmptyBody() async throws {
    server.enqueue([.expectRequest, .send("HTTP/1.1 204 No Content\r\n\r\n")])
    let body = try await client.get(server.url()) { try await $0.body.collect(upTo: 0) }
    #expect(body.isEmpty)
  }

  @Test(arguments: [("/bytes/10", 9, true), ("/bytes/10", 10, false), ("/gzip/100000", 99_999, true)])
  func theLimitOfCollect(path: String, limit: Int, isExceeded: Bool) async {
    let code = await Self.failure {
      _ = try await client.get(server.url(path)) { try await $0.body.collect(upTo: limit) }
    }
    #expect(code == (isExceeded ? .tooLarge : nil))
  }

  @Test func trailersComeWithTheEnd() async throws {
    server.route("GET", "/trailers") { _ in
      var response = TestServer.Response(status: 200, body: .text("text"), framing: .chunked())
      response.trailers = ["X-Sum": "1"]
      return response
    }
    try await client.get(server.url("/trailers")) { response in
      _ = try await response.body.collect(upTo: 100)
      #expect(response.body.trailers == [Field("X-Sum", "1")])
    }
  }

  @Test func lines() async throws {
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\none\r\ntwo\n\nthr\u{e9}\rlast", inPiecesOf: 1),
    ])
    let lines = try await client.get(server.url()) { response in
      var lines: [String] = []
      for try await line in response.body.lines() { lines.append(line) }
      return lines
    }
    #expect(lines == ["one", "two", "", "thr\u{e9}", "last"])
  }

  @Test func aLineHasALimit() async {
    let code = await Self.failure {
      try await client.get(server.url("/bytes/100")) { response in
        for try await line in response.body.lines(upTo: 1) { _ = line }
      }
    }
    #expect(code == .tooLarge)
  }

  @Test func events() async throws {
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 33\r\n\r\n"),
      .send("id: 7\ndata: a\n\nevent: b\ndata: c\n\n", inPiecesOf: 5),
    ])
    let events = try await client.get(server.url()) { response in
      var events: [HTTPClient.ResponseBody.Event] = []
      for try await event in response.body.events() { events.append(event) }
      return events
    }
    #expect(
      events == [
        .init(type: "message", data: "a", lastEventID: "7"), .init(type: "b", data: "c", lastEventID: "7"),
      ])
  }

  // MARK: - The scope of a body

  @Test func aBodyOutsideOfItsClosureThrows() async throws {
    let body = try await client.get(server.url("/bytes/100000000")) { $0.body }
    #expect(await Self.failure { _ = try await body.collect(upTo: 1 << 30) } == .bodyOver)
  }

  /// Little of a body is drained, and its connection serves the next request; much is not.
  @Test(arguments: [("/bytes/60000", 1), ("/chunked/1000", 1), ("/bytes/100000000", 2)])
  func aClosureThatEndsEarly(path: String, connections: Int) async throws {
    #expect(try await client.get(server.url(path)) { $0.status } == 200)
    #expect(try await client.get(server.url("/bytes/1")) { try await $0.body.collect(upTo: 1).count } == 1)
    #expect(server.connectionsAccepted == connections)
  }

  @Test func anErrorOfTheClosureIsTheCallsError() async throws {
    struct Own: Error {}
    await #expect(throws: Own.self) { try await client.get(server.url("/bytes/100000000")) { _ in throw Own() } }
    try await server.waitForClosedConnections(1)
    #expect(try await client.get(server.url("/bytes/1")) { $0.status } == 200)
  }

  @Test func connectionsAreReused() async throws {
    for _ in 0..<5 { _ = try await client.get(server.url("/bytes/100")) { try await $0.body.collect(upTo: 100) } }
    #expect(server.connectionsAccepted == 1)
  }

  /// A client lives as long as its requests.
  @Test func aClientWithoutAnotherReference() async throws {
    #expect(try await Self.client().get(server.url("/redirect/3")) { $0.status } == 200)
  }

  @Test func manyAtOnce() async throws {
    let (server, client) = (server, client)
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 1...64 {
        group.addTask {
          try await client.get(server.url("/bytes/\(number)")) { try await $0.body.collect(upTo: number).count }
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(sum == 64 * 65 / 2 && server.connectionsAccepted <= 8)
  }

  // MARK: - Ends

  @Test func aTaskIsCancelledWhileItWaits() async throws {
    let (server, client) = (server, client)
    let task = Task { try await client.get(server.url("/hang")) { $0.status } }
    _ = try await server.waitForRequests(1)
    task.cancel()
    #expect(await Self.failure { _ = try await task.value } == .cancelled)
    try await server.waitForClosedConnections(1)
  }

  @Test func aTaskIsCancelledWhileItReads() async throws {
    let (server, client) = (server, client)
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .expectClose])
    let (heads, head) = AsyncStream<Void>.makeStream()
    let task = Task {
      try await client.get(server.url()) { response in
        head.yield()
        return try await response.body.collect(upTo: 10)
      }
    }
    for await _ in heads { break }
    task.cancel()
    #expect(await Self.failure { _ = try await task.value } == .cancelled)
    try await server.waitForClosedConnections(1)
  }

  @Test func aTaskThatWasCancelledBeforeSendsNothing() async {
    let client = client
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await client.get(server.url("/bytes/1")) { $0.status }
    }
    #expect(await Self.failure { _ = try await task.value } == .cancelled)
    #expect(server.requestsReceived == 0)
  }

  @Test func aPeerThatCutsTheBody() async {
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close])
    let code = await Self.failure { _ = try await client.get(server.url()) { try await $0.body.collect(upTo: 10) } }
    #expect(code == .connectionLost)
  }

  /// The bytes before the error come first, and the error comes with each further read.
  @Test func theBytesBeforeAnError() async throws {
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close])
    try await client.get(server.url()) { response in
      #expect(response.status == 200)
      var pieces = response.body.makeAsyncIterator()
      var bytes: [UInt8] = []
      while bytes.count < 5, let piece = try await pieces.next() { bytes += piece }
      #expect(bytes == Array("hello".utf8))
      for _ in 0..<2 { await #expect(throws: HTTPClientError.self) { _ = try await response.body.collect(upTo: 10) } }
    }
  }

  @Test func codedContentThatIsCut() async {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"),
    ])
    let code = await Self.failure { _ = try await client.get(server.url()) { try await $0.body.collect(upTo: 10) } }
    #expect(code == .invalidResponse)
  }

  /// A connection that the server has closed is replaced without an error.
  @Test func aStaleConnection() async throws {
    server.enqueue(
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .expectRequest, .close],
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")])
    #expect(try await client.get(server.url()) { $0.status } == 200)
    let body = try await client.get(server.url()) { try await $0.body.collect(upTo: 10) }
    #expect(body == Array("ok".utf8) && server.connectionsAccepted == 2)
  }

  @Test func timeLimits() async {
    let client = Self.client {
      $0.timeouts.firstByte = .milliseconds(20)
      $0.timeouts.idle = .milliseconds(20)
    }
    #expect(await Self.failure { _ = try await client.get(server.url("/hang")) { $0.status } } == .timedOut)
    server.enqueue([.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .expectClose])
    let body = await Self.failure { _ = try await client.get(server.url()) { try await $0.body.collect(upTo: 10) } }
    #expect(body == .timedOut)
    let whole = Self.client { $0.timeouts.total = .milliseconds(20) }
    #expect(await Self.failure { _ = try await whole.get(server.url("/hang")) { $0.status } } == .timedOut)
  }

  // MARK: - URLs and requests

  @Test(arguments: [
    ("", "does not begin with"), ("example.org", "does not begin with"), ("ftp://a.example", "does not begin with"),
    ("http://", "no host"), ("http://a.example:99999/", "port"), ("http://a.example:0/", "port 0"),
    ("http://b\u{fc}cher.example/", "xn--"),
  ])
  func aWrongURLSaysWhatIsWrong(url: String, reason: String) async {
    do {
      _ = try await client.get(url) { $0.status }
      Issue.record("the URL is accepted")
    } catch {
      let error = error as? HTTPClientError
      #expect(error?.code == .invalidURL && error?.description.contains(reason) == true)
    }
  }

  @Test func noPasswordIsInAnError() async {
    do {
      _ = try await client.get("http://user:secret@127.0.0.1:0/") { $0.status }
    } catch {
      #expect(!"\(error)".contains("secret"))
    }
  }

  @Test func whatCannotBeSent() async {
    let fields = await Self.failure {
      _ = try await client.get(server.url(), fields: [Field("A", "b\r\nC: d")]) { $0.status }
    }
    let method = await Self.failure { _ = try await client.perform(.init(server.url(), method: "A B")) { $0.status } }
    let body = await Self.failure { _ = try await client.perform(.init(server.url(), body: .text("x"))) { $0.status } }
    #expect([fields, method, body] == [.invalidRequest, .invalidRequest, .invalidRequest])
    #expect(server.connectionsAccepted == 0)
  }

  // MARK: - Redirections

  @Test(arguments: [(303, "GET", ""), (302, "GET", ""), (307, "POST", "body"), (308, "POST", "body")])
  func redirections(status: Int, method: String, body: String) async throws {
    let url = server.url("/redirect-to?url=/anything&status=\(status)")
    try await client.post(url, .text("body"), contentType: "text/plain") { response in
      #expect(response.status == 200 && response.url == server.url("/anything"))
    }
    let last = try #require(server.requests.last)
    #expect(last.method == method && last.bodyText == body && (last.fields["Content-Type"] != nil) == !body.isEmpty)
    #expect(server.connectionsAccepted == 1)
  }

  /// Fields that are private to an origin are not sent to another.
  @Test func aRedirectionToAnotherOrigin() async throws {
    let other = try TestServer()
    let client = Self.client { $0.fields = [Field("Authorization", "of the client"), Field("X-All", "1")] }
    server.route("GET", "/away") { _ in .redirect(to: other.url("/anything")) }
    server.route("GET", "/here") { _ in .redirect(to: "/anything") }
    for (path, end) in [("/away", other), ("/here", server)] {
      for fields in [[Field("Authorization", "own"), Field("Cookie", "own=1")], []] {
        #expect(try await client.get(server.url(path), fields: fields) { $0.status } == 200)
        let last = try #require(end.requests.last)
        let isKept = end === server
        #expect((last.fields["Authorization"] != nil) == isKept && last.fields["X-All"] == "1")
        #expect((last.fields["Cookie"] != nil) == (isKept && !fields.isEmpty))
      }
    }
  }

  @Test func redirectionsHaveALimit() async throws {
    #expect(
      await Self.failure { _ = try await client.get(server.url("/redirect/21")) { $0.status } } == .tooManyRedirections)
    #expect(try await client.get(server.url("/redirect/20")) { $0.status } == 200)
    let none = Self.client { $0.followsRedirects = false }
    #expect(try await none.get(server.url("/redirect/1")) { $0.status } == 302)
  }

  @Test(arguments: ["file:///etc/passwd", "http://[broken/", "ftp://a.example/"])
  func aRedirectionThatCannotBeFollowed(location: String) async {
    server.route("GET", "/away") { _ in .redirect(to: location) }
    let code = await Self.failure { _ = try await client.get(server.url("/away")) { $0.status } }
    #expect(code == .invalidURL)
  }

  // MARK: - Cookies

  @Test(arguments: [false, true]) func cookies(areKept: Bool) async throws {
    let client = Self.client { $0.keepsCookies = areKept }
    server.route("GET", "/set") { _ in
      TestServer.Response(status: 303, fields: ["Set-Cookie": "a=1; Path=/", "Location": "/anything"], body: .text(""))
    }
    for path in ["/set", "/anything"] { _ = try await client.get(server.url(path)) { $0.status } }
    #expect(server.requests.map { $0.fields["Cookie"] } == (areKept ? [nil, "a=1", "a=1"] : [nil, nil, nil]))
  }
}
