import LarkspurCoding
import TestKit
import Testing

@Suite struct MessageDeflaterTests {
  let hello = MessageInflaterTests.hello

  private func payload(_ message: [UInt8], _ deflater: inout MessageDeflater) throws -> [UInt8] {
    // What is in the array stays there.
    var output: [UInt8] = [9, 9]
    try deflater.deflate(message.span, into: &output)
    #expect(output.starts(with: [9, 9]))
    return Array(output.dropFirst(2))
  }

  /// The payloads of RFC 7692, sections 7.2.3.1, 7.2.3.2, 7.2.3.3 and 7.2.3.6.
  @Test func theVectorsOfTheStandard() throws {
    for windowBits in 9...15 {
      var deflater = try MessageDeflater(windowBits: windowBits, takesOver: true)
      #expect(try payload([], &deflater) == [0x00])
      #expect(try payload(hello, &deflater) == MessageInflaterTests.oneBlock)
      #expect(try payload([], &deflater) == [0x00])
      #expect(try payload(hello, &deflater) == MessageInflaterTests.shared)
    }
    for windowBits in MessageDeflate.windowBits {
      var alone = try MessageDeflater(windowBits: windowBits, takesOver: false)
      for _ in 0..<3 { #expect(try payload(hello, &alone) == MessageInflaterTests.oneBlock) }
      var stored = try MessageDeflater(windowBits: windowBits, takesOver: true, level: 0)
      for _ in 0..<2 {
        #expect(try payload(hello, &stored) == [0x00, 0x05, 0x00, 0xfa, 0xff, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x00])
      }
    }
  }

  /// Trimming frees what no message depends on: with takeover, the next one still refers back.
  @Test func trimming() throws {
    var deflater = try MessageDeflater(windowBits: 15, takesOver: true)
    deflater.trim()
    #expect(try payload(hello, &deflater) == MessageInflaterTests.oneBlock)
    deflater.trim()
    #expect(try payload(hello, &deflater) == MessageInflaterTests.shared)
    var alone = try MessageDeflater(windowBits: 15, takesOver: false)
    for _ in 0..<2 {
      alone.trim()
      #expect(try payload(hello, &alone) == MessageInflaterTests.oneBlock)
    }
  }

  @Test func levels() throws {
    var generator = SeededGenerator(seed: 5)
    let message = Messages.make(.text, 20_000, &generator)
    var sizes: [Int] = []
    for level in [-5, 0, 1, 9, 100] {
      var deflater = try MessageDeflater(windowBits: 15, takesOver: true, level: level)
      let payload = try payload(message, &deflater)
      #expect(try InflatedMessage(payload).output == message)
      sizes.append(payload.count)
    }
    #expect(sizes[0] == sizes[1] && sizes[1] > message.count && sizes[2] < message.count / 2)
    #expect(sizes[3] < sizes[2] && sizes[4] == sizes[3])
  }

  /// A window of 8 bits still compresses: runs, and the codes of frequent bytes.
  @Test func theSmallestWindow() throws {
    var generator = SeededGenerator(seed: 6)
    var deflater = try MessageDeflater(windowBits: 8, takesOver: true)
    let text = Messages.make(.text, 20_000, &generator)
    #expect(try payload(text, &deflater).count < text.count * 7 / 8)
    #expect(try payload([UInt8](repeating: 0, count: 20_000), &deflater).count < 200)
  }
}
