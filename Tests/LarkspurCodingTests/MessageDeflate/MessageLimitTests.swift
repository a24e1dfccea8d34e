import LarkspurCoding
import TestKit
import Testing

/// Each limit of an inflated message: at its value, and one past it.
@Suite struct MessageLimitTests {
  private func payload(_ message: [UInt8], windowBits: Int = 15) throws -> [UInt8] {
    var deflater = try MessageDeflater(windowBits: windowBits, takesOver: true)
    var payload: [UInt8] = []
    try deflater.deflate(message.span, into: &payload)
    return payload
  }

  @Test(arguments: Messages.Kind.allCases, [1, 5, 1000, 65536, 70_000])
  func length(kind: Messages.Kind, count: Int) throws {
    var generator = SeededGenerator(seed: UInt64(count))
    let message = Messages.make(kind, count, &generator)
    let payload = try payload(message)
    for room in [7, 100_000] {
      #expect(try InflatedMessage(payload, room: room, atMost: count).output == message)
      let short = try InflatedMessage(payload, room: room, atMost: count - 1)
      #expect(short.error == .peerSentMessageTooLong)
      #expect(short.output.count < count)
    }
    // Into an array, and in fragments: the limit is one of the message, and the array gets none of the bytes beyond it.
    var inflater = try MessageInflater(windowBits: 15, takesOver: true)
    var output: [UInt8] = []
    for (index, byte) in payload.enumerated() {
      let isEnd = try inflater.inflate(
        [byte].span, isLast: index == payload.count - 1, atMost: count, appendingTo: &output)
      #expect(isEnd == (index == payload.count - 1))
    }
    #expect(output == message)
    output = []
    #expect(throws: CodingError.peerSentMessageTooLong) {
      try inflater.inflate(payload.span, isLast: true, atMost: count - 1, appendingTo: &output)
    }
    #expect(output.count < count && message.starts(with: output))
  }

  @Test func noLengthAtAll() throws {
    for most in [0, -1, .min] {
      #expect(try InflatedMessage([0], atMost: most).error == nil)
      #expect(try InflatedMessage(MessageInflaterTests.oneBlock, atMost: most).error == .peerSentMessageTooLong)
    }
    // A limit that is lowered within a message.
    var inflater = try MessageInflater(windowBits: 15, takesOver: true)
    let payload = MessageInflaterTests.oneBlock
    var output: [UInt8] = []
    try inflater.inflate(Array(payload[..<5]).span, isLast: false, atMost: 100, appendingTo: &output)
    #expect(!output.isEmpty)
    #expect(throws: CodingError.peerSentMessageTooLong) {
      try inflater.inflate(Array(payload[5...]).span, isLast: true, atMost: 1, appendingTo: &output)
    }
  }

  /// A bomb of 64 MiB in 64 KiB is not expanded beyond the limit of its receiver.
  @Test func bomb() throws {
    let payload = try payload([UInt8](repeating: 0, count: 64 << 20))
    #expect(payload.count < 70_000)
    for room in [1000, 1 << 21] {
      let inflated = try InflatedMessage(payload, room: room, atMost: 1 << 20)
      #expect(inflated.error == .peerSentMessageTooLong)
      #expect(inflated.output.count <= 1 << 20)
    }
    // A receiver without a limit of its own is protected by the ratio.
    let inflated = try InflatedMessage(payload)
    #expect(inflated.error == .peerSentBomb)
    #expect(inflated.output.count <= 1 << 20)
  }

  @Test func expansion() throws {
    var limits = CodingLimits()
    limits.messageBytesOutAlways = 0
    let message = [UInt8](repeating: 0, count: 100_000)
    let payload = try payload(message)
    // The last step of the message has all output and all input.
    let ratio = UInt64((100_000 + payload.count - 1) / payload.count)
    limits.expansionMax = ratio
    #expect(try InflatedMessage(payload, limits: limits).error == nil)
    limits.expansionMax = ratio - 1
    #expect(try InflatedMessage(payload, limits: limits).error == .peerSentBomb)
    limits.expansionMax = .max
    #expect(try InflatedMessage(payload, limits: limits).error == nil)
  }

  /// The allowance is one of each message: a connection may have any number of such messages.
  @Test func whatIsAlwaysAllowed() throws {
    #expect(CodingLimits().messageBytesOutAlways == 1 << 20)
    var limits = CodingLimits()
    limits.expansionMax = 1
    limits.messageBytesOutAlways = 100_000
    let payload = try payload([UInt8](repeating: 0, count: 100_000))
    for takesOver in [true, false] {
      var inflater = try MessageInflater(windowBits: 15, takesOver: takesOver, limits: limits)
      for fragments in [[payload[...]], single(payload), [payload[...]]] {
        let inflated = InflatedMessage(fragments, &inflater)
        #expect(inflated.error == nil && inflated.output.count == 100_000)
      }
    }
    limits.messageBytesOutAlways = 99_999
    #expect(try InflatedMessage(payload, limits: limits).error == .peerSentBomb)
    // The allowance of bodies is another one.
    limits.bytesOutAlways = 1 << 40
    #expect(try InflatedMessage(payload, limits: limits).error == .peerSentBomb)
  }

  /// A million streams of two bytes within one message: each costs the same, whatever the window holds.
  @Test func manyFinalBlocks() throws {
    var inflater = try MessageInflater(windowBits: 15, takesOver: true)
    let message = [UInt8](repeating: 1, count: 40_000)
    #expect(InflatedMessage([try payload(message)[...]], &inflater).output == message)
    var payload: [UInt8] = []
    for _ in 0..<1_000_000 { payload += [0x03, 0x00] }
    let inflated = InflatedMessage([payload[...]], &inflater)
    #expect(inflated.error == nil && inflated.output == [])
  }
}
