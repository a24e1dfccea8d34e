import LarkspurCommand
import LarkspurTestServer
import Testing

/// Tests the messages of `larkspur socket`.
@Suite struct SocketTests {
  @Test func linesAreTexts() async throws {
    let peer = try SocketPeer([.echo])
    let result = try await peer.run(input: Array("one\n\ntwo lärks\nthree".utf8))
    #expect(result.status == 0)
    #expect(result.errors == "")
    #expect(result.text == "one\n\ntwo lärks\nthree\n")
    #expect(
      peer.frames == [
        .init(.text, "one"), .init(.text, ""), .init(.text, "two lärks"), .init(.text, "three"), .close(1000),
      ])
  }

  @Test func linesAsBytes() async throws {
    let peer = try SocketPeer([.echo])
    let result = try await peer.run("--binary", input: [0xff, 0x00, 0x0a, 0xc3])
    #expect(result.status == 0)
    #expect(result.output == [0xff, 0x00, 0xc3])
    #expect(peer.frames == [.init(.binary, [0xff, 0x00]), .init(.binary, [0xc3]), .close(1000)])
  }

  /// The output and the server's sending side are blocked in turn: neither side may wait for the other for ever.
  @Test func moreThanAllBuffers() async throws {
    let peer = try SocketPeer([.echo])
    let line = String(repeating: "lark ", count: 20_000)
    let input = Array((0..<300).map { "\($0) \(line)\n" }.joined().utf8)
    let result = try await peer.run(input: input)
    #expect(result.status == 0)
    // Not as arrays: a report of the difference would take hours.
    let isEqual = result.output == input
    #expect(isEqual, "\(result.output.count) of \(input.count) bytes")
  }

  @Test func messagesOnATerminal() async throws {
    let peer = try SocketPeer([
      .send("a\u{1b}[2Jb"), .send([UInt8](0...17)), .send([]), .close(1000), .drain,
    ])
    let result = try await peer.run(output: .terminal)
    #expect(result.status == 0)
    #expect(
      result.text == "a\\x1b[2Jb\r\n00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\r\n10 11\r\n\r\n")
  }

  @Test func fieldsAndProtocols() async throws {
    let peer = try SocketPeer(
      [.send("a"), .close(1000), .drain], answer: TestServer.WebSocketAnswer(subprotocols: ["chat"]))
    let result = try await peer.run(
      "-H", "X-A: 1", "-H", "User-Agent: me", "-H", "Authorization: it", "--protocol", "chat", "--protocol", "other",
      "--no-compression")
    #expect(result.text == "a\n")
    let fields = peer.fields
    #expect(fields.values("X-A") == ["1"])
    #expect(fields.values("Sec-WebSocket-Protocol").joined(separator: ", ") == "chat, other")
    #expect(fields.values("User-Agent") == ["me"])
    #expect(fields.values("Sec-WebSocket-Extensions") == [])
    #expect(fields.values("Authorization") == ["it"])
    let offered = try await peer.run()
    #expect(offered.text == "a\n")
    #expect(peer.fields["Sec-WebSocket-Extensions"]?.hasPrefix("permessage-deflate") == true)
  }

  /// The server sends its Close when it has got a pong and a ping.
  @Test func pings() async throws {
    let peer = try SocketPeer([.ping([1, 2]), .awaitPong(), .expectPing(), .close(1000), .awaitClose()])
    let command = try Command(["socket", peer.url, "-v", "--ping", "4"])
    let result = try await command.end(leavingInputOpen: true)
    #expect(result.status == 0)
    #expect(result.errors.contains(" ms  sending a ping\n"))
    #expect(result.errors.contains(" ms  received its pong after "))
    try await peer.waitForEnd()
    #expect(peer.failures.isEmpty)
  }

  @Test func story() async throws {
    let peer = try SocketPeer([.echo], answer: TestServer.WebSocketAnswer(subprotocols: ["chat"]))
    let result = try await peer.run("-v", "--protocol", "chat", input: Array("hello\n".utf8))
    #expect(result.text == "hello\n")
    let lines = result.errors.split(separator: "\n").map { line in
      line.firstRange(of: " ms  ").map { "* " + line[$0.upperBound...] } ?? String(line)
    }
    #expect(lines.first == "> GET \(peer.url)")
    #expect(lines.contains("< HTTP/1.1 101 Switching Protocols"))
    #expect(lines.contains("* the WebSocket is open, with the subprotocol chat, without compression"))
    for line in [
      "* sent a text of 5 bytes", "* received a text of 5 bytes", "* sending Close 1000", "* received Close 1000",
    ] {
      #expect(lines.count { $0 == line } == 1, "\(line)")
    }
  }
}
