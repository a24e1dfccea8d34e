import LarkspurCoding
import LarkspurHTTP
import LarkspurTestServer
import TestKit
import Testing

/// Clients that do not do what a script expects of a WebSocket.
@Suite(.ownThread) struct WebSocketFailureTests {
  struct Deviation: Sendable, CustomTestStringConvertible {
    var step: TestServer.WebSocketStep
    var sent: [UInt8]
    var message: String

    init(_ step: TestServer.WebSocketStep, _ sent: [UInt8], _ message: String) {
      self.step = step
      self.sent = sent
      self.message = message
    }

    var testDescription: String { message }
  }

  /// Frames with a mask of zeros.
  private static let a: [UInt8] = [0x81, 0x81, 0, 0, 0, 0, 0x61]
  private static let close: [UInt8] = [0x88, 0x84, 0, 0, 0, 0, 0x03, 0xe8, 0x6f, 0x6b]

  static let deviations: [Deviation] = [
    .init(.expectText(), [], "(expectText): no message came before the connection ended"),
    .init(.expectText(), [0x81], "(expectText): a message was not whole before the connection ended"),
    .init(.expectText(), Array(a.dropLast()), "(expectText): a message was not whole before the connection ended"),
    .init(
      .expectText(), [0x01] + a.dropFirst(), "(expectText): a message was not whole before the connection ended"),
    .init(.expectText("b"), a, "(expectText): \"a\" came, not \"b\""),
    .init(.expectBinary(), a, "(expectBinary): a text message came, not a binary one: \"a\""),
    .init(.expectText(), [0x82] + a.dropFirst(), "(expectText): a binary message came, not text: \"a\""),
    .init(.expectBinary([1]), [0x82] + a.dropFirst(), "(expectBinary): \"a\" came, not \"\\x01\""),
    .init(.expectText(), close, "(expectText): a Close came, not a message: code 1000, reason \"ok\""),
    .init(.expectPing([1]), [0x89] + a.dropFirst(), "(expectPing): \"a\" came, not \"\\x01\""),
    .init(.expectPing(), close, "(expectPing): a Close came, not a ping: code 1000, reason \"ok\""),
    .init(.awaitPong(), a, "(awaitPong): no pong came before the connection ended"),
    .init(.awaitClose(), a, "(awaitClose): no Close came before the connection ended"),
    .init(.awaitClose(code: 1001), close, "(awaitClose): the code of the Close is 1000, not 1001"),
    .init(.awaitClose(reason: "no"), close, "(awaitClose): the reason of the Close is \"ok\", not \"no\""),
    .init(.awaitEnd, close + a, "(awaitEnd): a frame came after the client's Close"),
    .init(.echo, [0x81, 1, 0x61], "(echo): the client did not mask a frame"),
    .init(.echo, [0xc1, 0x80, 0, 0, 0, 0], "(echo): a text frame is marked as compressed, which is not allowed here"),
    .init(.echo, [0x81, 0x81, 0, 0, 0, 0, 0xff], "(echo): a text message is not UTF-8: \"\\xff\""),
    .init(
      .drain, [0x88, 0x82, 0, 0, 0, 0, 3, 0xed], "(drain): the peer breaks the protocol: its Close has the code 1005"),
    .init(
      .drain, [0x88, 0x81, 0, 0, 0, 0, 3], "(drain): the peer breaks the protocol: its Close has a payload of one byte"),
    .init(
      .drain, [0x82, 0xff, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0],
      "(drain): a frame of 9223372036854775807 bytes exceeds webSocketMessageBytesMax, 67108864"),
    .init(.flood(.pongs, count: 1), [], ""),
  ]

  @Test(arguments: deviations) func failureIsReported(_ deviation: Deviation) async throws {
    let server = try TestServer()
    let ready = TestServer.Signal()
    server.webSocket("/", [.wait(ready), deviation.step])
    let client = try WebSocketClient(server)
    try client.raw.send(deviation.sent)
    client.raw.halfClose()
    ready.fire()
    _ = try client.raw.readToEnd()
    try await server.waitForClosedConnections(1)
    let expected = deviation.message.isEmpty ? [] : ["connection 1, script step 1.2 " + deviation.message]
    #expect(server.failures == expected)
  }

  @Test func aFailureInAFlood() async throws {
    let server = try TestServer()
    let ready = TestServer.Signal()
    server.webSocket("/", [.wait(ready), .flood(.pongs, count: 100_000)])
    let client = try WebSocketClient(server)
    try client.raw.send([0x81, 1, 0x61])
    ready.fire()
    _ = try client.raw.readToEnd()
    #expect(server.failures == ["connection 1, script step 1.2 (flood): the client did not mask a frame"])
  }

  @Test func aHandshakeThatDoesNotCome() async throws {
    let server = try TestServer()
    server.enqueue([.webSocket([])], [.repeat([.webSocket([], answer: .init(faults: [.status(200)]))])])
    for number in 1...2 {
      let client = try RawClient(server)
      client.halfClose()
      _ = try client.readToEnd()
      try await server.waitForClosedConnections(number)
    }
    // An end at the beginning of a round is not a failure.
    #expect(
      server.failures == [
        "connection 1, script step 1 (webSocket): no request came before the connection ended"
      ])
  }

  @Test func stepsBehindTheEnd() async throws {
    let server = try TestServer()
    server.webSocket("/send", [.end, .send("x")])
    server.webSocket("/receive", [.end, .expectText()])
    server.webSocket("/drain", [.end, .drain])
    for (index, path) in ["/send", "/receive", "/drain"].enumerated() {
      _ = try WebSocketClient(server, path).receiveAll()
      try await server.waitForClosedConnections(index + 1)
    }
    #expect(
      server.failures == [
        "connection 1, script step 1.2 (send): the script has closed the connection already",
        "connection 2, script step 1.2 (expectText): no message came before the script closed it",
        "connection 3, script step 1.2 (drain): the script has closed the connection itself",
      ])
  }

  // MARK: Limits

  @Test(arguments: [(1000, nil), (1001, "a message exceeds webSocketMessageBytesMax, 1000")] as [(Int, String?)])
  func messagesOfTheGreatestSize(count: Int, message: String?) async throws {
    var options = TestServer.Options()
    options.webSocketMessageBytesMax = 1000
    let server = try TestServer(options)
    server.webSocket("/", [.expectBinary()])
    let client = try WebSocketClient(server)
    try client.send(.init(.binary, [UInt8](repeating: 1, count: 600), isFinal: false))
    try client.send(.init(.continuation, [UInt8](repeating: 1, count: count - 600)))
    _ = try client.receiveAll()
    #expect(server.failures == (message.map { ["connection 1, script step 1.1 (expectBinary): \($0)"] } ?? []))
  }

  @Test(arguments: [(1000, false), (1001, true)]) func inflatedMessagesOfTheGreatestSize(count: Int, fails: Bool) throws
  {
    var options = TestServer.Options()
    options.webSocketMessageBytesMax = 1000
    let server = try TestServer(options)
    server.webSocket("/", [.expectBinary()], answer: .init(deflate: .init()))
    let client = try WebSocketClient(server, offersCompression: true)
    var deflater = try MessageDeflater(windowBits: 15, takesOver: true)
    var payload: [UInt8] = []
    try deflater.deflate([UInt8](repeating: 1, count: count).span, into: &payload)
    try client.send(.init(.binary, payload, isCompressed: true))
    _ = try client.receiveAll()
    #expect(
      server.failures
        == (fails
          ? [
            "connection 1, script step 1.1 (expectBinary): a compressed message cannot be inflated: "
              + "the message is too long"
          ] : []))
  }

  @Test func messagesThatAwaitAStep() async throws {
    var options = TestServer.Options()
    options.webSocketFramesKept = 2
    let server = try TestServer(options)
    server.webSocket("/", [.awaitPong()])
    let client = try WebSocketClient(server)
    for _ in 1...3 { try client.send(.text, "a") }
    _ = try client.receiveAll()
    #expect(
      server.failures == [
        "connection 1, script step 1.1 (awaitPong): too many messages came before the pong"
      ])
  }
}
