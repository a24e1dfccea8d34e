import LarkspurHTTP
import LarkspurTestServer
import TestKit
import Testing

/// Records of what clients send.
@Suite(.ownThread) struct WebSocketTests {
  @Test func framesAndMessages() async throws {
    let server = try TestServer()
    server.webSocket("/chat/{room}", [.drain], answer: .init(subprotocols: ["a"]))
    let client = try WebSocketClient(server, "/chat/1?x=2", protocols: ["a"])
    for frame: WebSocketClient.Frame in [
      .init(.text, "one "), .init(.binary, [1], isFinal: false), .init(.ping, [9]), .init(.continuation, [2]),
      .close(4000, "enough"),
    ] { try client.send(frame) }
    let record = try await server.waitForWebSocketCloses(1)[0]
    #expect(record.connection == 1)
    #expect(record.request.target == "/chat/1?x=2")
    #expect(record.request.fields["Sec-WebSocket-Version"] == "13")
    #expect(record.subprotocol == "a")
    #expect(record.deflate == nil)
    #expect(
      record.frames == [
        .init(.text, "one ", mask: 0x0102_0304), .init(.binary, [1], isFinal: false, mask: 0x0203_0405),
        .init(.ping, [9], mask: 0x0304_0506), .init(.continuation, [2], mask: 0x0405_0607),
        .init(.close, [0x0f, 0xa0] + Array("enough".utf8), mask: 0x0506_0708),
      ])
    #expect(record.messages.map(\.isText) == [true, false])
    #expect(record.messages.map(\.bytes) == [Array("one ".utf8), [1, 2]])
    #expect(record.messages.map(\.fragments) == [1, 2])
    #expect(record.messages[1].checksum == TestServer.Checksum([1, 2]))
    #expect(record.closeCode == 4000)
    #expect(record.closeReason == "enough")
  }

  @Test func waiting() async throws {
    let server = try TestServer()
    server.webSocket("/", [.echo])
    let clients = [try WebSocketClient(server), try WebSocketClient(server)]
    #expect(try await server.waitForWebSockets(2).map(\.connection) == [1, 2])
    for client in clients { try client.send(.text, "a") }
    let records = try await server.waitForWebSocketMessages(2)
    #expect(records.map(\.messagesReceived) == [1, 1])
    #expect(records.map(\.closeCode) == [nil, nil])
    server.stop()
    await #expect(throws: TestServer.Stopped()) { try await server.waitForWebSocketMessages(3) }
  }

  @Test func whatIsKeptIsBounded() async throws {
    var options = TestServer.Options()
    options.webSocketFramesKept = 3
    options.webSocketBytesKept = 5
    let server = try TestServer(options)
    server.webSocket("/", [.drain])
    let client = try WebSocketClient(server)
    for text in ["a", "bc", "def", "g", ""] { try client.send(.text, text) }
    try client.send(.init(.close, []))
    let record = try await server.waitForWebSocketCloses(1)[0]
    #expect(record.framesReceived == 6)
    #expect(record.messagesReceived == 5)
    #expect(record.frames.map(\.length) == [1, 0, 0])
    #expect(record.messages.map(\.text) == ["de", "", ""])
    #expect(record.messages.map(\.count) == [3, 1, 0])
    #expect(record.messages[0].checksum == TestServer.Checksum(Array("def".utf8)))
  }
}
