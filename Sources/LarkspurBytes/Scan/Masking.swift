@_implementationOnly import CLarkspurScan

/// The masking of WebSocket payloads (RFC 6455 5.3), 16 bytes at a time. Applying a mask twice restores the bytes.
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
    // Safe: the range is inside the array, and C writes `range.count` bytes.
    unsafe bytes.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return }
      unsafe larkspur_mask(base + range.lowerBound, range.count, key.bigEndian)
    }
  }
}
