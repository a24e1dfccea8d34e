/// Searches for the end of tokens, field values and lines, 16 bytes at a time. A test compares the results with those
/// of a plain loop over `isToken`, `isFieldValueByte` and `isLineEnd`.
public enum Scan {
  /// Returns the index of the first byte in `start..<end` that is not a token character (RFC 9110 5.6.2), or `end`.
  public static func endOfToken(in bytes: Span<UInt8>, from start: Int, to end: Int) -> Int {
    var index = start
    let end = min(end, bytes.count)
    // Safe: every load of 16 bytes ends at or before `end`, which is inside the span.
    unsafe bytes.withUnsafeBytes { raw in
      guard let base = raw.baseAddress else { return }
      while index < end {
        guard index + 16 <= end else {
          if !isToken(unsafe raw[index]) { return }
          index += 1
          continue
        }
        let stops = unsafe larkspur_name_stops16(base + index)
        guard stops != 0 else {
          index += 16
          continue
        }
        index += stops.trailingZeroBitCount
        // The vector comparison covers only letters, digits and '-'. Look up the rarer token characters.
        if !isToken(unsafe raw[index]) { return }
        index += 1
      }
    }
    return index
  }

  /// Returns the index of the first byte in `start..<end` that may not stand in a field value or a reason phrase, or
  /// `end`. Control characters other than HTAB may not; obs-text may (RFC 9110 5.5).
  public static func endOfFieldValue(in bytes: Span<UInt8>, from start: Int, to end: Int) -> Int {
    var index = start
    let end = min(end, bytes.count)
    // Safe: every load of 16 bytes ends at or before `end`, which is inside the span.
    unsafe bytes.withUnsafeBytes { raw in
      guard let base = raw.baseAddress else { return }
      while index + 16 <= end {
        let stops = unsafe larkspur_value_stops16(base + index)
        guard stops != 0 else {
          index += 16
          continue
        }
        index += stops.trailingZeroBitCount
        if !isFieldValueByte(unsafe raw[index]) { return }
        index += 1
      }
      while index < end, isFieldValueByte(unsafe raw[index]) { index += 1 }
    }
    return index
  }

  /// Returns the index of the first byte in `start..<end` that is not ASCII, or `end`.
  package static func endOfASCII(in bytes: Span<UInt8>, from start: Int, to end: Int) -> Int {
    var index = max(start, 0)
    let end = min(end, bytes.count)
    // Safe: every load of 16 bytes ends at or before `end`, which is inside the span.
    unsafe bytes.withUnsafeBytes { raw in
      guard let base = raw.baseAddress else { return }
      while index + 16 <= end {
        let stops = unsafe larkspur_high_bits16(base + index)
        index += stops == 0 ? 16 : stops.trailingZeroBitCount
        if stops != 0 { return }
      }
      while index < end, unsafe raw[index] < 0x80 { index += 1 }
    }
    return index
  }

  /// Returns the index of the first LF or CR in `start..<end`, or `end`.
  public static func endOfLine(in bytes: Span<UInt8>, from start: Int, to end: Int) -> Int {
    var index = max(start, 0)
    let end = min(end, bytes.count)
    // Safe: every load of 16 bytes ends at or before `end`, which is inside the span.
    unsafe bytes.withUnsafeBytes { raw in
      guard let base = raw.baseAddress else { return }
      while index + 16 <= end {
        let stops = unsafe larkspur_line_stops16(base + index)
        if stops != 0 {
          index += stops.trailingZeroBitCount
          return
        }
        index += 16
      }
      // Safe: as above.
      while index < end, unsafe !isLineEnd(raw[index]) { index += 1 }
    }
    return index
  }

  /// Whether `byte` is LF or CR.
  @inlinable
  public static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0a || byte == 0x0d }

  /// Whether `byte` is a `tchar` (RFC 9110 5.6.2).
  public static func isToken(_ byte: UInt8) -> Bool {
    // One bit for each ASCII character, in two words.
    let word = byte < 64 ? tokenBits.low : tokenBits.high
    return byte < 128 && word & (1 &<< UInt64(byte & 63)) != 0
  }

  public static func isFieldValueByte(_ byte: UInt8) -> Bool {
    byte >= 0x20 ? byte != 0x7f : byte == 0x09
  }

  private static let tokenBits: (low: UInt64, high: UInt64) = (0x03ff_6cfa_0000_0000, 0x57ff_ffff_c7ff_fffe)
}
