import LarkspurBytes

/// One message of a program or of the transfer service, as bytes:
///
///     4 bytes    the size of the content in bytes, little-endian
///     ...        the content
package struct TransferFrame: Hashable, Sendable {
  /// Maximum size of the content in bytes. A peer that claims more would fill the memory.
  static let bytesMax = 2 << 20
  static let headCount = 4

  var content: [UInt8]

  /// Returns the bytes of the frame.
  ///
  /// - Throws: `tooLarge`.
  package func encoded() throws(TransferValueError) -> [UInt8] {
    guard content.count <= Self.bytesMax else { throw .tooLarge(content.count, max: Self.bytesMax) }
    var writer = RecordWriter()
    writer.bytes.reserveCapacity(Self.headCount + content.count)
    writer.number(UInt32(content.count))
    writer.bytes += content
    return writer.bytes
  }
}

/// Splits a peer's bytes into frames. Memory grows only with the bytes that have arrived, and holds at most one frame
/// and one piece.
package struct TransferFrameParser: Sendable {
  private var bytes: [UInt8] = []
  /// The position of the first byte that belongs to no frame yet.
  private var start = 0

  package init() {}

  package mutating func append(_ piece: [UInt8]) {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes += piece
  }

  /// Whether the bytes so far end with a whole frame.
  package var isBetweenFrames: Bool { start == bytes.count }

  /// Returns the next frame, or `nil` if more bytes are needed.
  ///
  /// - Throws: `tooLarge`, after which the bytes cannot be split any more.
  package mutating func next() throws(TransferValueError) -> TransferFrame? {
    var reader = RecordReader(bytes: bytes[start...])
    guard let size = reader.number(UInt32.self) else { return nil }
    let count = Int(size)
    guard count <= TransferFrame.bytesMax else { throw .tooLarge(count, max: TransferFrame.bytesMax) }
    let first = start + TransferFrame.headCount
    guard bytes.count - first >= count else { return nil }
    start = first + count
    return TransferFrame(content: Array(bytes[first..<start]))
  }
}
