import LarkspurCoding
import TestKit
import Testing

/// Messages of all kinds and sizes through a compressor and an inflater with the same parameters.
///
/// An inflater with room for one byte refuses every reference that goes back beyond its window, so these tests show as
/// well that the compressor keeps within it.
@Suite(.ownThread) struct MessageRoundTripTests {
  struct Connection: ~Copyable {
    var deflater: MessageDeflater
    var inflater: MessageInflater

    init(windowBits: Int, takesOver: Bool) throws(CodingError) {
      let deflater = try MessageDeflater(windowBits: windowBits, takesOver: takesOver)
      inflater = try MessageInflater(windowBits: windowBits, takesOver: takesOver)
      self.deflater = deflater
    }

    /// Sends a message, cut into fragments of `size` bytes.
    mutating func send(_ message: [UInt8], fragment size: Int, room: Int) throws -> [UInt8]? {
      var payload: [UInt8] = []
      try deflater.deflate(message.span, into: &payload)
      // Random bytes are stored, with five bytes for each block, or grow a little in a block with codes.
      #expect(payload.count <= message.count + message.count / 40 + 40)
      let fragments = stride(from: 0, to: payload.count, by: size).map {
        payload[$0..<min($0 + size, payload.count)]
      }
      let inflated = InflatedMessage(fragments, &inflater, room: room, atMost: message.count)
      return inflated.error == nil ? inflated.output : nil
    }
  }

  @Test(arguments: MessageDeflate.windowBits, [true, false])
  func sizes(windowBits: Int, takesOver: Bool) throws {
    var generator = SeededGenerator(for: "round trips of messages, \(windowBits) bits, \(takesOver)")
    var connection = try Connection(windowBits: windowBits, takesOver: takesOver)
    var sizes = [0, 1, 2, 3, 5, 255, 256, 257, 511, 512, 513, 0, 32_767, 32_768, 65_535, 65_536, 70 << 10]
    sizes += (0..<20).map { _ in Int.random(in: 0...70 << 10, using: &generator) }
    for size in sizes {
      for kind in Messages.Kind.allCases {
        let message = Messages.make(kind, size, &generator)
        let fragment = Int.random(in: 1...20_000, using: &generator)
        #expect(try connection.send(message, fragment: fragment, room: 65_536) == message, "\(kind) \(size)")
      }
    }
  }

  @Test(arguments: MessageDeflate.windowBits, [true, false])
  func theWindowIsKept(windowBits: Int, takesOver: Bool) throws {
    var generator = SeededGenerator(for: "windows of messages, \(windowBits) bits, \(takesOver)")
    var connection = try Connection(windowBits: windowBits, takesOver: takesOver)
    // Twice the window, and then short messages, which refer back to earlier ones.
    for size in [2 << windowBits, 100, 1000, 40, 3000, 5] {
      let message = Messages.make(.text, size, &generator)
      #expect(try connection.send(message, fragment: 100, room: 1) == message, "\(size)")
    }
  }

  /// Sizes around those at which the compressor's output fills a step exactly.
  @Test(arguments: [250...290, 65_530...65_560]) func steps(sizes: ClosedRange<Int>) throws {
    var generator = SeededGenerator(seed: 11)
    var connection = try Connection(windowBits: 15, takesOver: true)
    let random = Messages.make(.random, sizes.upperBound, &generator)
    for size in sizes {
      let message = Array(random[..<size].reversed())
      #expect(try connection.send(message, fragment: 1 << 20, room: 70_000) == message, "\(size)")
    }
  }
}
