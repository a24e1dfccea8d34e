import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Records the calls of a WebSocket's delegate, in their order.
final class WebSocketRecorder: NSObject, URLSessionWebSocketDelegate, Sendable {
  private struct State {
    var events: [String] = []
    var isOver = false
    var waiting: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  var events: [String] { state.withLock { $0.events } }

  func note(_ event: String) { state.withLock { $0.events.append(event) } }

  /// Runs when the task has been opened.
  let whenOpen: @Sendable (URLSessionWebSocketTask) -> Void

  init(whenOpen: @escaping @Sendable (URLSessionWebSocketTask) -> Void = { _ in }) { self.whenOpen = whenOpen }

  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
  ) {
    note("open \(`protocol` ?? "-")")
    whenOpen(webSocketTask)
  }

  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
    didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
  ) { note("close \(closeCode.rawValue) \(reason.map { String(decoding: $0, as: UTF8.self) } ?? "-")") }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    note("metrics \(metrics.transactionMetrics.count)")
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let waiting = state.withLock { state in
      state.events.append((error as? URLError).map { "error \($0.code.rawValue)" } ?? "complete")
      state.isOver = true
      return state.waiting.take()
    }
    waiting?.resume()
  }

  /// Waits for the task's end.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.isOver { state.waiting = continuation }
        return state.isOver
      }
      if isOver { continuation.resume() }
    }
  }
}

/// WebSocket tasks against a server that does what a test says.
@Suite(.timeLimit(.minutes(1))) struct WebSocketTaskTests {
  private let recorder = WebSocketRecorder()
  private let session: URLSession

  init() {
    session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
  }

  /// Starts a server whose WebSockets do the steps.
  private func start(
    _ steps: [TestServer.WebSocketStep], answer: TestServer.WebSocketAnswer = TestServer.WebSocketAnswer()
  ) throws -> TestServer {
    let server = try TestServer()
    server.webSocket("/", steps, answer: answer)
    return server
  }

  private func task(_ server: TestServer) throws -> URLSessionWebSocketTask {
    session.webSocketTask(with: try #require(URL(string: server.webSocketURL())))
  }

  private func text(_ message: URLSessionWebSocketTask.Message) -> String {
    switch message {
    case .string(let text): text
    case .data(let data): "\(data.count) bytes"
    }
  }

  private func posix(_ error: (any Error)?) -> POSIXErrorCode? {
    let error = error as NSError?
    return error?.domain == NSPOSIXErrorDomain ? POSIXErrorCode(rawValue: Int32(error?.code ?? 0)) : nil
  }

  /// Receives until an error.
  private func receiveAll(_ task: URLSessionWebSocketTask) async -> ([String], any Error) {
    var messages: [String] = []
    while true {
      do {
        messages.append(text(try await task.receive()))
      } catch {
        return (messages, error)
      }
    }
  }

  // MARK: - Conversations

  @Test func anEcho() async throws {
    // The server sends the client's reason back with its code.
    let server = try start([.answerClose(false), .echo, .close(1000, "bye")])
    defer { server.stop() }
    let task = try task(server)
    // Calls before the handshake wait for it.
    async let sent: Void = task.send(.string("hello"))
    task.resume()
    try await sent
    #expect(text(try await task.receive()) == "hello")
    for count in [0, 1, 125, 126, 65_535, 65_536, 1 << 20] {
      try await task.send(.data(Data(count: count)))
      #expect(text(try await task.receive()) == "\(count) bytes")
    }
    try await task.sendPing()
    #expect(task.closeCode == .invalid && task.closeReason == nil)
    #expect((task.response as? HTTPURLResponse)?.statusCode == 101)
    #expect(task.response?.url?.scheme == "ws" && task.currentRequest?.url?.scheme == "ws")
    task.cancel(with: .normalClosure, reason: Data("bye".utf8))
    await recorder.wait()
    #expect(recorder.events == ["open -", "close 1000 bye", "metrics 1", "complete"])
    #expect(task.closeCode == .normalClosure && task.closeReason == Data("bye".utf8))
    #expect(task.state == .completed && task.error == nil)
    let record = try #require(server.webSockets.first)
    #expect(record.messagesReceived == 8 && record.closeCode == 1000 && record.closeReason == "bye")
    #expect(posix(await receiveAll(task).1) == .ENOTCONN)
    await #expect(throws: (any Error).self) { try await task.send(.string("late")) }
    await #expect(throws: (any Error).self) { try await task.sendPing() }
  }

  @Test func handlersAreCalledInOrder() async throws {
    let server = try start([.echo])
    defer { server.stop() }
    let task = try task(server)
    let log = Mutex<[String]>([])
    await withCheckedContinuation { continuation in
      for number in 0..<10 {
        task.send(.string("\(number)")) { error in if error != nil { log.withLock { $0.append("failed") } } }
        task.receive { result in
          log.withLock { $0.append((try? result.get()).map(text) ?? "failed") }
          if number == 9 { continuation.resume() }
        }
      }
      task.resume()
    }
    #expect(log.withLock { $0 } == (0..<10).map(String.init))
    let pong = await withCheckedContinuation { continuation in
      task.sendPing { continuation.resume(returning: $0 == nil) }
    }
    #expect(pong)
    task.cancel()
    await recorder.wait()
    #expect(recorder.events.last == "error -999")
  }

  @Test func fragmentsWithControlFramesBetween() async throws {
    // "hä" in three fragments, cut within a character, with pings between.
    let server = try start([
      .sendFrame(.init(.text, [0x68], isFinal: false)), .ping([1]),
      .sendFrame(.init(.continuation, [0xc3], isFinal: false)), .ping([2]), .sendFrame(.init(.continuation, [0xa4])),
      .awaitPong([1]), .awaitPong([2]), .send([1, 2]), .echo,
    ])
    defer { server.stop() }
    let task = try task(server)
    task.resume()
    #expect(text(try await task.receive()) == "hä")
    #expect(text(try await task.receive()) == "2 bytes")
    task.cancel()
  }

  @Test func messagesAsASequence() async throws {
    let numbers = (0..<5).map { TestServer.WebSocketStep.send("\($0)") }
    let server = try start(numbers + [.close(4_001, "enough"), .awaitClose()])
    defer { server.stop() }
    let task = try task(server)
    task.resume()
    var messages: [String] = []
    for try await message in task.messages { messages.append(text(message)) }
    #expect(messages == ["0", "1", "2", "3", "4"])
    await recorder.wait()
    #expect(recorder.events == ["open -", "close 4001 enough", "metrics 1", "complete"])
    #expect(task.closeCode == .other(4_001) && task.closeCode.rawValue == 4_001)
    #expect(URLSessionWebSocketTask.CloseCode(rawValue: 1_001) == .goingAway)
    // RFC 6455, section 5.5.1: the client's answer carries the server's code.
    let records = try await server.waitForWebSocketCloses(1)
    #expect(records.first?.closeCode == 4_001)
  }

  @Test func aSubprotocolIsAgreed() async throws {
    let server = try start([.echo], answer: TestServer.WebSocketAnswer(subprotocols: ["chat.v2", "chat.v1"]))
    defer { server.stop() }
    let url = try #require(URL(string: server.webSocketURL()))
    let task = session.webSocketTask(with: url, protocols: ["chat.v2", "chat.v1"])
    task.resume()
    try await task.send(.string("x"))
    _ = try await task.receive()
    task.cancel(with: .goingAway, reason: nil)
    await recorder.wait()
    #expect(recorder.events == ["open chat.v2", "close 1001 -", "metrics 1", "complete"])
  }

  @Test(arguments: [
    TestServer.WebSocketDeflate(), TestServer.WebSocketDeflate(clientTakesOver: false, serverTakesOver: false),
    TestServer.WebSocketDeflate(clientWindowBits: 9, serverWindowBits: 9),
  ]) func compressedMessages(_ deflate: TestServer.WebSocketDeflate) async throws {
    let server = try start([.echo], answer: TestServer.WebSocketAnswer(deflate: deflate))
    defer { server.stop() }
    let task = try task(server)
    task.resume()
    let long = String(repeating: "All work and no play. ", count: 2_000)
    for _ in 0..<3 {
      try await task.send(.string(long))
      #expect(text(try await task.receive()) == long)
    }
    let record = try #require(server.webSockets.first)
    #expect(record.deflate == deflate)
    #expect(record.messages.map(\.isCompressed) == [true, true, true])
    let bytesSent = record.frames.reduce(0) { $0 + $1.payload.count }
    #expect(bytesSent < long.utf8.count / 4)
    task.cancel(with: .normalClosure, reason: nil)
    await recorder.wait()
    #expect(recorder.events.last == "complete")
  }

  // MARK: - Waits

  /// Reads to the end of the connection, and answers nothing.
  private static let silence: [TestServer.WebSocketStep] = [.answerPings(false), .answerClose(false), .awaitEnd]

  /// Cancelling a Swift task that waits ends its wait, and no message is lost.
  @Test func aReceiveIsCancelled() async throws {
    let server = try start([.echo])
    defer { server.stop() }
    let task = try task(server)
    let early = Task { try await task.receive() }
    early.cancel()
    await #expect(throws: CancellationError.self) { try await early.value }
    task.resume()
    try await task.sendPing()
    let waiting = Task { try await task.receive() }
    await Task.yield()
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    try await task.send(.string("x"))
    #expect(text(try await task.receive()) == "x")
    task.cancel()
  }

  /// The program cancels the task while it waits in every way.
  @Test func theTaskIsCancelled() async throws {
    let server = try start(Self.silence)
    defer { server.stop() }
    let task = try task(server)
    task.resume()
    try await task.send(.string("x"))
    let waiting = Task { try await task.receive() }
    let ping = Task { try await task.sendPing() }
    await Task.yield()
    task.cancel()
    await #expect(throws: URLError.self) { try await waiting.value }
    await #expect(throws: URLError.self) { try await ping.value }
    await recorder.wait()
    #expect(recorder.events.last == "error -999")
    #expect(task.closeCode == .invalid)
  }

  /// The program cancels the task in the delegate's call that it has been opened: the connection ends.
  @Test func theTaskIsCancelledAsItOpens() async throws {
    let server = try start([.awaitEnd])
    defer { server.stop() }
    let recorder = WebSocketRecorder { $0.cancel() }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let task = session.webSocketTask(with: try #require(URL(string: server.webSocketURL())))
    let waiting = Task { try await task.receive() }
    task.resume()
    await recorder.wait()
    #expect(recorder.events.last == "error -999")
    await #expect(throws: URLError.self) { try await waiting.value }
    // The server closes its side because the client has ended the connection.
    try await server.waitForClosedConnections(1)
    #expect(server.failures.isEmpty)
  }

  @Test func aTaskIsClosedBeforeItRuns() async throws {
    let server = try start([.echo])
    defer { server.stop() }
    let task = try task(server)
    task.cancel(with: .goingAway, reason: nil)
    await #expect(throws: (any Error).self) { try await task.receive() }
    await recorder.wait()
    #expect(recorder.events == ["metrics 0", "error -999"])
    #expect(task.closeCode == .goingAway)
    #expect(server.connectionsAccepted == 0)
  }

  /// A close during the handshake is sent right behind it.
  @Test func aTaskIsClosedWhileItOpens() async throws {
    let server = try start([.echo])
    defer { server.stop() }
    let task = try task(server)
    task.resume()
    task.cancel(with: .goingAway, reason: nil)
    await recorder.wait()
    #expect(recorder.events == ["open -", "close 1001 -", "metrics 1", "complete"])
  }

  /// What is not received is not read: the server comes to a stop, and nothing is lost.
  @Test func aSlowReaderHoldsTheServerUp() async throws {
    let allSent = TestServer.Signal()
    let total = 400
    let payload = [UInt8](repeating: 7, count: 100_000)
    let server = try start([.repeat(total, [.send(payload)]), .fire(allSent), .echo])
    defer { server.stop() }
    let task = try task(server)
    task.resume()
    #expect(text(try await task.receive()) == "100000 bytes")
    for _ in 1..<50 { _ = try await task.receive() }
    // 40 MB would have fitted nowhere: the kernel's buffers hold a few megabytes.
    #expect(!allSent.hasFired)
    for _ in 50..<total { #expect(text(try await task.receive()) == "100000 bytes") }
    try await allSent.wait()
    task.cancel()
  }

  @Test func pingsByThemselves() async throws {
    // The third ping gets a message in place of a pong.
    let server = try start([
      .expectPing(), .expectPing(), .answerPings(false), .expectPing(), .send("3"), .awaitEnd,
    ])
    defer { server.stop() }
    let task = try task(server)
    task.pingInterval = 0.01
    task.pongTimeout = 60
    #expect(task.pingInterval == 0.01 && task.pongTimeout == 60)
    task.resume()
    #expect(text(try await task.receive()) == "3")
    task.cancel()
  }

  @Test func aServerThatAnswersNoPing() async throws {
    let server = try start(Self.silence)
    defer { server.stop() }
    let task = try task(server)
    task.pingInterval = 0.01
    task.pongTimeout = 0.05
    task.resume()
    let (_, error) = await receiveAll(task)
    #expect((error as? URLError)?.code == .timedOut)
    await recorder.wait()
    #expect(recorder.events.last == "error -1001")
    #expect(task.closeCode == .abnormalClosure)
  }

  // MARK: - Handshakes

  /// Any answer but a valid 101 fails the task, and is its response.
  @Test(arguments: [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
  ]) func anAnswerThatOpensNothing(_ answer: String) async throws {
    let server = try TestServer()
    server.enqueue([.expectRequest, .send(answer), .expectClose])
    let url = server.webSocketURL("/chat")
    let task = session.webSocketTask(with: try #require(URL(string: url)))
    task.resume()
    let (messages, error) = await receiveAll(task)
    #expect(messages.isEmpty && (error as? URLError)?.code == .badServerResponse)
    await recorder.wait()
    #expect(recorder.events.last == "error -1011")
    #expect((task.error as? URLError)?.failingURL?.absoluteString == url)
    let status = Int(answer.dropFirst(9).prefix(3))
    #expect((task.response as? HTTPURLResponse)?.statusCode == status)
    let fields = server.requests.first?.fields
    #expect(fields?["Upgrade"] == "websocket" && fields?["Sec-WebSocket-Version"] == "13")
    #expect(fields?["Sec-WebSocket-Extensions"]?.hasPrefix("permessage-deflate") == true)
  }

  /// A single fault of the opening handshake fails the task.
  @Test(
    arguments: [
      .status(200), .wrongAccept, .omit("Upgrade"), .omit("Connection"), .omit("Sec-WebSocket-Accept"),
      .replace("Upgrade", with: "h2c"), .replace("Connection", with: "close"), .add("Upgrade", "websocket"),
      .add("Sec-WebSocket-Accept", "x"), .add("Sec-WebSocket-Protocol", "chat.v3"),
      .add("Sec-WebSocket-Extensions", "x-other"),
      .add("Sec-WebSocket-Extensions", "permessage-deflate; server_max_window_bits=16"),
    ] as [TestServer.WebSocketFault])
  func aFaultOfTheHandshake(_ fault: TestServer.WebSocketFault) async throws {
    let server = try start([.awaitEnd], answer: TestServer.WebSocketAnswer(faults: [fault]))
    defer { server.stop() }
    let url = try #require(URL(string: server.webSocketURL()))
    let task = session.webSocketTask(with: url, protocols: ["chat.v2", "chat.v1"])
    task.resume()
    let (messages, error) = await receiveAll(task)
    #expect(messages.isEmpty && (error as? URLError)?.code == .badServerResponse)
    await recorder.wait()
    #expect(recorder.events.last == "error -1011")
    #expect(recorder.events.allSatisfy { !$0.hasPrefix("open") && !$0.hasPrefix("close") })
    #expect((task.response as? HTTPURLResponse)?.statusCode == (fault == .status(200) ? 200 : 101))
    #expect(task.closeCode == .invalid)
    #expect(server.webSockets.count == 1)
  }

  /// The program's own fields are sent, those of the handshake are Larkspur's, and cookies go along.
  @Test func fieldsOfTheHandshake() async throws {
    let server = try TestServer()
    server.enqueue([.expectRequest, .send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), .expectClose])
    let configuration = URLSessionConfiguration.ephemeral
    let http = try #require(URL(string: server.url("/")))
    let cookie = try #require(
      HTTPCookie(properties: [.name: "a", .value: "1", .domain: "127.0.0.1", .path: "/"]))
    configuration.httpCookieStorage?.setCookie(cookie)
    let session = URLSession(configuration: configuration)
    var request = URLRequest(url: try #require(URL(string: http.absoluteString.replacing("http:", with: "ws:"))))
    request.setValue("1", forHTTPHeaderField: "X-Own")
    request.setValue("no", forHTTPHeaderField: "Upgrade")
    request.setValue("mine", forHTTPHeaderField: "Sec-WebSocket-Key")
    let task = session.webSocketTask(with: request)
    task.offersCompression = false
    task.resume()
    _ = await receiveAll(task)
    let fields = try #require(server.requests.first?.fields)
    #expect(fields["X-Own"] == "1" && fields["Cookie"] == "a=1" && fields["Upgrade"] == "websocket")
    #expect(fields["Sec-WebSocket-Key"] != "mine" && fields["Sec-WebSocket-Extensions"] == nil)
  }

  @Test func aRedirectionIsFollowed() async throws {
    let server = try TestServer()
    defer { server.stop() }
    server.webSocket("/moved", [.echo])
    let target = server.webSocketURL("/moved")
    let first = try TestServer()
    first.enqueue([
      .expectRequest,
      .send("HTTP/1.1 302 Found\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n"), .expectClose,
    ])
    let task = try task(first)
    task.resume()
    try await task.send(.string("x"))
    #expect(text(try await task.receive()) == "x")
    #expect(task.response?.url?.absoluteString == target)
    task.cancel()
  }

  @Test(arguments: ["ftp://localhost/", "file:///etc/hosts", "data:,x"]) func otherSchemes(_ url: String) async throws {
    let task = session.webSocketTask(with: try #require(URL(string: url)))
    task.resume()
    let (_, error) = await receiveAll(task)
    #expect((error as? URLError)?.code == .unsupportedURL)
  }
}
