/// The checksum of gzip, PNG and Ethernet (CRC-32), of a stream of bytes.
package struct CRC32: Hashable, Sendable {
  /// The checksum of all bytes so far.
  package private(set) var value: UInt32 = 0

  package init() {}

  package mutating func update(_ bytes: Span<UInt8>) {
    // Safe: crc32_z reads the span, which is lent for the call. A null pointer would make zlib start again, so an empty
    // span is skipped.
    value = unsafe bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return value }
      return unsafe UInt32(truncatingIfNeeded: crc32_z(UInt(value), base, bytes.count))
    }
  }
}
