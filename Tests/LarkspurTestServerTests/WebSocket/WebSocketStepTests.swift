import LarkspurCoding
import LarkspurHTTP
import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct WebSocketStepTests {
  /// Starts a server with a route that does the steps, and a client behind the opening handshake.
  private func start(
    over transport: Transport = .plain, answer: TestServer.WebSocketAnswer = .init(), offersCompression: Bool = false,
    _ steps: [TestServer.WebSocketStep]
  ) throws -> (TestServer, WebSocketClient) {
    let server = try transport.start()
    server.webSocket("/", steps, answer: answer)
    return (server, try WebSocketClient(try transport.client(server), offersCompression: offersCompression))
  }

  @Test(arguments: Transport.allCases) func aConversation(transport: Transport) throws {
    let (server, client) = try start(
      over: transport,
      [
        .expectText("hello"), .expectBinary([1, 2]), .expectText(), .expectMessages(2), .send("one"), .send([3, 4]),
        .close(3000, "done"), .awaitClose(code: 3000, reason: "done"),
      ])
    for frame: WebSocketClient.Frame in [
      .init(.text, "hello"), .init(.binary, [1, 2]), .init(.text, "a", isFinal: false), .init(.continuation, "b"),
      .init(.text, ""), .init(.binary, []),
    ] { try client.send(frame) }
    #expect(try client.receive() == .init(.text, "one"))
    #expect(try client.receive() == .init(.binary, [3, 4]))
    #expect(try client.receive() == .close(3000, "done"))
    try client.send(.close(3000, "done"))
    // The server has sent its Close, so it does not answer.
    #expect(try client.receiveAll() == [])
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func echo(transport: Transport) throws {
    let (server, client) = try start(over: transport, [.echo])
    for frame: WebSocketClient.Frame in [
      .init(.text, "hello"), .init(.binary, TestServer.content(count: 200_000)), .init(.text, "", isFinal: false),
      .init(.continuation, "é", isFinal: false), .init(.continuation, ""),
    ] {
      try client.send(frame)
      #expect(try client.receive() == frame)
    }
    try client.send(.ping, "now")
    #expect(try client.receive() == .init(.pong, "now"))
    try client.send(.close(1001, "bye"))
    #expect(try client.receiveAll() == [.close(1001)])
    #expect(server.failures.isEmpty)
    #expect(server.webSockets[0].closeCode == 1001)
  }

  @Test func echoOfSomeMessages() throws {
    let (server, client) = try start([.echo(messages: 2), .expectText("three")])
    for text in ["one", "two", "three"] { try client.send(.text, text) }
    #expect(try client.receiveAll() == [.init(.text, "one"), .init(.text, "two")])
    #expect(server.failures.isEmpty)
  }

  @Test func echoEndsWithTheConnection() async throws {
    let (server, client) = try start([.echo])
    client.raw.halfClose()
    #expect(try client.receiveAll() == [])
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: [1, 3, 5, 8]) func fragments(count: Int) throws {
    let (_, client) = try start([.send("hello", fragments: count)])
    let frames = try client.receiveAll()
    #expect(frames.count == count)
    #expect(frames.map(\.opcode) == [.text] + [WebSocketOpcode](repeating: .continuation, count: count - 1))
    #expect(frames.map(\.isFinal) == [Bool](repeating: false, count: count - 1) + [true])
    #expect(frames.flatMap(\.payload) == Array("hello".utf8))
  }

  // MARK: Compression

  private static let text = String(repeating: "the same words again and ", count: 100)

  /// Reads messages of the server, inflated.
  private func inflated(_ frames: [WebSocketClient.Frame], takesOver: Bool) throws -> [[UInt8]] {
    var limits = CodingLimits()
    limits.messageBytesOutAlways = .max
    var inflater = try MessageInflater(windowBits: 15, takesOver: takesOver, limits: limits)
    var messages: [[UInt8]] = []
    var message: [UInt8] = []
    for frame in frames {
      if try inflater.inflate(
        frame.payload.span, isLast: frame.isFinal, atMost: 16 << 20, appendingTo: &message)
      {
        messages.append(message)
        message = []
      }
    }
    return messages
  }

  @Test(arguments: [true, false]) func compressedMessages(takesOver: Bool) throws {
    let (_, client) = try start(
      answer: .init(deflate: .init(serverTakesOver: takesOver)), offersCompression: true,
      [.send(Self.text, isCompressed: true), .send(Self.text, fragments: 3, isCompressed: true)])
    #expect(try client.agreement.get().compression?.serverTakesOver == takesOver)
    let frames = try client.receiveAll()
    #expect(frames.map(\.isCompressed) == [true, true, false, false])
    let counts = (frames[0].payload.count, frames[1...].map(\.payload.count).reduce(0, +))
    #expect(takesOver ? counts.1 < counts.0 / 2 : counts.1 == counts.0)
    #expect(try inflated(frames, takesOver: takesOver) == [Array(Self.text.utf8), Array(Self.text.utf8)])
  }

  @Test func compressedEcho() throws {
    let (server, client) = try start(answer: .init(deflate: .init()), offersCompression: true, [.echo])
    var deflater = try MessageDeflater(windowBits: 15, takesOver: true)
    var frames: [WebSocketClient.Frame] = []
    for _ in 1...2 {
      var payload: [UInt8] = []
      try deflater.deflate(Array(Self.text.utf8).span, into: &payload)
      try client.send(.init(.text, [], isFinal: false, isCompressed: true))
      try client.send(.init(.continuation, payload))
      frames.append(try #require(try client.receive()))
    }
    #expect(frames.map(\.isCompressed) == [true, true])
    #expect(try inflated(frames, takesOver: true) == [Array(Self.text.utf8), Array(Self.text.utf8)])
    #expect(server.webSockets[0].messages.map(\.text) == [Self.text, Self.text])
    #expect(server.webSockets[0].messages.map(\.isCompressed) == [true, true])
    #expect(server.webSockets[0].frames.map(\.reservedBits) == [4, 0, 4, 0])
  }

  @Test func compressionWithoutAnAgreement() throws {
    let (_, client) = try start([.send(Self.text, isCompressed: true), .send(Self.text, isCompressed: true)])
    let frames = try client.receiveAll()
    // Each message stands alone.
    #expect(frames.count == 2 && frames[0] == frames[1])
    #expect(try inflated([frames[1]], takesOver: false) == [Array(Self.text.utf8)])
  }

  @Test func aDeflateBomb() throws {
    let count = 10_000_000
    let (_, client) = try start(
      answer: .init(deflate: .init()), offersCompression: true,
      [.send(Self.text, isCompressed: true), .deflateBomb(bytes: count), .send(Self.text, isCompressed: true)])
    let frames = try client.receiveAll()
    #expect(frames[1].payload.count < count / 900)
    let messages = try inflated(frames, takesOver: true)
    #expect(messages.map(\.count) == [Self.text.utf8.count, count, Self.text.utf8.count])
    #expect(messages[1].allSatisfy { $0 == 0 })
    #expect(messages[2] == Array(Self.text.utf8))
  }

  // MARK: Control frames

  @Test func pingsAreAnswered() throws {
    let (server, client) = try start([
      .expectText("one"), .answerPings(false), .expectPing([2]), .answerPings(true), .expectPing(),
      .pong([4]), .expectText("two"),
    ])
    try client.send(.init(.ping, [1]))
    try client.send(.text, "one")
    // Kept for the last step.
    try client.send(.text, "two")
    try client.send(.init(.ping, [2]))
    try client.send(.init(.ping, [3]))
    #expect(try client.receiveAll() == [.init(.pong, [1]), .init(.pong, [3]), .init(.pong, [4])])
    #expect(server.failures.isEmpty)
  }

  @Test func pongsAreAwaited() throws {
    let (server, client) = try start([
      .ping([1]), .ping([2]), .awaitPong(), .ping(), .awaitPong([9]), .echo(messages: 2),
    ])
    #expect(try client.receive() == .init(.ping, [1]))
    #expect(try client.receive() == .init(.ping, [2]))
    try client.send(.text, "early")
    for payload: [UInt8] in [[1], [2]] { try client.send(.init(.pong, payload)) }
    #expect(try client.receive() == .init(.ping, []))
    for payload: [UInt8] in [[], [9]] { try client.send(.init(.pong, payload)) }
    try client.send(.text, "late")
    #expect(try client.receiveAll() == [.init(.text, "early"), .init(.text, "late")])
    #expect(server.failures.isEmpty)
  }

  @Test func aCloseThatIsNotAnswered() async throws {
    let proceed = TestServer.Signal()
    let (server, client) = try start([.answerClose(false), .awaitClose(code: 1000), .fire(proceed), .awaitEnd])
    try client.send(.close(1000))
    try await proceed.wait()
    client.raw.halfClose()
    #expect(try client.receiveAll() == [])
    #expect(server.failures.isEmpty)
  }

  @Test func aCloseWithoutACode() throws {
    let (server, client) = try start([.awaitClose(code: 1005, reason: "")])
    try client.send(.init(.close, []))
    #expect(try client.receiveAll() == [.init(.close, [])])
    #expect(server.failures.isEmpty)
    #expect(server.webSockets[0].closeCode == 1005)
  }

  @Test(
    arguments: [(nil, [0x88, 0]), (1005, [0x88, 2, 3, 0xed]), (70_000, [0x88, 2, 0x11, 0x70])] as [(Int?, [UInt8])])
  func anyCloseCanBeSent(code: Int?, bytes: [UInt8]) throws {
    let (_, client) = try start([.close(code)])
    #expect(try client.raw.readToEnd() == bytes)
  }

  // MARK: Wrong frames

  @Test(
    arguments: [
      (.init(.text, "x", mask: 1), .maskUnexpected), (.init(.text, reservedBits: 2), .reservedBits),
      (.init(3), .opcodeReserved(3)), (.init(.ping, [UInt8](repeating: 0, count: 126)), .controlTooLong),
      (.init(.ping, isFinal: false), .controlFragmented), (.init(.binary, [1], lengthForm: .bits64), .lengthNotMinimal),
      (.init(.binary, length: 1 << 63), .lengthTooLarge), (.init(.continuation), .continuationUnexpected),
      (.init(.pong, reservedBits: 4), .compressionUnexpected(.pong)),
    ] as [(TestServer.WebSocketFrame, WebSocketFrameError)])
  func wrongFrames(frame: TestServer.WebSocketFrame, error: WebSocketFrameError) throws {
    let (server, client) = try start([.sendFrame(frame), .awaitClose(code: 1002)])
    #expect(throws: error) { try client.receive() }
    try client.send(.close(1002))
    #expect(try client.raw.readToEnd().suffix(4) == [0x88, 2, 3, 0xea])
    #expect(server.failures.isEmpty)
  }

  @Test func interleavedMessages() throws {
    let (_, client) = try start([.sendFrame(.init(.text, "a", isFinal: false)), .send("b")])
    #expect(try client.receive() == .init(.text, "a", isFinal: false))
    #expect(throws: WebSocketFrameError.messageIncomplete) { try client.receive() }
  }

  @Test func anyBytes() throws {
    let (_, client) = try start([.sendBytes([0x81]), .sendBytes([1, 0xff])])
    #expect(try client.receiveAll() == [.init(.text, [0xff])])
  }

  // MARK: Floods and ends

  @Test(arguments: [true, false]) func floodOfPings(isReading: Bool) throws {
    let (server, client) = try start([
      .flood(.pings(bytes: 200), count: 2000, isReading: isReading), .send("over"), .awaitClose(),
    ])
    for _ in 1...2000 { #expect(try client.receive() == .init(.ping, [UInt8](repeating: 0, count: 125))) }
    #expect(try client.receive() == .init(.text, "over"))
    try client.send(.text, "an answer that a flood may read")
    try client.send(.close(1000))
    #expect(try client.receiveAll() == [.close(1000)])
    #expect(server.failures.isEmpty)
  }

  @Test func floodWithReadAnswers() throws {
    let (server, client) = try start([.flood(.pings(bytes: 125), count: 100_000), .drain])
    // Pings and pongs are 13 MB each way, more than the kernel's buffers take from sides that do not read.
    for _ in 1...100_000 {
      let ping = try #require(try client.receive())
      try client.send(.init(.pong, ping.payload))
    }
    try client.send(.close(1000))
    #expect(try client.receiveAll() == [.close(1000)])
    #expect(server.webSockets[0].framesReceived == 100_001)
    #expect(server.webSockets[0].frames.count == TestServer.Options().webSocketFramesKept)
  }

  @Test func otherFloods() throws {
    let (_, client) = try start([
      .flood(.emptyFragments, count: 5), .flood(.pongs, count: 3), .flood(.messages(bytes: 2), count: 2),
      .flood(.emptyFragments, count: 0), .flood(.pings(), count: -1),
    ])
    let fragments: [WebSocketClient.Frame] =
      [.init(.text, "", isFinal: false)]
      + [WebSocketClient.Frame](repeating: .init(.continuation, "", isFinal: false), count: 4)
      + [.init(.continuation, "")]
    #expect(
      try client.receiveAll()
        == fragments + [WebSocketClient.Frame](repeating: .init(.pong, ""), count: 3)
        + [WebSocketClient.Frame](repeating: .init(.binary, [0, 0]), count: 2))
  }

  @Test(arguments: Transport.allCases) func dripAndRepeat(transport: Transport) throws {
    let (server, client) = try start(
      over: transport, [.repeat(2, [.drip([.send("drop"), .ping([7])]), .awaitPong()]), .send("whole")])
    for _ in 1...2 {
      #expect(try client.receive() == .init(.text, "drop"))
      #expect(try client.receive() == .init(.ping, [7]))
      try client.send(.init(.pong, [7]))
    }
    #expect(try client.receiveAll() == [.init(.text, "whole")])
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func resetAndEnd(transport: Transport) throws {
    let (server, reset) = try start(over: transport, [.expectText(), .reset])
    try reset.send(.text, "now")
    #expect(throws: (any Error).self) { try reset.receiveAll() }
    server.webSocket("/end", [.sendFrame(.init(.text, "a", isFinal: false)), .end])
    let end = try WebSocketClient(try transport.client(server), "/end")
    #expect(try end.receiveAll() == [.init(.text, "a", isFinal: false)])
    #expect(server.failures.isEmpty)
  }

  @Test func stallEndsWithTheClient() async throws {
    let (server, client) = try start([.stall, .send("too late")])
    try client.send(.text, "unread")
    client.raw.halfClose()
    #expect(try client.receiveAll() == [.init(.text, "too late")])
    #expect(server.webSockets[0].framesReceived == 0)
    #expect(server.failures.isEmpty)
  }

  @Test func signalsGoBothWays() async throws {
    let (reached, proceed) = (TestServer.Signal(), TestServer.Signal())
    let (_, client) = try start([.fire(reached), .wait(proceed), .send("done")])
    try await reached.wait()
    proceed.fire()
    #expect(try client.receiveAll() == [.init(.text, "done")])
  }

  @Test func theScriptContinuesBehindTheSteps() throws {
    let server = try TestServer()
    server.enqueue([.expectRequest("GET", "/ws"), .webSocket([.expectText("a")]), .expectBytes("raw"), .send("bytes")])
    let client = try WebSocketClient(server, "/ws")
    // All bytes come at once, and no step takes those of the next one.
    try client.raw.send([0x81, 0x81, 0, 0, 0, 0] + Array("araw".utf8))
    #expect(try client.raw.textToEnd() == "bytes")
    #expect(server.failures.isEmpty)
  }
}
