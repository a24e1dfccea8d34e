/// The masking of WebSocket payloads (RFC 6455 5.3), as vectors. Applying a mask twice restores the bytes.
/// A test compares the results with those of a plain loop.
package enum Masking {
  /// Combines bytes with a mask by exclusive or, in place.
  ///
  /// - Parameters:
  ///   - mask: The four bytes of the masking key. The first byte on the wire is the most significant one.
  ///   - offset: The position of the first byte in the payload, from which the key's byte follows.
  ///   - range: The bytes to mask. Only its part inside `bytes` is used.
  package static func apply(_ mask: UInt32, offset: Int = 0, to bytes: inout [UInt8], in range: Range<Int>) {
    let range = range.clamped(to: bytes.indices)
    guard !range.isEmpty else { return }
    // The key begins with the byte that belongs to the first masked byte.
    let bits = UInt32(truncatingIfNeeded: offset & 3) * 8
    let key = bits == 0 ? mask : mask << bits | mask >> (32 - bits)
    let words = UInt64(key.bigEndian) << 32 | UInt64(key.bigEndian)
    // Safe: the range is inside the array, and the loops write `range.count` bytes.
    unsafe bytes.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return }
      let start = unsafe UnsafeMutableRawPointer(base + range.lowerBound)
      // Performance: with unchecked arithmetic, the compiler makes vectors of this loop.
      for index in 0..<range.count >> 3 {
        let word = unsafe start + index &* 8
        unsafe word.storeBytes(of: word.loadUnaligned(as: UInt64.self) ^ words, as: UInt64.self)
      }
      // Safe: the last bytes of the range. The low byte of the words is the first one in memory.
      var rest = words.littleEndian
      for index in range.count & ~7..<range.count {
        let byte = unsafe start.load(fromByteOffset: index, as: UInt8.self) ^ UInt8(truncatingIfNeeded: rest)
        unsafe start.storeBytes(of: byte, toByteOffset: index, as: UInt8.self)
        rest >>= 8
      }
    }
  }
}
