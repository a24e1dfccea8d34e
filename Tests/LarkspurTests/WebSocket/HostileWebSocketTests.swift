import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Servers that break the protocol or overwhelm the client: each has one outcome.
@Suite(.timeLimit(.minutes(2))) struct HostileWebSocketTests {
  /// The bytes that a server sends behind the handshake, and the end that the conversation has to have.
  struct Attack: Sendable, CustomTestStringConvertible {
    var name: String
    var bytes: [UInt8]
    /// The code of the client's Close, or `nil` if it sends none.
    var answer: UInt16?
    var error: POSIXErrorCode?
    var messages = 0

    var testDescription: String { name }
  }

  static let attacks = [
    Attack(name: "a masked frame", bytes: [0x81, 0x81, 1, 2, 3, 4, 5], answer: 1002, error: .EPROTO),
    Attack(name: "RSV2", bytes: [0xa1, 0], answer: 1002, error: .EPROTO),
    Attack(name: "RSV1 without compression", bytes: [0xc1, 0], answer: 1002, error: .EPROTO),
    Attack(name: "a reserved opcode", bytes: [0x83, 0], answer: 1002, error: .EPROTO),
    Attack(name: "a control frame of 126 bytes", bytes: [0x89, 126, 0, 126], answer: 1002, error: .EPROTO),
    Attack(name: "a fragmented ping", bytes: [0x09, 0], answer: 1002, error: .EPROTO),
    Attack(name: "a length of 64 bits", bytes: [0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], answer: 1002, error: .EPROTO),
    Attack(name: "a length that is not minimal", bytes: [0x82, 126, 0, 5], answer: 1002, error: .EPROTO),
    Attack(name: "2^62 bytes", bytes: [0x82, 127, 0x40, 0, 0, 0, 0, 0, 0, 0], answer: 1009, error: .EMSGSIZE),
    Attack(
      name: "one byte too many", bytes: [0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1], answer: 1009, error: .EMSGSIZE),
    Attack(name: "a continuation of nothing", bytes: [0x80, 0], answer: 1002, error: .EPROTO),
    Attack(name: "a message within a message", bytes: [0x01, 1, 0x61, 0x81, 0], answer: 1002, error: .EPROTO),
    Attack(name: "text that is not UTF-8", bytes: [0x81, 3, 0x61, 0xff, 0x61], answer: 1007, error: .EPROTO),
    Attack(name: "the beginning of such a text", bytes: [0x81, 126, 1, 0, 0x61, 0xff], answer: 1007, error: .EPROTO),
    Attack(name: "half a character", bytes: [0x81, 1, 0xc3], answer: 1007, error: .EPROTO),
    Attack(name: "a Close of one byte", bytes: [0x88, 1, 3], answer: 1002, error: .EPROTO),
    Attack(name: "a Close with code 1005", bytes: [0x88, 2, 0x03, 0xed], answer: 1002, error: .EPROTO),
    Attack(
      name: "a Close whose reason is not UTF-8", bytes: [0x88, 3, 0x03, 0xe8, 0xff], answer: 1007, error: .EPROTO),
    Attack(
      name: "bytes behind the Close", bytes: [0x81, 1, 0x61, 0x88, 2, 0x03, 0xe8, 0x81, 1, 0x62], answer: 1000,
      error: .ENOTCONN, messages: 1),
    Attack(name: "an empty Close", bytes: [0x88, 0], answer: 0, error: .ENOTCONN),
  ]

  private func receiveAll(_ task: URLSessionWebSocketTask) async -> (Int, NSError) {
    var count = 0
    while true {
      do {
        _ = try await task.receive()
        count += 1
      } catch {
        return (count, error as NSError)
      }
    }
  }

  /// Reads to the end of the connection, and answers nothing.
  private static let silence: [TestServer.WebSocketStep] = [.answerPings(false), .answerClose(false), .awaitEnd]

  /// Receives all messages of a server that does the steps.
  ///
  /// - Parameter awaitsClose: Whether the client has to send a Close, which `record` then has.
  private func run(
    _ steps: [TestServer.WebSocketStep], answer: TestServer.WebSocketAnswer = TestServer.WebSocketAnswer(),
    awaitsClose: Bool = true, _ setUp: (URLSessionWebSocketTask) -> Void = { _ in }
  ) async throws -> (
    messages: Int, error: NSError, task: URLSessionWebSocketTask, events: [String], record: TestServer.WebSocket
  ) {
    let server = try TestServer()
    defer { server.stop() }
    server.webSocket("/", steps, answer: answer)
    let recorder = WebSocketRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let task = session.webSocketTask(with: try #require(URL(string: server.webSocketURL())))
    setUp(task)
    task.resume()
    let (count, error) = await receiveAll(task)
    await recorder.wait()
    // The server's thread reads the Close in its own time: the task may be over before.
    if awaitsClose { try await server.waitForWebSocketCloses(1) }
    session.invalidateAndCancel()
    let record = try #require(server.webSockets.first)
    #expect(server.failures.isEmpty)
    return (count, error, task, recorder.events, record)
  }

  @Test(arguments: attacks) func oneRightOutcome(_ attack: Attack) async throws {
    let outcome = try await run([.sendBytes(attack.bytes)] + Self.silence)
    #expect(outcome.messages == attack.messages)
    // A call that comes later fails like those that waited.
    let late = await receiveAll(outcome.task).1
    #expect(late.domain == outcome.error.domain && late.code == outcome.error.code)
    #expect(outcome.error.domain == NSPOSIXErrorDomain)
    #expect(outcome.error.code == attack.error.map { Int($0.rawValue) })
    let code = attack.answer.map { $0 == 0 ? [] : [UInt8($0 >> 8), UInt8($0 & 0xff)] }
    let close = outcome.record.frames.last { $0.opcode == .close }
    #expect(close?.payload == code)
    #expect(
      outcome.events.last
        == (attack.error == .ENOTCONN ? "complete" : attack.error == .EMSGSIZE ? "error -1103" : "error -1011"))
  }

  /// A million empty fragments, and pings without end: bounded memory, and the connection still works.
  @Test func floods() async throws {
    let fragments = [UInt8](repeating: 0, count: 2 * 10_000)
    let outcome = try await run([
      .sendFrame(.init(.text, isFinal: false)), .repeat(100, [.sendBytes(fragments)]),
      .sendFrame(.init(.continuation, "a")), .flood(.pings(), count: 100_000), .close(1000), .awaitClose(code: 1000),
    ])
    #expect(outcome.messages == 1)
    #expect(outcome.events.last == "complete")
    let last = try #require(outcome.record.frames.last)
    #expect(last.opcode == .close)
  }

  /// A compressed message of 64 KiB that inflates to 64 MiB. No more of it is inflated than the task accepts, or, for a
  /// task that accepts far longer messages, than the ratio of sizes that no honest message exceeds.
  @Test(
    arguments: [
      (1 << 20, 1009, .EMSGSIZE, "error -1103"), (1 << 30, 1007, .EPROTO, "error -1011"),
    ] as [(Int, Int, POSIXErrorCode, String)])
  func aDeflateBomb(limit: Int, closeCode: Int, code: POSIXErrorCode, event: String) async throws {
    let outcome = try await run(
      [.deflateBomb(bytes: 64 << 20)] + Self.silence,
      answer: TestServer.WebSocketAnswer(deflate: TestServer.WebSocketDeflate()), { $0.maximumMessageSize = limit })
    #expect(outcome.record.deflate != nil)
    #expect(outcome.messages == 0)
    #expect(outcome.error.domain == NSPOSIXErrorDomain && outcome.error.code == Int(code.rawValue))
    #expect(outcome.record.closeCode == closeCode && outcome.task.closeCode.rawValue == closeCode)
    #expect(outcome.events.last == event)
    let failure = try #require(outcome.task.error as? URLError)
    let underlying = failure.userInfo[NSUnderlyingErrorKey] as? NSError
    #expect(underlying?.domain == NSPOSIXErrorDomain && underlying?.code == Int(code.rawValue))
  }

  /// A message that grows in fragments beyond the limit.
  @Test func fragmentsBeyondTheLimit() async throws {
    let payload = [UInt8](repeating: 1, count: 100)
    let outcome = try await run(
      [
        .sendFrame(.init(.binary, payload, isFinal: false)), .sendFrame(.init(.continuation, payload, isFinal: false)),
      ] + Self.silence, { $0.maximumMessageSize = 199 })
    #expect(outcome.messages == 0 && outcome.error.code == Int(EMSGSIZE))
    #expect(outcome.task.closeCode == .messageTooBig)
    #expect(outcome.record.closeCode == 1009)
  }

  @Test func aMessageOfTheLimit() async throws {
    let outcome = try await run(
      [.send([UInt8](repeating: 1, count: 100)), .close(1000), .awaitClose(code: 1000)],
      { $0.maximumMessageSize = 100 })
    #expect(outcome.messages == 1 && outcome.error.code == Int(ENOTCONN))
  }

  /// A server that vanishes without a Close.
  @Test func theConnectionIsLost() async throws {
    let outcome = try await run([.send("a"), .end], awaitsClose: false)
    #expect(outcome.messages == 1)
    #expect(outcome.error.domain == NSURLErrorDomain && outcome.error.code == URLError.networkConnectionLost.rawValue)
    #expect(outcome.task.closeCode == .abnormalClosure)
    #expect(outcome.events.last == "error -1005")
  }
}
