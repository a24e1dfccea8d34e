import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// WebSockets with the Python package `websockets`, and with nginx, HAProxy and Apache httpd in front of it.
@Suite(.serialized, .ownThread) struct WebSocketFrontTests {
  private let session = URLSession(configuration: .ephemeral)

  private func send(_ count: Int, over socket: URLSessionWebSocketTask) async throws {
    for number in 0..<count { try await socket.send(.string("message \(number)")) }
  }

  @Test(arguments: WebSocketFront.Kind.allCases) func messages(front kind: WebSocketFront.Kind) async throws {
    let front = try WebSocketFront(kind)
    let socket = try session.openSocket(front.url("/echo"))
    for text in ["a", "", String(repeating: "ä", count: 500), SessionServer.text] {
      try await socket.send(.string(text))
      #expect(try await socket.receiveText() == text)
    }
    for count in [0, 1, 125, 126, 65_535, 65_536, 4 << 20] {
      let data = Data(TestServer.content(count: count))
      try await socket.send(.data(data))
      #expect(try await socket.receiveData() == data)
    }
    // In both directions at once.
    async let sent: Void = send(200, over: socket)
    for number in 0..<200 { #expect(try await socket.receiveText() == "message \(number)") }
    try await sent
    socket.cancel(with: .normalClosure, reason: nil)
  }

  @Test(arguments: WebSocketFront.Kind.allCases) func fragmentsAndPings(front kind: WebSocketFront.Kind) async throws {
    let front = try WebSocketFront(kind)
    let fragments = try session.openSocket(front.url("/fragments"))
    #expect(try await fragments.receiveText() == "one, two, three: äöü")
    let pieces = (0..<3).map { Data(repeating: $0, count: 100_000) }
    #expect(try await fragments.receiveData() == pieces.reduce(Data(), +))
    // The server's pings are answered, and this side's too.
    #expect(try await session.openSocket(front.url("/ping")).receiveText() == "pong")
    let socket = try session.openSocket(front.url("/echo"))
    for _ in 0..<10 { try await socket.sendPing() }
    try await socket.send(.string("still open"))
    #expect(try await socket.receiveText() == "still open")
    socket.cancel(with: .goingAway, reason: nil)
  }

  @Test(arguments: WebSocketFront.Kind.allCases) func agreements(front kind: WebSocketFront.Kind) async throws {
    let front = try WebSocketFront(kind)
    let recorder = WebSocketRecorder()
    let recording = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let socket = try recording.openSocket(front.url("/about"), protocols: ["chat.v1", "chat.v0"])
    #expect(try await socket.receiveText() == "subprotocol=chat.v1 extensions=permessage-deflate")
    await recorder.wait()
    #expect(recorder.events.withLock { $0 } == ["open chat.v1", "closed 1000 ", "complete"])
    let plain = session.webSocketTask(with: try #require(URL(string: front.url("/about"))))
    plain.offersCompression = false
    plain.resume()
    #expect(try await plain.receiveText() == "subprotocol=None extensions=")
  }

  @Test(arguments: WebSocketFront.Kind.allCases) func closes(front kind: WebSocketFront.Kind) async throws {
    let front = try WebSocketFront(kind)
    let recorder = WebSocketRecorder()
    let recording = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let closed = try recording.openSocket(front.url("/close/4002/because"))
    for try await message in closed.messages { Issue.record("received \(message)") }
    await recorder.wait()
    #expect(recorder.events.withLock { $0 } == ["open ", "closed 4002 because", "complete"])
    #expect(closed.closeCode == .other(4002))
    #expect(closed.closeReason == Data("because".utf8))

    // What this side sends comes to the server.
    let codes: [(URLSessionWebSocketTask.CloseCode, String, String)] = [
      (.other(4001), "over", "4001 over"), (.goingAway, "", "1001 "), (.normalClosure, "äöü", "1000 äöü"),
    ]
    for (code, reason, expected) in codes {
      let recorder = WebSocketRecorder()
      let recording = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
      let closing = try recording.openSocket(front.url("/closed/\(code.rawValue)"))
      try await closing.send(.string("the last message"))
      closing.cancel(with: code, reason: Data(reason.utf8))
      await recorder.wait()
      #expect(recorder.events.withLock { $0.last } == "complete")
      #expect(closing.closeCode == code)
      let noted = try session.openSocket(front.url("/closes/\(code.rawValue)"))
      #expect(try await noted.receiveText() == expected)
    }
  }

  /// A message above the limit, which counts after decompression, fails the task.
  @Test func tooLargeAMessage() async throws {
    let front = try WebSocketFront(.none)
    let recorder = WebSocketRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let socket = session.webSocketTask(with: try #require(URL(string: front.url("/echo"))))
    socket.maximumMessageSize = 1000
    socket.resume()
    try await socket.send(.data(Data(count: 1000)))
    #expect(try await socket.receiveData() == Data(count: 1000))
    try await socket.send(.data(Data(count: 1001)))
    await #expect(throws: (any Error).self) { _ = try await socket.receive() }
    await recorder.wait()
    #expect((socket.error as? URLError)?.code == .dataLengthExceedsMaximum)
    #expect(socket.closeCode == .messageTooBig)
  }
}
