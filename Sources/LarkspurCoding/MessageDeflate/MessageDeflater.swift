/// Compresses the messages of one direction of a WebSocket connection (RFC 7692, section 7.2.1).
///
/// Memory: 0 bytes before the first message. From then on 128 KiB for blocks, four times the window (2^`windowBits`
/// bytes), and 6 KiB: 136 KiB for the smallest window and 262 KiB for the greatest (counted with zlib 1.2.13). The
/// memory is kept between messages even if no context is taken over, because a new stream costs as much time as thirty
/// short messages (50 µs and 1.6 µs, measured). Call `trim()` when the connection is idle.
///
/// zlib has no raw streams with a window of 256 bytes (8 bits): zlib.h says that `deflateInit2` rejects it, and the
/// next greater window is more than the peer has agreed to. For 8 bits the compressor therefore uses zlib's strategy
/// `Z_RLE`, which refers back by one byte only. Runs of one byte and frequent bytes still shrink.
///
/// After an error the value must not be used any more: the peer's window is not known.
///
/// `@unchecked Sendable`: a value has one owner, on any thread, and zlib's memory belongs to it alone.
package struct MessageDeflater: ~Copyable, @unchecked Sendable {
  private let windowBits: Int
  private let takesOver: Bool
  private let level: Int

  /// The stream, or `nil` as long as no message needs one.
  private var deflater: Deflater?

  /// Creates a compressor.
  ///
  /// - Parameters:
  ///   - windowBits: The window: `client_max_window_bits` in a client, 15 if it was not agreed.
  ///   - takesOver: Whether messages refer back to messages before them: `false` if `client_no_context_takeover` was
  ///     agreed (in a client).
  ///   - level: The level, from 0 (stored) to 9 (smallest).
  /// - Throws: `internalInconsistency` if `windowBits` is not among ``MessageDeflate/windowBits``.
  package init(windowBits: Int, takesOver: Bool, level: Int = 6) throws(CodingError) {
    guard MessageDeflate.windowBits ~= windowBits else { throw .internalInconsistency(zlib: 0) }
    self.windowBits = windowBits
    self.takesOver = takesOver
    self.level = min(max(level, 0), 9)
  }

  /// Compresses a whole message, and appends the payload of its frames, which may be cut anywhere into fragments.
  package mutating func deflate(_ message: Span<UInt8>, into output: inout [UInt8]) throws(CodingError) {
    guard !message.isEmpty else {
      // Section 7.2.3.6: the header of an empty stored block. zlib has nothing to flush for an empty message.
      output.append(0)
      return
    }
    var deflater = try takeDeflater()
    let start = output.count
    try deflater.run(message, flush: .sync, into: &output)
    // Section 7.2.1: the tail of the empty stored block is not sent.
    let tail = MessageDeflate.tail
    let end = output.count - tail.count
    guard end > start, tail.indices.allSatisfy({ output[end + $0] == tail[$0] }) else {
      throw .internalInconsistency(zlib: 0)
    }
    output.removeLast(tail.count)
    if !takesOver { try deflater.reset() }
    self.deflater = consume deflater
  }

  /// Frees the memory that the next message does not depend on: all memory without takeover, 0 bytes otherwise.
  package mutating func trim() { if !takesOver { deflater = nil } }

  private mutating func takeDeflater() throws(CodingError) -> Deflater {
    if let deflater = deflater.take() { return deflater }
    return windowBits == 8
      ? try Deflater(rawWindowBits: 9, level: level, .runs)
      : try Deflater(rawWindowBits: windowBits, level: level, .window)
  }
}
