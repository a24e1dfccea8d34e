/// A 64-bit checksum that detects files that were written only in part. It does not protect against an attacker.
public enum Checksum {
  /// Returns the checksum of the bytes, which it processes eight at a time. Each step maps different sums to different
  /// sums, so a change within one word always changes the result.
  public static func of(_ bytes: Span<UInt8>) -> UInt64 {
    unsafe bytes.withUnsafeBytes { raw in
      var sum = 0xcbf2_9ce4_8422_2325 ^ UInt64(truncatingIfNeeded: raw.count)
      var offset = 0
      while raw.count - offset >= 8 {
        // Safe: the eight bytes from `offset` on are inside the span.
        let word = unsafe UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        sum = added(word, to: sum)
        offset += 8
      }
      var last: UInt64 = 0
      // Safe: `offset` is less than the count.
      while offset < raw.count {
        last = unsafe last << 8 | UInt64(raw[offset])
        offset += 1
      }
      return added(last, to: sum)
    }
  }

  @inline(__always)
  private static func added(_ word: UInt64, to sum: UInt64) -> UInt64 {
    let mixed = (sum ^ word) &* 0x9e37_79b9_7f4a_7c15
    return mixed ^ mixed >> 32
  }
}
