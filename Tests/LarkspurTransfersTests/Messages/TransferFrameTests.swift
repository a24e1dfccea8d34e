import Testing

@testable import LarkspurTransfers

@Suite struct TransferFrameTests {
  private static let frames = [
    TransferFrame(content: []), TransferFrame(content: [7]),
    TransferFrame(content: [UInt8](repeating: 9, count: 1000)),
  ]

  /// Returns the frames of bytes that arrive in pieces of a size.
  private static func parsed(_ bytes: [UInt8], by size: Int) throws -> [TransferFrame] {
    var parser = TransferFrameParser()
    var frames: [TransferFrame] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      parser.append(Array(bytes[start..<min(start + size, bytes.count)]))
      while let frame = try parser.next() { frames.append(frame) }
    }
    #expect(parser.isBetweenFrames)
    return frames
  }

  @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 100, 5000]) func pieces(size: Int) throws {
    let bytes = try Self.frames.flatMap { try $0.encoded() }
    #expect(try Self.parsed(bytes, by: size) == Self.frames)
  }

  @Test func anIncompleteFrameWaits() throws {
    let bytes = try Self.frames[2].encoded()
    for count in 0..<bytes.count {
      var parser = TransferFrameParser()
      parser.append(Array(bytes.prefix(count)))
      #expect(try parser.next() == nil)
      #expect(parser.isBetweenFrames == (count == 0))
    }
  }

  @Test func theLargestFrame() throws {
    var frame = TransferFrame(content: [UInt8](repeating: 1, count: TransferFrame.bytesMax))
    #expect(try Self.parsed(frame.encoded(), by: 1 << 16) == [frame])
    frame.content.append(1)
    #expect(throws: TransferValueError.tooLarge(TransferFrame.bytesMax + 1, max: TransferFrame.bytesMax)) {
      try frame.encoded()
    }
  }

  /// A claim alone is refused, before any of the bytes have come.
  @Test(arguments: [UInt32(TransferFrame.bytesMax) + 1, .max]) func claimsThatAreTooLarge(size: UInt32) {
    var parser = TransferFrameParser()
    parser.append((0..<4).map { UInt8(truncatingIfNeeded: size >> UInt32(8 * $0)) })
    #expect(throws: TransferValueError.tooLarge(Int(size), max: TransferFrame.bytesMax)) { try parser.next() }
  }
}
