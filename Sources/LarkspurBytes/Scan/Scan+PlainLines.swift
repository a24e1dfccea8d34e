/// Fast parsing of whole lines of a response head that are plain: complete, not folded, and without errors.
///
/// For any other line, also for every error, these functions find nothing. The caller's state machine then parses the
/// line byte by byte and reports the error. Tests compare the two.
extension Scan {
  /// A status line: `HTTP/1.x SP 3DIGIT SP reason CRLF`.
  public struct StatusLine {
    public var minorVersion: Int
    public var status: Int
    /// The index of the end of the reason phrase. The phrase starts 13 bytes behind the start of the line.
    public var reasonEnd: Int
  }

  public static func plainStatusLine(in bytes: Span<UInt8>, from start: Int) -> StatusLine? {
    unsafe bytes.withUnsafeBytes { raw in
      guard start >= 0, raw.count - start >= 16 else { return nil }
      // Safe: the sixteen bytes from `start` on are inside the span.
      let word = unsafe UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: start, as: UInt64.self))
      // "HTTP/1." and a digit, with the first character in the least significant byte.
      let minor = UInt8(truncatingIfNeeded: word >> 56) &- UInt8(ascii: "0")
      guard word << 8 == 0x2e31_2f50_5454_4800, minor < 10 else { return nil }
      let digits = unsafe (raw[start + 9] &- 0x30, raw[start + 10] &- 0x30, raw[start + 11] &- 0x30)
      guard unsafe raw[start + 8] == 0x20, unsafe raw[start + 12] == 0x20, digits.0 &- 1 < 9, digits.1 < 10,
        digits.2 < 10
      else { return nil }
      guard let bytes = raw.baseAddress,
        let end = unsafe endOfPlainLine(bytes + start + 13, from: bytes, bytes + raw.count)
      else { return nil }
      return StatusLine(
        minorVersion: minor == 0 ? 0 : 1, status: Int(digits.0) * 100 + Int(digits.1) * 10 + Int(digits.2),
        reasonEnd: unsafe end - bytes)
    }
  }

  /// Adds the plain field lines from `start` on to the table. A plain line is `name: value CRLF`, followed by a
  /// byte that does not begin a fold.
  ///
  /// - Parameters:
  ///   - base: The index of the section's first byte, from which positions count.
  ///   - end: The index behind which no line may end.
  ///   - lineBytesMax: The size beyond which a line is not plain.
  ///   - fieldsMax: The number of fields in the table at which the function stops.
  /// - Returns: The index of the first line that was not added.
  public static func plainFieldLines(
    in bytes: Span<UInt8>, from start: Int, base: Int, end: Int, lineBytesMax: Int, fieldsMax: Int,
    into table: inout FieldTable
  ) -> Int {
    var start = start
    unsafe bytes.withUnsafeBytes { raw in
      guard let bytes = raw.baseAddress, start >= base, base >= 0, raw.count >= 32 else { return }
      // Safe, for all accesses below: no pointer exceeds `limit`, which is at most the end of the lent bytes, and
      // nothing is read at `limit`. Differences of positions are smaller than the span, so wrapping arithmetic
      // suffices.
      let limit = unsafe bytes + min(end, raw.count)
      let origin = unsafe bytes + base
      var line = unsafe bytes + start
      var isFull = true
      while isFull {
        unsafe table.withRoom(upTo: fieldsMax) { room in
          guard var field = room.baseAddress else { return 0 }
          // Safe: see `limit`. Performance: a captured variable stays in memory.
          var at = unsafe line
          defer { unsafe line = at }
          var left = room.count
          while left > 0 {
            guard let colon = unsafe colonOfPlainName(at, limit) else { break }
            var value = unsafe colon + 1
            if unsafe value < limit, unsafe value[0] == 0x20 { unsafe value += 1 }
            while unsafe value < limit, unsafe isBlank(value[0]) { unsafe value += 1 }
            guard let cr = unsafe endOfShortLine(at, limit) ?? endOfPlainLine(value, from: bytes, limit),
              unsafe cr - at <= lineBytesMax,
              unsafe cr + 2 < limit, unsafe !isBlank(cr[2])
            else { break }
            var valueEnd = unsafe cr
            while unsafe valueEnd > value, unsafe isBlank(valueEnd[-1]) { unsafe valueEnd -= 1 }
            unsafe field.initialize(
              to: FieldPosition(
                nameStart: at - origin, nameEnd: colon - origin, valueStart: value - origin,
                valueEnd: valueEnd - origin))
            unsafe field += 1
            left &-= 1
            unsafe at = cr + 2
          }
          isFull = left == 0 && room.count > 0
          return room.count - left
        }
      }
      start = unsafe line - bytes
    }
    return start
  }

  /// Returns the colon behind a name, or `nil` if the line does not begin with a name and a colon.
  @unsafe @inline(__always)
  private static func colonOfPlainName(
    _ line: UnsafeRawPointer, _ limit: UnsafeRawPointer
  ) -> UnsafeRawPointer? {
    var at = unsafe line
    while unsafe at + 16 <= limit {
      let stops = unsafe larkspur_name_stops16(at)
      unsafe at += stops == 0 ? 16 : stops.trailingZeroBitCount
      guard stops != 0 else { continue }
      if unsafe at[0] == 0x3a { return unsafe at > line ? at : nil }
      guard unsafe isToken(at[0]) else { return nil }
      unsafe at += 1
    }
    return nil
  }

  /// Returns the CR of a line of at most 64 bytes without other control characters, or `nil`. The CR is behind the
  /// colon, because a name contains no control character. Performance: one or two comparisons of 32 bytes suffice for
  /// most lines.
  @unsafe @inline(__always)
  private static func endOfShortLine(_ line: UnsafeRawPointer, _ limit: UnsafeRawPointer) -> UnsafeRawPointer? {
    guard unsafe line + 64 <= limit else { return nil }
    var at = unsafe line
    var stops = unsafe larkspur_value_stops32(at)
    if stops == 0 {
      unsafe at += 32
      stops = unsafe larkspur_value_stops32(at)
    }
    unsafe at += stops.trailingZeroBitCount
    return unsafe stops != 0 && isLineEnd(at, limit) ? at : nil
  }

  /// Returns the CR of the first CRLF from `start` on, or `nil` if a byte that a field value cannot contain
  /// precedes it.
  @unsafe @inline(__always)
  private static func endOfPlainLine(
    _ start: UnsafeRawPointer, from first: UnsafeRawPointer, _ limit: UnsafeRawPointer
  ) -> UnsafeRawPointer? {
    var at = unsafe start
    while unsafe at + 32 <= limit {
      let stops = unsafe larkspur_value_stops32(at)
      unsafe at += stops == 0 ? 32 : stops.trailingZeroBitCount
      guard stops != 0 else { continue }
      guard unsafe at[0] == 0x09 else { return unsafe isLineEnd(at, limit) ? at : nil }
      unsafe at += 1
    }
    // Near the end, load the last 32 bytes and shift out those before `at`.
    guard unsafe at < limit, unsafe limit - first >= 32 else { return nil }
    let last = unsafe limit - 32
    let stops = unsafe larkspur_value_stops32(last) >> UInt32(truncatingIfNeeded: at - last)
    guard stops != 0 else { return nil }
    unsafe at += stops.trailingZeroBitCount
    return unsafe isLineEnd(at, limit) ? at : nil
  }

  @unsafe @inline(__always)
  private static func isLineEnd(_ at: UnsafeRawPointer, _ limit: UnsafeRawPointer) -> Bool {
    unsafe at + 1 < limit && UInt16(littleEndian: at.loadUnaligned(as: UInt16.self)) == 0x0a0d
  }

  @inline(__always)
  private static func isBlank(_ byte: UInt8) -> Bool { byte <= 0x20 && (byte == 0x20 || byte == 0x09) }
}

extension UnsafeRawPointer {
  @unsafe @inline(__always)
  fileprivate subscript(_ index: Int) -> UInt8 { unsafe load(fromByteOffset: index, as: UInt8.self) }
}
