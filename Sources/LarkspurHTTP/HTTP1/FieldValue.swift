import LarkspurBytes

/// A field's value as text, for those who ask: the parser itself only says where it is.
public enum FieldValue {
  /// Reads `value`, a range of a `FieldTable` that describes `bytes`.
  ///
  /// A fold and the white space around it read as one space (RFC 9112 5.2). Bytes that are not UTF-8 are read
  /// as Latin-1, which is what obs-text has meant in the past (RFC 9110 5.5).
  public static func text(_ value: Range<Int>, in bytes: Span<UInt8>) -> String {
    if let text = unfoldedText(value, in: bytes) { return text }
    var unfolded: [UInt8] = []
    unfolded.reserveCapacity(value.count)
    var isAfterFold = false
    for index in value {
      let byte = bytes[index]
      if byte == ASCII.cr || byte == ASCII.lf {
        while let last = unfolded.last, ASCII.isWhitespace(last) { unfolded.removeLast() }
        isAfterFold = true
      } else if !isAfterFold || !ASCII.isWhitespace(byte) {
        if isAfterFold { unfolded.append(ASCII.space) }
        isAfterFold = false
        unfolded.append(byte)
      }
    }
    return String(validating: unfolded, as: UTF8.self) ?? String(decoding: unfolded.map(UInt16.init), as: UTF16.self)
  }

  /// Nearly every value is UTF-8 on one line, and is copied once.
  private static func unfoldedText(_ value: Range<Int>, in bytes: Span<UInt8>) -> String? {
    for index in value where bytes[index] == ASCII.cr || bytes[index] == ASCII.lf { return nil }
    guard let text = try? UTF8Span(validating: bytes.extracting(value)) else { return nil }
    return String(copying: text)
  }
}
