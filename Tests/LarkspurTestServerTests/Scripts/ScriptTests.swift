import LarkspurIO
import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct ScriptTests {
  @Test(arguments: Transport.allCases) func answersAsWritten(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([
      .expectRequest("GET", "/x"), .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
      .send("hello", inPiecesOf: 1),
      .send(latin1: "\u{e9}\u{ff}"), .close,
    ])
    let client = try transport.client(server)
    try client.request("GET", "/x")
    #expect(try client.readToEnd().suffix(9) == Array("\r\nhello".utf8) + [0xe9, 0xff])
    #expect(server.requests.map(\.target) == ["/x"])
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func scriptsAreGivenInOrderThenTheDefaultThenTheRoutes(transport: Transport)
    throws
  {
    let server = try transport.start()
    server.enqueue([.send("one")], [.send("two")])
    server.defaultScript = [.send("any")]
    #expect(try transport.client(server).textToEnd() == "one")
    #expect(server.scriptsPending == 1)
    #expect(try transport.client(server).textToEnd() == "two")
    #expect(try transport.client(server).textToEnd() == "any")
    #expect(try transport.client(server).textToEnd() == "any")
    server.defaultScript = nil
    #expect(try transport.client(server).get("/get").status == 200)
    #expect(server.connectionsAccepted == 5)
  }

  @Test(arguments: Transport.allCases) func signalsGoBothWays(transport: Transport) async throws {
    let server = try transport.start()
    let (reached, go) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue([.expectRequest, .fire(reached), .wait(go), .send("done")])
    let client = try transport.client(server)
    try client.request("GET", "/")
    try await reached.wait()
    #expect(server.requestsReceived == 1)
    go.fire()
    #expect(try client.textToEnd() == "done")
    #expect(go.hasFired)
  }

  @Test(arguments: Transport.allCases) func reset(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([.expectRequest, .send("HTTP/1.1 2"), .reset])
    let client = try transport.client(server)
    try client.request("GET", "/")
    #expect(throws: (any Error).self) { try client.readToEnd() }
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func endsTakeEffectBeforeTheNextStep(transport: Transport) throws {
    let server = try transport.start()
    // The last step would keep the connection open forever.
    server.enqueue([.reset, .wait(.init())], [.close, .wait(.init())])
    let first = try transport.client(server)
    #expect(throws: Errno.connectionReset) { try first.readToEnd() }
    let second = try transport.client(server)
    #expect(try second.readToEnd() == [])
    // The socket is closed in both directions, so the kernel answers further bytes with a reset.
    try second.send("late")
    #expect(throws: (any Error).self) { while true { try second.send("later") } }
  }

  @Test(arguments: Transport.allCases) func closeIsInOrderThoughBytesAreUnread(transport: Transport) throws {
    let server = try transport.start()
    let sent = TestServer.Signal()
    server.enqueue([.wait(sent), .send("bye"), .close])
    let client = try transport.client(server)
    try client.request("GET", "/")
    sent.fire()
    #expect(try client.textToEnd() == "bye")
  }

  @Test(arguments: Transport.allCases) func halfCloseGoesOnReading(transport: Transport) async throws {
    let server = try transport.start()
    server.enqueue([.expectRequest, .send("bye"), .halfClose, .expectBytes("more"), .expectClose])
    let client = try transport.client(server)
    try client.request("GET", "/")
    #expect(try client.textToEnd() == "bye")
    #expect(server.connectionsClosed == 0)
    try client.send("more")
    client.halfClose()
    try await server.waitForClosedConnections(1)
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func halfCloseAtTheEndWaitsForTheClient(transport: Transport) async throws {
    let server = try transport.start()
    server.enqueue([.halfClose])
    let client = try transport.client(server)
    #expect(try client.textToEnd() == "")
    try client.send("whatever")
    client.halfClose()
    try await server.waitForClosedConnections(1)
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func hangEndsWithTheClient(transport: Transport) async throws {
    let server = try transport.start()
    server.enqueue([.hang])
    let client = try transport.client(server)
    try client.send("unread")
    client.halfClose()
    try await server.waitForClosedConnections(1)
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func hangEndsWithTheServer(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([.hang])
    let client = try transport.client(server)
    let other = try transport.client(server)
    // The server accepts this connection after the first one.
    #expect(try other.get("/get").status == 200)
    server.stop()
    #expect((try? client.readToEnd()) ?? [] == [])
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func serveRoutes(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([.expectRequest, .respond(.text("first")), .serveRoutes(requests: 2), .send("last")])
    let client = try transport.client(server)
    #expect(try client.get("/").text == "first")
    #expect(try client.get("/bytes/1").body.count == 1)
    #expect(try client.get("/bytes/2").body.count == 2)
    #expect(try client.textToEnd() == "last")
    server.enqueue([.send("hello\n"), .serveRoutes])
    let second = try transport.client(server)
    #expect(try second.read(count: 6) == Array("hello\n".utf8))
    for _ in 1...3 { #expect(try second.get("/get").status == 200) }
  }

  @Test(arguments: Transport.allCases) func repeatUntilTheClientCloses(transport: Transport) async throws {
    let server = try transport.start()
    server.defaultScript = [.repeat([.expectRequest, .respond(.text("again"))])]
    let client = try transport.client(server)
    for _ in 1...3 { #expect(try client.get("/").text == "again") }
    client.halfClose()
    try await server.waitForClosedConnections(1)
    #expect(server.failures.isEmpty)
    #expect(server.requestsReceived == 3)
  }

  @Test(arguments: Transport.allCases) func repeatSoManyTimes(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([.repeat(3, [.send("a"), .repeat(2, [.send("b")])])])
    #expect(try transport.client(server).textToEnd() == "abbabbabb")
  }

  @Test(arguments: Transport.allCases) func scriptsAreValues(transport: Transport) throws {
    let server = try transport.start()
    let hello: TestServer.Script = [.expectRequest, .send("hello")]
    server.enqueue(hello + [.send(" world")], hello)
    for text in ["hello world", "hello"] {
      let client = try transport.client(server)
      try client.request("GET", "/")
      #expect(try client.textToEnd() == text)
    }
  }

  @Test(arguments: Transport.allCases) func headThenBody(transport: Transport) async throws {
    let server = try transport.start()
    let head = TestServer.Signal()
    server.enqueue([
      .expectHead, .fire(head), .send("HTTP/1.1 100 Continue\r\n\r\n"), .expectBody, .respond(.text("thanks")),
    ])
    let client = try transport.client(server)
    try client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    try await head.wait()
    #expect(server.requests.map(\.bodyText) == [""])
    #expect(try client.response().status == 100)
    try client.send("hello")
    #expect(try client.response().text == "thanks")
    #expect(server.requests.map(\.bodyText) == ["hello"])
  }

  @Test(arguments: Transport.allCases) func scriptOfARoute(transport: Transport) throws {
    let server = try transport.start()
    server.route("GET", "/cut", script: [.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut"), .close])
    server.route("GET", "/go-on", script: [.respond(.text("on")), .serveRoutes])
    let client = try transport.client(server)
    for _ in 1...20 { #expect(try client.get("/go-on").text == "on") }
    try client.request("GET", "/cut")
    #expect(try client.textToEnd().hasSuffix("\r\n\r\ncut"))
  }

  @Test(arguments: Transport.allCases) func contentOfAnySize(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([.setSendBuffer(bytes: 4096), .sendContent(5..<500_000)])
    #expect(try transport.client(server).readToEnd() == TestServer.content(5..<500_000))
  }

  @Test(arguments: Transport.allCases) func pauseAndGapsDoNotChangeTheBytes(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([.pause(.milliseconds(1)), .send("abcdef", inPiecesOf: 4, every: .milliseconds(1))])
    #expect(try transport.client(server).textToEnd() == "abcdef")
  }

  @Test(arguments: Transport.allCases) func respondKnowsTheRequest(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([.expectRequest, .respond(.text("not sent"))])
    let client = try transport.client(server)
    try client.request("HEAD", "/")
    #expect(try client.textToEnd().hasSuffix("Content-Length: 8\r\n\r\n"))
  }
}
