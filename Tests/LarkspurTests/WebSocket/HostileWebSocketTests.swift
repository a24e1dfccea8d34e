import Foundation
import Larkspur
import LarkspurHTTP
import LarkspurTestServer
import Synchronization
import Testing

/// Servers that break the protocol or overwhelm the client: each has one outcome.
@Suite struct HostileWebSocketTests {
  /// What a server does behind the handshake, and how the conversation has to end.
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

  private func run(
    _ serve: @escaping @Sendable (WebSocketServer.Conversation) throws -> Void,
    _ setUp: (URLSessionWebSocketTask) -> Void = { _ in }
  ) async throws -> (messages: Int, error: NSError, task: URLSessionWebSocketTask, events: [String]) {
    let server = try WebSocketServer(serve)
    defer { server.stop() }
    let recorder = WebSocketRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let task = session.webSocketTask(with: try #require(URL(string: server.url())))
    setUp(task)
    task.resume()
    let (count, error) = await receiveAll(task)
    await recorder.wait()
    session.invalidateAndCancel()
    return (count, error, task, recorder.events)
  }

  @Test(arguments: attacks) func oneRightOutcome(_ attack: Attack) async throws {
    let answer = Mutex<[UInt8]?>(nil)
    let bytes = attack.bytes
    let outcome = try await run { conversation in
      try conversation.send(bytes)
      while let frame = try conversation.receive() {
        if frame.opcode == .close { answer.withLock { $0 = frame.payload } }
      }
    }
    #expect(outcome.messages == attack.messages)
    // A call that comes later fails like those that waited.
    let late = await receiveAll(outcome.task).1
    #expect(late.domain == outcome.error.domain && late.code == outcome.error.code)
    #expect(outcome.error.domain == NSPOSIXErrorDomain)
    #expect(outcome.error.code == attack.error.map { Int($0.rawValue) })
    let code = attack.answer.map { $0 == 0 ? [] : [UInt8($0 >> 8), UInt8($0 & 0xff)] }
    // The server's thread reads the answer in its own time: the task may be over before.
    while answer.withLock({ $0 }) == nil { await Task.yield() }
    #expect(answer.withLock { $0 } == code)
    #expect(
      outcome.events.last
        == (attack.error == .ENOTCONN ? "complete" : attack.error == .EMSGSIZE ? "error -1103" : "error -1011"))
  }

  /// A million empty fragments, and pings without end: bounded memory, and the connection still works.
  @Test func floods() async throws {
    let outcome = try await run { conversation in
      try conversation.send([0x01, 0])
      let fragments = [UInt8](repeating: 0, count: 2 * 10_000)
      for _ in 0..<100 { try conversation.send(fragments) }
      try conversation.send([0x80, 1, 0x61])
      let pings = (0..<10_000).flatMap { _ in [0x89, 0] as [UInt8] }
      for _ in 0..<10 { try conversation.send(pings) }
      try conversation.send(.close(1000))
      while let frame = try conversation.receive(), frame.opcode != .close {}
    }
    #expect(outcome.messages == 1)
    #expect(outcome.events.last == "complete")
  }

  /// A message that grows in fragments beyond the limit.
  @Test func fragmentsBeyondTheLimit() async throws {
    let outcome = try await run(
      { conversation in
        try conversation.send([0x02, 100] + [UInt8](repeating: 1, count: 100))
        try conversation.send([0x00, 100] + [UInt8](repeating: 1, count: 100))
        while try conversation.receive() != nil {}
      }, { $0.maximumMessageSize = 199 })
    #expect(outcome.messages == 0 && outcome.error.code == Int(EMSGSIZE))
    #expect(outcome.task.closeCode == .messageTooBig)
  }

  @Test func aMessageOfTheLimit() async throws {
    let outcome = try await run(
      { conversation in
        try conversation.send([0x82, 100] + [UInt8](repeating: 1, count: 100))
        try conversation.send(.close(1000))
        while try conversation.receive() != nil {}
      }, { $0.maximumMessageSize = 100 })
    #expect(outcome.messages == 1 && outcome.error.code == Int(ENOTCONN))
  }

  /// A server that vanishes without a Close.
  @Test func theConnectionIsLost() async throws {
    let outcome = try await run { try $0.send([0x81, 1, 0x61]) }
    #expect(outcome.messages == 1)
    #expect(outcome.error.domain == NSURLErrorDomain && outcome.error.code == URLError.networkConnectionLost.rawValue)
    #expect(outcome.task.closeCode == .abnormalClosure)
    #expect(outcome.events.last == "error -1005")
  }
}
