import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct FailureTests {
  let server: TestServer

  init() throws {
    server = try TestServer()
  }

  /// Runs a script against a client that sends `sent` and then ends its side.
  ///
  /// - Returns: The failures that the server recorded.
  private func failures(_ script: TestServer.Script, _ sent: String) async throws -> [String] {
    server.enqueue(script)
    let client = try RawClient(server)
    try client.send(sent)
    client.halfClose()
    try await server.waitForClosedConnections(1)
    return server.failures
  }

  @Test func requestThatDoesNotCome() async throws {
    #expect(
      try await failures([.expectRequest], "")
        == ["connection 1, script step 1 (expectRequest): no request came before the connection ended"])
  }

  @Test func headThatIsCut() async throws {
    #expect(
      try await failures([.fire(.init()), .repeat([.expectRequest])], "GET / HTTP/1.1\r\nHos") == [
        "connection 1, script step 2.1 (expectRequest): only 19 bytes of a head came before the connection ended"
      ])
  }

  @Test func bodyThatIsCut() async throws {
    #expect(
      try await failures([.expectRequest], "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhell")
        == ["connection 1, script step 1 (expectRequest): the body was not whole before the connection ended"])
  }

  @Test func anotherRequest() async throws {
    #expect(
      try await failures([.expectRequest("GET", "/a")], "GET /b HTTP/1.1\r\nHost: test\r\n\r\n")
        == ["connection 1, script step 1 (expectRequest GET /a): the target is /b, not /a"])
  }

  @Test func otherBytes() async throws {
    #expect(
      try await failures([.expectBytes("hello")], "help!") == [
        "connection 1, script step 1 (expectBytes): byte 3 is different: \"p!\" came, not \"lo\""
      ])
  }

  @Test func fewerBytes() async throws {
    #expect(
      try await failures([.expectBytes(count: 5)], "hel")
        == ["connection 1, script step 1 (expectBytes(count: 5)): 3 bytes of 5 came before the connection ended"])
  }

  @Test func bytesInPlaceOfTheEnd() async throws {
    #expect(
      try await failures([.expectClose], "a\r\n\u{1}")
        == ["connection 1, script step 1 (expectClose): the client was to close, and sent \"a\\r\\n\\x01\""])
  }

  @Test func scriptThatGoesOnAfterItsClose() async throws {
    #expect(
      try await failures([.close, .send("x")], "")
        == ["connection 1, script step 2 (send): the script has closed the connection already"])
  }

  @Test func clientThatDoesNotCloseBeforeTheStop() async throws {
    let reached = TestServer.Signal()
    server.enqueue([.fire(reached), .expectClose])
    let client = try RawClient(server)
    try await reached.wait()
    server.stop()
    #expect(
      server.failures
        == ["connection 1, script step 2 (expectClose): the client had not closed when the server was stopped"])
    withExtendedLifetime(client) {}
  }

  @Test func scriptsAndRoutesThatStartEachOther() throws {
    server.route("GET", "/loop", script: [.respond(.text("x")), .serveRoutes(requests: 1)])
    let client = try RawClient(server)
    var answers = 0
    while (try? client.get("/loop").text) == "x" { answers += 1 }
    #expect(answers == 8)
    #expect(
      server.failures == [
        "connection 1, script step 2 (serveRoutes(requests: 1)): scripts and routes start each other without end"
      ])
  }

  @Test(arguments: [
    ("GET /\r\n\r\n", "the request line is not `METHOD target HTTP/1.x`: \"GET /\""),
    ("GET / HTTP/2.0\r\n\r\n", "the version is neither HTTP/1.1 nor HTTP/1.0: \"HTTP/2.0\""),
    ("G\u{1}T / HTTP/1.1\r\n\r\n", "the method is not a token: \"G\\x01T\""),
    ("GET / HTTP/1.1\nHost: x\n\n", "a line ends without CR: \"GET / HTTP/1.1\""),
    ("GET / HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n", "a field line has no colon: \"nonsense\""),
    ("GET / HTTP/1.1\r\nHost: x\r\na b: c\r\n\r\n", "a field name is not a token: \"a b\""),
    ("GET / HTTP/1.1\r\nHost: x\0y\r\n\r\n", "a field value has a control character: \"Host: x\\x00y\""),
    ("GET / HTTP/1.1\r\n\r\n", "0 Host fields (RFC 9112, section 3.2 wants one)"),
    ("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "2 Host fields (RFC 9112, section 3.2 wants one)"),
    (
      "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "Content-Length beside Transfer-Encoding"
    ),
    ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", "Content-Length is not one number: +1"),
    (
      "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "Content-Length is not one number: 99999999999999999999"
    ),
    ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "a transfer coding other than chunked: gzip"),
    ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", "not a chunk size: \"z\""),
    ("GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "a chunk is longer than it says"),
  ])
  func malformedRequest(sent: String, message: String) throws {
    let client = try RawClient(server)
    try client.send(sent)
    let response = try client.response()
    #expect(response.status == 400)
    #expect(response.field("Connection") == "close")
    #expect(server.failures == ["connection 1, malformed request: \(message)"])
  }

  @Test func hugeHead() throws {
    var options = TestServer.Options()
    options.headBytesMax = 1000
    let server = try TestServer(options)
    let client = try RawClient(server)
    // Tests one byte below the limit, the limit and one byte past it, and then a head without an end.
    let start = "GET /get HTTP/1.1\r\nHost: test\r\nX: "
    for (count, status) in [(999, 200), (1000, 200), (1001, 431)] {
      try client.send(start + String(repeating: "x", count: count - start.utf8.count - 4) + "\r\n\r\n")
      #expect(try client.response().status == status)
    }
    let other = try RawClient(server)
    // The server continues to read after its response, so that the client can receive the response.
    try other.send([UInt8](repeating: UInt8(ascii: "x"), count: 3_000_000))
    #expect(try other.response().status == 431)
  }
}
