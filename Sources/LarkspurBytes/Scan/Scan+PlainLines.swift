@_implementationOnly import CLarkspurScan

/// Whole lines of a response head at once, when they are plain: complete, without a fold, without an error.
///
/// These are accelerators. They answer nil for everything else, also for every error, and the caller's state
/// machine then reads the line byte by byte and knows what is wrong with it. Tests hold the two against each other.
extension Scan {
  /// `HTTP/1.x SP 3DIGIT SP reason CRLF`.
  public struct StatusLine {
    public var minorVersion: Int
    public var status: Int
    /// Where the reason phrase ends: it starts at 13.
    public var reasonEnd: Int
  }

  public static func plainStatusLine(in bytes: Span<UInt8>, from start: Int) -> StatusLine? {
    unsafe bytes.withUnsafeBytes { raw in
      guard start >= 0, raw.count - start >= 16 else { return nil }
      // Safe: the sixteen bytes from `start` on are inside the span.
      let word = unsafe UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: start, as: UInt64.self))
      // "HTTP/1." and a digit, least significant byte first.
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

  /// Puts the plain field lines from `start` on (`name: value CRLF`, and a byte behind them that does not begin
  /// a fold) into the table, and returns where the first other line starts.
  ///
  /// - Parameters:
  ///   - base: The section's first byte, from which positions count.
  ///   - end: No line ends behind this index.
  ///   - lineBytesMax: Longer lines are not plain.
  ///   - fieldsMax: No more are put into the table.
  public static func plainFieldLines(
    in bytes: Span<UInt8>, from start: Int, base: Int, end: Int, lineBytesMax: Int, fieldsMax: Int,
    into table: inout FieldTable
  ) -> Int {
    var start = start
    unsafe bytes.withUnsafeBytes { raw in
      guard let bytes = raw.baseAddress, start >= base, base >= 0, raw.count >= 32 else { return }
      // Safe, from here on: no pointer goes beyond `limit`, the end of the lent bytes or before it, and nothing
      // is read at `limit`. Differences of positions stay below the span's size: wrapping arithmetic suffices.
      let limit = unsafe bytes + min(end, raw.count)
      let origin = unsafe bytes + base
      var line = unsafe bytes + start
      var isFull = true
      while isFull {
        unsafe table.withRoom(upTo: fieldsMax) { room in
          guard var field = room.baseAddress else { return 0 }
          var left = room.count
          while left > 0 {
            guard let colon = unsafe colonOfPlainName(line, limit) else { break }
            var value = unsafe colon + 1
            if unsafe value < limit, unsafe value[0] == 0x20 { unsafe value += 1 }
            while unsafe value < limit, unsafe isBlank(value[0]) { unsafe value += 1 }
            guard let cr = unsafe endOfShortLine(line, limit) ?? endOfPlainLine(value, from: bytes, limit),
              unsafe cr - line <= lineBytesMax,
              unsafe cr + 2 < limit, unsafe !isBlank(cr[2])
            else { break }
            var valueEnd = unsafe cr
            while unsafe valueEnd > value, unsafe isBlank(valueEnd[-1]) { unsafe valueEnd -= 1 }
            unsafe field.initialize(
              to: FieldPosition(
                nameStart: line - origin, nameEnd: colon - origin, valueStart: value - origin,
                valueEnd: valueEnd - origin))
            unsafe field += 1
            left &-= 1
            unsafe line = cr + 2
          }
          isFull = left == 0 && room.count > 0
          return room.count - left
        }
      }
      start = unsafe line - bytes
    }
    return start
  }

  /// The colon behind a name.
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

  /// The CR of a line of up to 64 bytes that has no other control character: most lines, in one look at half of that, or in two. It is
  /// behind the colon, for a name holds no control character.
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

  /// The CR of the first CRLF from `start` on, if nothing but field value bytes stands before it.
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
    // Near the end the last thirty-two bytes are loaded, and those before `at` shifted out.
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
