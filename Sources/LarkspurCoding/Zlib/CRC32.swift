@_implementationOnly import CLarkspurZlib

/// The checksum that gzip, PNG and Ethernet use (CRC-32), of a stream of bytes.
package struct CRC32: Hashable, Sendable {
  /// Of all the bytes so far.
  package private(set) var value: UInt32 = 0

  package init() {}

  package mutating func update(_ bytes: Span<UInt8>) {
    // Safe: crc32_z reads the span, which is lent for the call. (A nil pointer would mean: start again.)
    value = unsafe bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return value }
      return unsafe UInt32(truncatingIfNeeded: crc32_z(uLong(value), base, bytes.count))
    }
  }
}
