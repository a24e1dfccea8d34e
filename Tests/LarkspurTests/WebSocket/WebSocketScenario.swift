import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit

@testable import Larkspur

/// A WebSocket conversation over a scripted kernel. One seed is one world: the program's calls, the server's frames,
/// how bytes are cut and held up, and the end.
///
/// Rules, whatever happens: every call ends; the conversation ends once; messages come whole and in order, without a
/// gap; the server gets whole, masked frames in the order of the calls, those of every call that succeeded among them,
/// and at most one Close with nothing but pongs behind it; nothing is left over.
final class WebSocketScenario {
  private let world: ScriptedWorld
  private let gate = LiveGate()
  private let connection: WebSocketConnection
  private var random: SeededGenerator
  private(set) var complaints: [String] = []

  private var receives: [Running<WebSocketOperation>] = []
  private var sends: [Running<WebSocketOperation>] = []
  private var others: [Running<WebSocketOperation>] = []

  private var parser = WebSocketFrameParser(role: .server, allowsCompression: false)
  /// The number of the client's bytes that have been parsed.
  private var parsed = 0
  private var mask: UInt32 = 0
  private var opcode = WebSocketOpcode.continuation
  private var payload: [UInt8] = []
  private var hasCloseOfClient = false
  /// The numbers of the messages that have come.
  private var numbers: [Int] = []
  private var messagesSent = 0
  private var hasEnded = false
  private var answersPings: Bool
  private var answersCloses: Bool

  private var peer: ScriptedPeer { world.kernel.peer() }

  init(seed: UInt64) throws {
    world = try ScriptedWorld()
    random = SeededGenerator(seed: seed)
    (answersPings, answersCloses) = (Bool.random(using: &random), Bool.random(using: &random))
    let settings = WebSocketTaskSettings()
    if Bool.random(using: &random) {
      settings.read { ($0.machine.pingInterval, $0.machine.pongTimeout) = (.seconds(2), .seconds(5)) }
    }
    connection = WebSocketConnection(over: try world.openTunnel(), WebSocketAgreement(), settings) {}
    connection.start()
    gate.open(for: connection)
  }

  // MARK: - The run

  /// Runs the world to its end.
  func run() {
    for _ in 0..<Int.random(in: 1...60, using: &random) {
      step()
      if chance(60) { settle() }
    }
    peer.setSendRoom(.max)
    peer.setSendBytesMax(.max)
    settle()
    end(.end)
    settle()
    // What has come is received, and then the error.
    for _ in 0...messagesSent { receives.append(start(.receive)) }
    for _ in 0..<3 {
      world.kernel.advance(by: .seconds(11))
      settle()
    }
    check()
  }

  private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  private func step() {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<20: receives.append(start(.receive))
    case 20..<35: sends.append(start(.send(.data(Data(message(sends.count, most: chance(5) ? 200_000 : 300))))))
    case 35..<40: others.append(start(.ping))
    case 40..<43: others.append(start(.close(chance(50) ? 1000 : nil, reason: Array("bye".utf8))))
    case 43..<48: (receives + sends + others).randomElement(using: &random)?.cancel()
    case 48..<49:
      let connection = connection
      world.loop.post { connection.interrupt(URLError(.cancelled)) }
    case 49..<75: sendMessage()
    case 75..<79: send(.ping, [1, 2])
    case 79..<81: send(.pong, [UInt8](repeating: 0, count: 7) + [UInt8.random(in: 0...3, using: &random)])
    case 81..<83: send(.close, [3, 0xe8])
    case 83: arrive([0xff, 0xff, 1])
    case 84: end(chance(50) ? .end : .reset)
    case 85: peer.willFailToSend(chance(50) ? .brokenPipe : .wouldBlock)
    case 86..<90: peer.setSendRoom(chance(50) ? .max : Int.random(in: 0...50_000, using: &random))
    case 90..<92: peer.setSendBytesMax(chance(50) ? .max : Int.random(in: 1...1000, using: &random))
    default: world.kernel.advance(by: .milliseconds(Int.random(in: 0...3000, using: &random)))
    }
  }

  private func settle() {
    for _ in 0..<2 where !world.settle() { complaints.append("the loop does not come to rest") }
    answer()
  }

  private func start(_ kind: WebSocketOperation.Kind) -> Running<WebSocketOperation> {
    let gate = gate
    return world.start {
      let operation = WebSocketOperation(kind, through: gate)
      try await operation.run()
      return operation
    }
  }

  // MARK: - The server

  /// Returns a message that says its number.
  private func message(_ number: Int, most: Int) -> [UInt8] {
    let count = Int.random(in: 2...most, using: &random)
    return [UInt8(number >> 8), UInt8(number & 255)] + [UInt8](repeating: UInt8(number & 255), count: count - 2)
  }

  private static func number(of message: [UInt8]) -> Int? {
    guard message.count >= 2, message.dropFirst().allSatisfy({ $0 == message[1] }) else { return nil }
    return Int(message[0]) << 8 | Int(message[1])
  }

  private func sendMessage() {
    guard !hasEnded else { return }
    var rest = message(messagesSent, most: chance(10) ? 100_000 : 200)[...]
    messagesSent += 1
    var opcode = WebSocketOpcode.binary
    while true {
      let isFinal = chance(70)
      let piece = isFinal ? rest : rest.prefix(Int.random(in: 0...rest.count, using: &random))
      rest = rest.dropFirst(piece.count)
      send(opcode, Array(piece), isFinal: isFinal)
      if isFinal { return }
      if chance(10) { send(.ping, []) }
      opcode = .continuation
    }
  }

  private func send(_ opcode: WebSocketOpcode, _ payload: [UInt8], isFinal: Bool = true) {
    var frame: [UInt8] = []
    WebSocketFrameWriter.append(
      WebSocketFrameHeader(opcode, isFinal: isFinal, length: payload.count), to: &frame)
    arrive(frame + payload)
  }

  /// Sends bytes in pieces.
  private func arrive(_ bytes: [UInt8]) {
    guard !hasEnded else { return }
    var rest = bytes[...]
    while chance(30), !rest.isEmpty {
      let piece = rest.prefix(Int.random(in: 1...rest.count, using: &random))
      peer.send(Array(piece))
      rest = rest.dropFirst(piece.count)
    }
    if !rest.isEmpty { peer.send(Array(rest)) }
  }

  private func end(_ end: ScriptedKernel.Arrival) {
    guard !hasEnded else { return }
    hasEnded = true
    peer.arrive([end])
  }

  /// Parses what the client has sent since, and answers.
  private func answer() {
    let bytes = Array(peer.received[parsed...])
    parsed += bytes.count
    var consumed = 0
    do {
      while true {
        switch try parser.next(in: bytes.span, consumed: &consumed) {
        case .needMore: return
        case .frame(let header):
          (opcode, mask, payload) = (header.opcode, header.mask ?? 0, [])
          if hasCloseOfClient, opcode != .pong { complaints.append("\(opcode) behind the Close") }
        case .payload(let range, let endsFrame):
          let offset = payload.count
          payload += bytes[range]
          for index in offset..<payload.count {
            payload[index] ^= UInt8(truncatingIfNeeded: mask >> UInt32(24 - 8 * (index & 3)))
          }
          if endsFrame { frameEnded() }
        }
      }
    } catch {
      complaints.append("the client's frames are wrong: \(error)")
    }
  }

  private func frameEnded() {
    switch opcode {
    case .ping: if answersPings { send(.pong, payload) }
    case .close:
      hasCloseOfClient = true
      if answersCloses { send(.close, payload) }
    case .pong: break
    default:
      guard let number = Self.number(of: payload) else { return complaints.append("a message is damaged") }
      if let last = numbers.last, number <= last { complaints.append("\(number) behind \(last)") }
      numbers.append(number)
    }
  }

  // MARK: - The rules

  private func check() {
    for (name, running) in [("receive", receives), ("send", sends), ("call", others)] {
      for (index, call) in running.enumerated() where !call.isOver { complaints.append("\(name) \(index) hangs") }
    }
    let received = receives.compactMap { $0.value?.message }
    for (index, message) in received.enumerated() where Self.number(of: message.bytes) != index {
      complaints.append("message \(index) is another one or damaged")
    }
    for (index, send) in sends.enumerated() where send.value != nil && !numbers.contains(index) {
      complaints.append("send \(index) has succeeded, and its message has not come")
    }
    if connection.end == nil { complaints.append("there is no end") }
    complaints += world.leftovers
  }
}
