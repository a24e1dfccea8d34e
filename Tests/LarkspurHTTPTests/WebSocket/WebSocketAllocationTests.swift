import CAllocations
import LarkspurBytes
import LarkspurHTTP
import Testing

/// After a warm-up, frames cost no allocation on their way through parser, machine and assembler, or through the
/// writer. A message costs one, of its own memory. The counter belongs to the thread, and no test here suspends.
@Suite(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc")) struct WebSocketAllocationTests {
  /// Parser, machine and assembler, as a connection uses them.
  struct Receiver {
    private var parser = WebSocketFrameParser(allowsCompression: false)
    private var machine = WebSocketMachine(now: Deadline(nanoseconds: 0))
    private var assembler = WebSocketMessageAssembler(messageBytesMax: 1 << 20)
    private var actions: WebSocketMachine.Actions = []
    private(set) var messages = 0
    private(set) var messageBytes = 0

    mutating func receive(_ bytes: Span<UInt8>) throws {
      var consumed = 0
      while true {
        let event = try parser.next(in: bytes, consumed: &consumed)
        if event == .needMore { return }
        machine.received(event, in: bytes, now: Deadline(nanoseconds: 0), into: &actions)
        var index = 0
        while index < actions.count {
          switch actions[index] {
          case .startMessage(let kind, _, let byteCount): assembler.start(kind, byteCount: byteCount)
          case .deliver(let range): try assembler.append(bytes.extracting(range))
          case .endMessage:
            messages += 1
            messageBytes += try assembler.finish().bytes.count
          case .write, .acknowledgePings: break
          case .complete, .fail, .closeConnection: Issue.record("the conversation has ended")
          }
          index += 1
        }
        actions.removeAll(keepingCapacity: true)
        _ = machine.deadline
      }
    }
  }

  struct Load: CustomTestStringConvertible {
    var testDescription: String
    var frames: [UInt8]
    var messageBytes: Int
    /// The number of bytes that arrive at a time.
    var pieceBytes = 1 << 20
    var allocations: Int
  }

  static func frame(_ opcode: WebSocketOpcode, _ count: Int, isFinal: Bool = true) -> [UInt8] {
    var bytes: [UInt8] = []
    let payload = [UInt8](repeating: 0x61, count: count)
    WebSocketFrameWriter.append(opcode, isFinal: isFinal, payload: payload.span, mask: nil, to: &bytes)
    return bytes
  }

  static let whole = frame(.text, 5000)
  static let others = frame(.ping, 0) + frame(.pong, 8) + frame(.pong, 125)

  static let loads = [
    Load(testDescription: "a message", frames: whole, messageBytes: 5000, allocations: 1),
    Load(testDescription: "an empty message", frames: frame(.binary, 0), messageBytes: 0, allocations: 0),
    Load(testDescription: "in pieces", frames: whole, messageBytes: 5000, pieceBytes: 7, allocations: 1),
    Load(
      testDescription: "byte by byte", frames: frame(.binary, 300), messageBytes: 300, pieceBytes: 1, allocations: 1),
    Load(
      testDescription: "pings and pongs", frames: (0..<100).flatMap { _ in others } + whole, messageBytes: 5000,
      allocations: 1),
    Load(
      testDescription: "empty fragments",
      frames: frame(.binary, 5000, isFinal: false)
        + (0..<1000).flatMap { _ in frame(.continuation, 0, isFinal: false) } + frame(.continuation, 0),
      messageBytes: 5000, allocations: 1),
  ]

  @Test(arguments: loads) func received(load: Load) throws {
    var receiver = Receiver()
    func receive() throws {
      var start = 0
      while start < load.frames.count {
        let end = min(start + load.pieceBytes, load.frames.count)
        try receiver.receive(load.frames.span.extracting(start..<end))
        start = end
      }
    }
    try receive()
    let before = larkspur_allocations()
    for _ in 0..<100 { try receive() }
    let allocations = larkspur_allocations() - before
    #expect(receiver.messages == 101 && receiver.messageBytes == 101 * load.messageBytes)
    #expect(allocations == UInt64(100 * load.allocations))
  }

  /// Payload in fragments costs the growth of the message, which doubles, and nothing for each frame.
  @Test(arguments: [10, 100, 1000]) func fragments(count: Int) throws {
    let frames =
      Self.frame(.binary, 0, isFinal: false)
      + (0..<count).flatMap { _ in Self.frame(.continuation, 100_000 / count, isFinal: false) }
      + Self.frame(.continuation, 0)
    var receiver = Receiver()
    try receiver.receive(frames.span)
    let before = larkspur_allocations()
    try receiver.receive(frames.span)
    let allocations = larkspur_allocations() - before
    #expect(receiver.messages == 2 && receiver.messageBytes == 200_000)
    #expect(allocations <= 12)
  }

  /// A sent frame costs the memory that holds it, and none if there is room.
  @Test(arguments: [0, 5, 125, 126, 65_535, 65_536, 100_000]) func sent(count: Int) {
    let payload = [UInt8](repeating: 0x61, count: count)
    var room: [UInt8] = []
    func append(to output: inout [UInt8]) -> Int {
      let before = larkspur_allocations()
      WebSocketFrameWriter.append(.binary, payload: payload.span, mask: 0x0102_0304, to: &output)
      return Int(larkspur_allocations() - before)
    }
    #expect(append(to: &room) == 1)
    room.removeAll(keepingCapacity: true)
    #expect(append(to: &room) == 0)
    #expect(room.count >= count + 6)
  }
}
