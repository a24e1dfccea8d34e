import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// The ends of WebSocket tasks: which calls report them, in which order, and with which error.
@Suite(.timeLimit(.minutes(1))) struct WebSocketEndTests {
  private let recorder = WebSocketRecorder()
  private let session: URLSession

  init() {
    session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
  }

  private func task(_ server: TestServer) throws -> URLSessionWebSocketTask {
    session.webSocketTask(with: try #require(URL(string: server.webSocketURL())))
  }

  /// A message is handled before the Close that comes in the same segment, also on a queue that runs several operations
  /// at once.
  @Test(arguments: [false, true]) func aCloseDoesNotOvertakeAMessage(isConcurrent: Bool) async throws {
    let server = try TestServer()
    defer { server.stop() }
    server.webSocket("/", [.sendBytes([0x81, 1, 0x78, 0x88, 5, 0x03, 0xe8] + "bye".utf8), .awaitClose()])
    let session = URLSession(
      configuration: .ephemeral, delegate: recorder, delegateQueue: isConcurrent ? OperationQueue() : nil)
    let task = session.webSocketTask(with: try #require(URL(string: server.webSocketURL())))
    for number in 0..<2 {
      task.receive { [recorder] result in
        guard case .success(.string(let text)) = result else { return recorder.note("\(number) failed") }
        recorder.note("\(number) \(text)")
      }
    }
    task.resume()
    await recorder.wait()
    #expect(recorder.events == ["open -", "0 x", "1 failed", "close 1000 bye", "metrics 1", "complete"])
    session.invalidateAndCancel()
  }

  /// A server that ends the connection without a Close of its own has not answered this side's.
  @Test(arguments: [TestServer.Step.close, .reset]) func aCloseWithoutAnAnswer(_ end: TestServer.Step) async throws {
    let server = try TestServer()
    defer { server.stop() }
    server.webSocket("/", [.answerClose(false), .awaitClose(code: 1_001, reason: "bye"), .step(end)])
    let task = try task(server)
    task.resume()
    let waiting = Task { try await task.receive() }
    try await task.sendPing()
    task.cancel(with: .goingAway, reason: Data("bye".utf8))
    let error = await #expect(throws: URLError.self) { _ = try await waiting.value }
    #expect(error?.code == .networkConnectionLost)
    await recorder.wait()
    #expect(recorder.events == ["open -", "metrics 1", "error -1005"])
    #expect(task.closeCode == .goingAway && task.closeReason == Data("bye".utf8))
  }

  /// Closing a WebSocket that is over changes nothing, whatever has ended it.
  @Test(arguments: ["close", "loss", "cancellation", "handshake"])
  func aCloseOfATaskThatIsOver(_ cause: String) async throws {
    let server = try TestServer()
    let steps: [TestServer.WebSocketStep] =
      switch cause {
      case "close": [.close(4_001, "enough"), .awaitClose()]
      case "loss": [.expectText("x"), .step(.close)]
      default: [.awaitEnd]
      }
    server.webSocket("/", steps)
    if cause == "handshake" { server.enqueue([.expectRequest, .close]) }
    defer { server.stop() }
    let task = try task(server)
    task.resume()
    try? await task.send(.string("x"))
    if cause == "cancellation" { task.cancel() }
    _ = try? await task.receive()
    // The call has failed because the WebSocket is over, and the task may not be complete yet.
    for _ in 0..<2 {
      task.cancel(with: .goingAway, reason: Data("late".utf8))
      switch cause {
      case "close": #expect(task.closeCode == .other(4_001) && task.closeReason == Data("enough".utf8))
      case "loss": #expect(task.closeCode == .abnormalClosure && task.closeReason == nil)
      default: #expect(task.closeCode == .invalid && task.closeReason == nil)
      }
      await recorder.wait()
    }
  }

  /// A server that ends the connection without an answer to the handshake has given no bad answer: the connection is
  /// lost, as it is for any other request.
  @Test(arguments: [TestServer.Step.close, .reset], ["", "HTTP/1.1 101 Switching Prot"])
  func aHandshakeWithoutAnAnswer(_ end: TestServer.Step, _ start: String) async throws {
    let server = try TestServer()
    server.enqueue([.expectRequest, .send(start), end])
    defer { server.stop() }
    let task = try task(server)
    task.resume()
    let error = await #expect(throws: URLError.self) { _ = try await task.receive() }
    #expect(error?.code == .networkConnectionLost)
    await recorder.wait()
    #expect(recorder.events.last == "error -1005")
    #expect(task.response == nil && task.closeCode == .invalid)
  }
}
