import Glibc
import LarkspurTestServer
import TestKit
import Testing

/// Tests the failures of `larkspur get`: the exit status, and a message with the cause and the address.
@Suite struct FailureTests {
  let server: TestServer
  private let bodyUnderWay = TestServer.Signal()

  init() throws {
    server = try TestServer()
  }

  private func get(_ script: TestServer.Script, _ arguments: String...) async throws -> Command.Result {
    server.enqueue(script)
    return try await Command(["get", server.url()] + arguments).end()
  }

  private func check(_ result: Command.Result, _ status: Int32, _ message: String) {
    #expect(result.status == status)
    #expect(result.errors == "larkspur: \(server.authority): \(message)\n")
  }

  /// CVE-2023-0833: error messages, which may be logged, contain no passwords.
  @Test(arguments: ["http://me:secret@a:0/", "me:secret@a:0/", "http:me:secret@a:0/?b=http://c"])
  func passwordsAreNotRepeated(url: String) async throws {
    let result = try await Command(["get", url]).end()
    #expect(result.status == 3 && result.errors.contains("a:0/") && !result.errors.contains("secret"))
  }

  @Test func usage() async throws {
    let nothing = try await Command.run()
    #expect(nothing.status == 2)
    #expect(
      nothing.errors
        == "larkspur: a command is missing: get, socket, events, pins, check, transfers, completions or help\nSee: larkspur help\n"
    )
    let unknown = try await Command.run("get", "x", "--nonsense")
    #expect(unknown.status == 2)
    #expect(unknown.errors == "larkspur: unknown option --nonsense\nSee: larkspur help get\n")
  }

  @Test func protocols() async throws {
    let other = try await Command.run("get", "ftp://example.org/")
    #expect(other.status == 1)
    #expect(other.errors == "larkspur: ftp:// is not supported: only http:// and https:// are\n")
  }

  @Test func malformedURL() async throws {
    let result = try await Command.run("get", "http://example.org:99999/")
    #expect(result.status == 3)
    #expect(
      result.errors
        == "larkspur: \"http://example.org:99999/\": the port is not a number from 1 to 65535: \"99999\"\n")
  }

  /// A label of 64 bytes is invalid, so the name fails without a query to a name server.
  @Test func unknownHost() async throws {
    let host = String(repeating: "x", count: 64) + ".invalid"
    let result = try await Command.run("get", "http://\(host)/")
    #expect(result.status == 6)
    #expect(result.errors.hasPrefix("larkspur: could not resolve \(host): "))
  }

  @Test func refusedConnection() async throws {
    // Port 1, which the kernel assigns to no test server.
    let port = 1
    let literal = try await Command.run("get", "127.0.0.1:\(port)")
    #expect(literal.status == 7)
    #expect(literal.errors == "larkspur: could not connect to 127.0.0.1:\(port) (Connection refused (ECONNREFUSED))\n")
    let named = try await Command.run("get", "localhost:\(port)")
    #expect(named.status == 7)
    #expect(named.errors.hasPrefix("larkspur: could not connect to localhost:\(port) ("))
    #expect(named.errors.contains("127.0.0.1:\(port): Connection refused (ECONNREFUSED)"))
  }

  @Test func noReply() async throws {
    check(
      try await get([.expectRequest, .close]), 52,
      "bad response: the server closed the connection without a response")
  }

  @Test func resetBeforeTheHead() async throws {
    check(
      try await get([.expectRequest, .reset]), 56,
      "the connection broke while waiting for the response: Connection reset by peer (ECONNRESET)")
  }

  @Test func endInTheHead() async throws {
    check(
      try await get([.expectRequest, .send("HTTP/1.1 200 OK\r\nA: "), .close]), 18,
      "bad response: the connection ended inside the response head")
  }

  @Test func anotherProtocol() async throws {
    check(
      try await get([.expectRequest, .send("SSH-2.0-OpenSSH_9.2\r\n"), .expectClose]), 1,
      "bad response: the response does not begin with an HTTP/1 status line")
  }

  @Test func shortBody() async throws {
    let result = try await get([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .close,
    ])
    check(result, 18, "bad response: the connection ended with 5 bytes of the body missing")
    #expect(result.text == "hello")
  }

  @Test func shortChunkedBody() async throws {
    let result = try await get([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), .close,
    ])
    check(result, 18, "bad response: the connection ended before the last chunk")
    #expect(result.text == "hello")
  }

  /// The message has the peer's name and its address if they differ.
  @Test func namedPeer() async throws {
    server.enqueue([.expectRequest, .close])
    let result = try await Command.run("get", "localhost:\(server.port)")
    #expect(
      result.errors == "larkspur: localhost:\(server.port) (\(server.authority)): "
        + "bad response: the server closed the connection without a response\n")
  }

  // MARK: - Time

  @Test func noResponseInTime() async throws {
    check(
      try await get([.expectRequest, .hang], "--max-time", "5"), 28,
      "timed out while waiting for the response (--max-time)")
  }

  @Test func noWholeBodyInTime() async throws {
    let result = try await get(
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .hang], "--max-time=5")
    check(result, 28, "timed out while receiving the body (--max-time)")
    #expect(result.text == "hello")
  }

  @Test func tooFewBytesInTime() async throws {
    let result = try await get(
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"), .hang], "--lowest-rate", "6:1")
    check(result, 28, "timed out while receiving the body: the time of the lowest rate was up (--lowest-rate)")
    #expect(result.text == "hello")
  }

  /// `--connect-timeout` does not limit the time after the connection is established.
  @Test func slowResponseOnAFastConnection() async throws {
    let result = try await Command.run("get", server.url("/delay/3500"), "--connect-timeout", "3")
    #expect(result.status == 0)
  }

  /// The time limit also ends a command that is blocked because its output is not read.
  @Test func outputBlockedForTooLong() async throws {
    let result = try await Command.run("get", server.url("/bytes/100000000"), "--max-time", "0.2", output: .unread)
    #expect(result.status == 28)
    #expect(result.errors.contains("timed out while"))
  }

  // MARK: - Signals

  @Test(arguments: [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] as [(Int32, Int32)])
  func signalBeforeTheHead(signal: Int32, status: Int32) async throws {
    let directory = try TemporaryDirectory()
    try directory.write("old", to: "file")
    server.enqueue([.expectRequest, .hang])
    let command = try Command(["get", server.url(), "-o", directory.path("file")])
    try await server.waitForRequests(1)
    #expect(directory.names.count == 2)
    command.send(signal: signal)
    let result = try await command.end()
    #expect(result.status == status)
    #expect(result.errors == "")
    #expect(try directory.text(of: "file") == "old")
    #expect(directory.names == ["file"])
  }

  @Test func signalInTheBody() async throws {
    let directory = try TemporaryDirectory()
    // More bytes than the kernel's buffers hold: once all are sent, the command has received a part.
    server.enqueue([
      .expectRequest, .setSendBuffer(bytes: 4096),
      .send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n"), .sendContent(0..<20_000_000),
      .fire(bodyUnderWay), .hang,
    ])
    let command = try Command(["get", server.url(), "-o", directory.path("file")], errors: .terminal)
    try await bodyUnderWay.wait()
    command.send(signal: SIGINT)
    let result = try await command.end()
    #expect(result.status == 130)
    // The command ends the progress line with a line break.
    #expect(result.errors.utf8.last == UInt8(ascii: "\n"))
    #expect(directory.names.isEmpty)
  }

  /// A signal also ends a command that is blocked in a write.
  @Test func signalWhileTheOutputIsBlocked() async throws {
    let command = try Command(["get", server.url("/bytes/100000000")], output: .unread)
    try await server.waitForRequests(1)
    command.send(signal: SIGINT)
    #expect(try await command.end().status == 130)
  }
}
