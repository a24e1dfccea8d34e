import Glibc
import LarkspurCommand
import LarkspurTestServer
import Testing

/// Tests how `larkspur socket` ends, and its exit status.
@Suite struct SocketEndTests {
  @Test(
    arguments: [
      (1000, "", 0, ""), (1001, "bye", 0, ""), (nil, "", 0, ""), (1011, "", 112, "1011"),
      (1008, "no \u{1b}", 112, "1008 \"no \\x1b\""), (4000, "☀", 112, "4000 \"☀\""),
    ] as [(Int?, String, Int32, String)])
  func closeOfTheServer(code: Int?, reason: String, status: Int32, words: String) async throws {
    let peer = try SocketPeer([.send("a"), .close(code, reason), .awaitClose()])
    let result = try await peer.run()
    #expect(result.status == status)
    #expect(result.text == "a\n")
    #expect(
      result.errors
        == (status == 0 ? "" : "larkspur: \(peer.authority): the server closed the WebSocket with \(words)\n"))
    try await peer.waitForEnd()
    #expect(peer.failures.isEmpty)
  }

  /// Messages that come behind a signal are still written.
  @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
  func signals(signal: Int32) async throws {
    let isOpen = TestServer.Signal()
    let peer = try SocketPeer([
      .ping(), .awaitPong(), .fire(isOpen), .answerClose(false), .awaitClose(), .send("a"), .close(1001),
    ])
    let command = try Command(["socket", peer.url])
    try await isOpen.wait()
    command.send(signal: signal)
    let result = try await command.end(leavingInputOpen: true)
    #expect(result.status == 0)
    #expect(result.errors == "")
    #expect(result.text == "a\n")
    #expect(peer.frames.last == .close(1001))
  }

  /// Without an open WebSocket a signal ends the command at once.
  @Test func signalBeforeTheResponse() async throws {
    let server = try TestServer()
    server.enqueue([.expectRequest, .hang])
    let command = try Command(["socket", server.url().replacing("http:", with: "ws:")])
    try await server.waitForRequests(1)
    command.send(signal: SIGINT)
    #expect(try await command.end(leavingInputOpen: true).status == 130)
  }

  @Test func inputThatIsNotText() async throws {
    let peer = try SocketPeer([.echo])
    let result = try await peer.run(input: [0x61, 0x0a, 0xff, 0x0a, 0x62])
    #expect(result.status == 26)
    #expect(result.errors == "larkspur: line 2 of standard input is not UTF-8 (--binary sends any bytes)\n")
    #expect(peer.frames == [.init(.text, [0x61]), .close(1001)])
  }

  /// The server is told when the reader of the output has gone.
  @Test func brokenOutput() async throws {
    let peer = try SocketPeer([.send("a"), .echo])
    let command = try Command(["socket", peer.url], output: .broken)
    let result = try await command.end(leavingInputOpen: true)
    #expect(result.status == 23)
    #expect(result.errors == "")
    #expect(peer.frames == [.close(1001)])
  }

  // MARK: - Failures

  @Test func lostConnection() async throws {
    let peer = try SocketPeer([.end])
    let result = try await Command(["socket", peer.url]).end(leavingInputOpen: true)
    #expect(result.status == 56)
    #expect(result.errors.hasPrefix("larkspur: \(peer.authority): "))
  }

  /// The server sends a masked frame, the reserved opcode 3, or a text that is not UTF-8.
  @Test(arguments: [[0x81, 0x81, 0, 0, 0, 0, 0x61], [0x83, 0x00], [0x81, 0x01, 0xff]] as [[UInt8]])
  func brokenProtocol(bytes: [UInt8]) async throws {
    let peer = try SocketPeer([.sendBytes(bytes), .drain])
    let result = try await peer.run()
    #expect(result.status == 56)
    #expect(result.errors.hasPrefix("larkspur: \(peer.authority): "))
  }

  @Test func closeThatIsNotAnswered() async throws {
    let peer = try SocketPeer([.answerClose(false), .awaitEnd])
    let result = try await peer.run("--max-time", "5")
    #expect(result.status == 28)
    #expect(result.errors.hasPrefix("larkspur: \(peer.authority): ") && result.errors.hasSuffix(" (--max-time)\n"))
    try await peer.waitForEnd()
    #expect(peer.frames == [.close(1000)])
  }

  @Test func pingThatIsNotAnswered() async throws {
    let peer = try SocketPeer([.answerPings(false), .answerClose(false), .awaitEnd])
    let command = try Command(["socket", peer.url, "--ping", "0.2", "--max-time", "600"])
    let result = try await command.end(leavingInputOpen: true)
    #expect(result.status == 28)
    #expect(!result.errors.contains("--max-time"))
  }

  // MARK: - Opening

  @Test(arguments: [("/status/404", "404 Not Found"), ("/get", "200 OK"), ("/redirect/1", "302 Found")])
  func refusedOpening(path: String, words: String) async throws {
    let server = try TestServer()
    let result = try await Command(["socket", server.url(path).replacing("http:", with: "ws:")]).end()
    #expect(result.status == 22)
    #expect(result.errors == "larkspur: \(server.authority): the server answered with \(words)\n")
    #expect(server.requestsReceived == 1)
  }

  @Test func wrongOpening() async throws {
    let server = try TestServer()
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"),
      .send("Sec-WebSocket-Accept: wrong\r\n\r\n"), .expectClose,
    ])
    let result = try await Command(["socket", server.authority]).end()
    #expect(result.status == 8)
    #expect(result.errors.contains("Sec-WebSocket-Accept is \"wrong\""))
  }

  @Test(
    arguments: [
      (["ftp://a/"], 1), (["ws://a:0/"], 3), (["127.0.0.1:1"], 7), (["wss://a", "-x", "ftp://p"], 5),
      (["127.0.0.1:2", "-x", "127.0.0.1:1"], 7), (["wss://127.0.0.1:1", "--cacert", "/nowhere"], 77),
      (["a", "-H", "A b: c"], 2),
    ] as [([String], Int32)])
  func failures(arguments: [String], status: Int32) async throws {
    let result = try await Command(["socket"] + arguments).end()
    #expect(result.status == status)
    #expect(result.errors.hasPrefix("larkspur: "))
  }

  @Test func trust() async throws {
    let fixture = try TLSServer()
    let url = fixture.server.url("/status/404").replacing("https:", with: "wss:")
    let untrusted = try await Command(["socket", url]).end()
    #expect(untrusted.status == 60)
    let trusted = try await Command(["socket", url] + fixture.trust).end()
    #expect(trusted.status == 22)
    let pinned = try await Command(
      ["socket", url, "--pin", "sha256/\(String(repeating: "A", count: 43))="]
        + fixture.trust
    ).end()
    #expect(pinned.status == 90)
  }
}
