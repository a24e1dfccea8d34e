import LarkspurBytes

/// Conversion of field values to text. The parser itself only reports their positions.
public enum FieldValue {
  /// Returns the text of a field value.
  ///
  /// A fold and the white space around it become one space (RFC 9112 5.2). A value that is not valid UTF-8 is read as
  /// Latin-1, the historical meaning of obs-text (RFC 9110 5.5).
  ///
  /// - Parameters:
  ///   - value: The value's range in `bytes`, from a `FieldTable`.
  ///   - bytes: The bytes of the head or of the trailer section.
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

  /// Returns the text of a value without a fold, or `nil` if the value has a fold or is not valid UTF-8.
  ///
  /// Performance: nearly every value is UTF-8 on one line, and is copied only once.
  private static func unfoldedText(_ value: Range<Int>, in bytes: Span<UInt8>) -> String? {
    for index in value where bytes[index] == ASCII.cr || bytes[index] == ASCII.lf { return nil }
    guard let text = try? UTF8Span(validating: bytes.extracting(value)) else { return nil }
    return String(copying: text)
  }
}
