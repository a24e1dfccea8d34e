import CAllocations
import LarkspurHTTP
import Testing

@Suite struct WebSocketMessageAssemblerTests {
  static func message(
    _ kind: WebSocketMessageKind, _ pieces: [[UInt8]], limit: Int = 100
  ) throws(WebSocketError) -> WebSocketMessage {
    var assembler = WebSocketMessageAssembler(messageBytesMax: limit)
    assembler.start(kind, byteCount: nil)
    for piece in pieces { try assembler.append(piece.span) }
    return try assembler.finish()
  }

  @Test func messages() throws {
    #expect(try Self.message(.text, []) == WebSocketMessage(.text, []))
    #expect(try Self.message(.text, [[0xe2], [0x82, 0xac]]) == WebSocketMessage(.text, Array("€".utf8)))
    #expect(try Self.message(.binary, [[0xff], [], [0xfe]]) == WebSocketMessage(.binary, [0xff, 0xfe]))
  }

  @Test func invalidText() {
    #expect(throws: WebSocketError.invalidUTF8) { try Self.message(.text, [[0x61, 0xff]]) }
    #expect(throws: WebSocketError.invalidUTF8) { try Self.message(.text, [[0xe2], [0x82]]) }
    // The first bad byte fails, not the end.
    var assembler = WebSocketMessageAssembler(messageBytesMax: 100)
    assembler.start(.text, byteCount: nil)
    let bad: [UInt8] = [0xc0]
    var error: WebSocketError?
    do { try assembler.append(bad.span) } catch let caught { error = caught }
    #expect(error == .invalidUTF8)
    // Nothing of the message is kept.
    #expect(Mirror(reflecting: assembler).descendant("bytes") as? [UInt8] == [])
    // The error stays until the next message begins.
    #expect(throws: WebSocketError.invalidUTF8) { try assembler.finish() }
    #expect(throws: WebSocketError.invalidUTF8) { try assembler.finish() }
    assembler.start(.text, byteCount: nil)
    #expect(throws: Never.self) { try assembler.finish() }
  }

  @Test(arguments: [WebSocketMessageKind.text, .binary]) func limit(kind: WebSocketMessageKind) throws {
    let ten = [UInt8](repeating: 0x61, count: 10)
    for cut in 0...10 {
      let pieces = [Array(ten[..<cut]), Array(ten[cut...])]
      #expect(try Self.message(kind, pieces, limit: 10).bytes == ten)
      #expect(throws: WebSocketError.messageTooBig(limit: 10)) {
        try Self.message(kind, pieces + [[0x61]], limit: 10)
      }
      #expect(throws: WebSocketError.messageTooBig(limit: 9)) { try Self.message(kind, pieces, limit: 9) }
    }
    #expect(try Self.message(kind, [[]], limit: 0).bytes == [])
    #expect(throws: WebSocketError.messageTooBig(limit: 0)) { try Self.message(kind, [[0x61]], limit: 0) }
    #expect(throws: WebSocketError.messageTooBig(limit: .min)) { try Self.message(kind, [[0x61]], limit: .min) }
  }

  /// A bad byte in front of the limit is found first, whatever the pieces; one behind it is not.
  @Test func errorOrder() {
    let bytes: [UInt8] = [0x61, 0xff, 0x61, 0x61]
    for cut in 0...4 {
      let pieces = [Array(bytes[..<cut]), Array(bytes[cut...])]
      #expect(throws: WebSocketError.invalidUTF8) { try Self.message(.text, pieces, limit: 2) }
      #expect(throws: WebSocketError.messageTooBig(limit: 1)) { try Self.message(.text, pieces, limit: 1) }
    }
  }

  /// The limit may be lowered below what is held.
  @Test func loweredLimit() throws {
    var assembler = WebSocketMessageAssembler(messageBytesMax: 10)
    assembler.start(.text, byteCount: nil)
    let piece: [UInt8] = [0x61, 0x61]
    try assembler.append(piece.span)
    assembler.messageBytesMax = 1
    var error: WebSocketError?
    do { try assembler.append(piece.span) } catch let caught { error = caught }
    #expect(error == .messageTooBig(limit: 1))
  }

  /// A message of a known size costs one allocation, in however many pieces it comes. An announced size beyond the
  /// limits reserves nothing.
  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc")) func oneAllocation() throws {
    let piece = [UInt8](repeating: 0x61, count: 100)
    var assembler = WebSocketMessageAssembler(messageBytesMax: 1 << 20)
    func allocations(byteCount: Int?, pieces: Int) throws -> (UInt64, Int) {
      let before = larkspur_allocations()
      assembler.start(.text, byteCount: byteCount)
      for _ in 0..<pieces { try assembler.append(piece.span) }
      let message = try assembler.finish()
      return (UInt64(larkspur_allocations() - before), message.bytes.count)
    }
    // The first calls allocate metadata.
    _ = try allocations(byteCount: 5000, pieces: 50)
    let known = try allocations(byteCount: 5000, pieces: 50)
    #expect(known.0 == 1 && known.1 == 5000)
    #expect(try allocations(byteCount: 0, pieces: 0) == (0, 0))
    #expect(try allocations(byteCount: .max, pieces: 0) == (0, 0))
    #expect(try allocations(byteCount: (1 << 20) + 1, pieces: 0) == (0, 0))
    assembler.messageBytesMax = .max
    #expect(try allocations(byteCount: WebSocketMessageAssembler.reservationBytesMax, pieces: 0) == (1, 0))
    #expect(try allocations(byteCount: WebSocketMessageAssembler.reservationBytesMax + 1, pieces: 0) == (0, 0))
  }
}
