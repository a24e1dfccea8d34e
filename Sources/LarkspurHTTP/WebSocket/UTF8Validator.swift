import LarkspurBytes

/// Checks that bytes are UTF-8 (RFC 3629), in pieces of any size. A byte that cannot continue valid UTF-8 fails at
/// once, not at the end of its character. After a failure all further bytes fail.
package struct UTF8Validator: Hashable, Sendable {
  /// Number of missing continuation bytes of the current character.
  private var missing = 0
  // The range of the next continuation byte. The second byte of some characters has a narrower one.
  private var lowest: UInt8 = 0x80
  private var highest: UInt8 = 0xbf
  private var hasFailed = false

  package init() {}

  /// Whether the bytes so far are whole characters.
  package var isComplete: Bool { !hasFailed && missing == 0 }

  /// Checks the next bytes.
  ///
  /// - Returns: Whether all bytes so far are the beginning of valid UTF-8.
  package mutating func accept(_ bytes: Span<UInt8>) -> Bool {
    guard !hasFailed else { return false }
    var index = 0
    while index < bytes.count {
      if missing == 0, bytes[index] < 0x80 {
        index = Scan.endOfASCII(in: bytes, from: index, to: bytes.count)
        continue
      }
      guard accept(bytes[index]) else {
        hasFailed = true
        return false
      }
      index += 1
    }
    return true
  }

  /// Reads a byte that is not ASCII, or that should continue a character (RFC 3629 4).
  @inline(__always)
  private mutating func accept(_ byte: UInt8) -> Bool {
    if missing > 0 {
      guard byte >= lowest, byte <= highest else { return false }
      missing -= 1
      (lowest, highest) = (0x80, 0xbf)
      return true
    }
    switch byte {
    case 0xc2...0xdf: missing = 1
    case 0xe1...0xec, 0xee...0xef: missing = 2
    case 0xe0:
      // Smaller ones are overlong.
      missing = 2
      lowest = 0xa0
    case 0xed:
      // Larger ones are surrogates.
      missing = 2
      highest = 0x9f
    case 0xf1...0xf3: missing = 3
    case 0xf0:
      // Smaller ones are overlong.
      missing = 3
      lowest = 0x90
    case 0xf4:
      // Larger ones exceed U+10FFFF.
      missing = 3
      highest = 0x8f
    default: return false
    }
    return true
  }
}
