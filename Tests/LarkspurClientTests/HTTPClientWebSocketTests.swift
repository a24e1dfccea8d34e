import LarkspurBytes
import LarkspurClient
import LarkspurTestServer
import Testing

/// A client's WebSockets against a server on this machine.
@Suite struct HTTPClientWebSocketTests {
  let server: TestServer
  let client: HTTPClient

  init() throws {
    server = try TestServer()
    client = HTTPClientTests.client()
  }

  private func url(_ path: String) -> String { server.webSocketURL(path) }

  @Test(arguments: [true, false]) func messages(areCompressed: Bool) async throws {
    var options = HTTPClient.WebSocket.Options()
    options.offersCompression = areCompressed
    let long = String(repeating: "long ", count: 1000)
    let closing = try await client.webSocket(url("/websocket/echo"), protocols: ["one", "two"], options: options) {
      socket in
      #expect(socket.subprotocol == "one")
      for message in [HTTPClient.WebSocket.Message.text("ä"), .bytes([0, 255]), .text(""), .text(long)] {
        try await socket.send(message)
        #expect(try await socket.receive() == message)
      }
      try await socket.close(code: 3000, reason: "bye")
      #expect(try await socket.receive() == nil)
      return socket.closing
    }
    #expect(closing?.code == 3000)
    let seen = try #require(server.webSockets.first)
    #expect(seen.request.fields["Sec-WebSocket-Protocol"] == "one, two")
    #expect((seen.request.fields["Sec-WebSocket-Extensions"] != nil) == areCompressed)
  }

  /// The sequence of messages ends with the server's Close, and later calls fail.
  @Test func theServerCloses() async throws {
    server.webSocket("/feed", [.send("1"), .send("2", fragments: 2), .close(4001, "done"), .drain])
    let texts = try await client.webSocket(url("/feed")) { socket in
      var texts: [HTTPClient.WebSocket.Message] = []
      for try await message in socket { texts.append(message) }
      #expect(socket.closing?.code == 4001 && socket.closing?.reason == "done")
      #expect(await HTTPClientTests.failure { try await socket.send("late") } == .closed)
      return texts
    }
    #expect(texts == [.text("1"), .text("2")])
  }

  /// The end of the closure sends a Close, and waits for the server's: messages before that are dropped.
  @Test func theClosureEnds() async throws {
    server.webSocket("/", [.send("1"), .send("2"), .awaitClose(code: 1000)])
    let socket = try await client.webSocket(url("/")) { $0 }
    #expect(socket.closing?.code == 1000)
    #expect(try await socket.receive() == nil)
    #expect(await HTTPClientTests.failure { try await socket.ping() } == .closed)
    #expect(server.failures.isEmpty)
  }

  /// An error of the closure ends the connection without a Close.
  @Test func theClosureFails() async throws {
    struct Refused: Error {}
    server.webSocket("/", [.awaitEnd])
    await #expect(throws: Refused.self) {
      try await client.webSocket(url("/")) { _ in throw Refused() }
    }
  }

  @Test func pings() async throws {
    server.webSocket("/", [.ping([1]), .awaitPong([1]), .send("x"), .echo])
    try await client.webSocket(url("/")) { socket in
      #expect(try await socket.receive() == .text("x"))
      try await socket.ping()
    }
    #expect(server.failures.isEmpty)
  }

  /// A message above the limit, a broken frame, and an end without a Close.
  @Test(
    arguments: [
      ([.send("12345")], .tooLarge), ([.sendBytes([0xC1, 0])], .invalidResponse),
      ([.end], .connectionLost),
    ] as [([TestServer.WebSocketStep], HTTPClientError.Code)])
  func conversationsThatFail(steps: [TestServer.WebSocketStep], code: HTTPClientError.Code) async {
    server.webSocket("/", steps)
    var options = HTTPClient.WebSocket.Options()
    options.messageBytesMax = 4
    let failure = await HTTPClientTests.failure {
      try await client.webSocket(url("/"), options: options) { socket in for try await _ in socket {} }
    }
    #expect(failure == code)
  }

  @Test func requestsThatOpenNone() async {
    let failures = [
      ("/anything", HTTPClient.Request(url("/anything")), HTTPClientError.Code.invalidResponse),
      ("POST", HTTPClient.Request(url("/websocket/echo"), method: "POST"), .invalidRequest),
      ("name", HTTPClient.Request(url("/"), fields: [Field("Sec-WebSocket-Protocol", "a b")]), .invalidRequest),
      ("scheme", HTTPClient.Request("gopher://a.example/"), .invalidURL),
    ]
    for (name, request, code) in failures {
      let failure = await HTTPClientTests.failure { try await client.webSocket(request) { _ in } }
      #expect(failure == code, "\(name)")
    }
  }

  /// The handshake has the client's credentials, cookies and redirections.
  @Test func theHandshakeIsARequest() async throws {
    server.route("GET", "/away") { _ in
      TestServer.Response(
        status: 302, fields: ["Set-Cookie": "a=1; Path=/", "Location": "/websocket/echo"], body: .text(""))
    }
    let client = HTTPClientTests.client { $0.keepsCookies = true }
    try await client.webSocket(url("/away")) { socket in
      try await socket.send([1])
      #expect(try await socket.receive() == .bytes([1]))
    }
    let keys = server.requests.map { $0.fields["Sec-WebSocket-Key"] }
    #expect(keys.count == 2 && keys[0] != keys[1] && server.requests.last?.fields["Cookie"] == "a=1")
  }

  /// A proxy opens a tunnel, also for `ws`.
  @Test func aProxyTunnels() async throws {
    let proxy = try TestServer()
    proxy.enqueue([
      .expectRequest("CONNECT", "a.example:80"), .send("HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n"), .close,
    ])
    var settings = ProxySettings()
    settings.all = try Proxy("http://\(proxy.authority)")
    let client = HTTPClientTests.client { $0.proxy = .settings(settings) }
    #expect(await HTTPClientTests.failure { try await client.webSocket("ws://a.example/") { _ in } } == .proxyFailed)
    #expect(proxy.failures.isEmpty)
  }

  /// A cancelled task ends its wait, and the connection.
  @Test func aCancellation() async throws {
    server.webSocket("/", [.send("x"), .awaitEnd])
    let (client, url) = (client, url("/"))
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let task = Task {
      try await client.webSocket(url) { socket in
        _ = try await socket.receive()
        start.finish()
        _ = try await socket.receive()
      }
    }
    for await _ in started {}
    task.cancel()
    #expect(await HTTPClientTests.failure { try await task.value } == .cancelled)
  }
}
