/// Base64 with padding (RFC 4648, section 4). Modules below the products cannot use Foundation's.
public enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")

  public static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var index = 0
    while index < bytes.count {
      let count = min(3, bytes.count - index)
      var bits = Int(bytes[index]) << 16
      if count > 1 { bits |= Int(bytes[index + 1]) << 8 }
      if count > 2 { bits |= Int(bytes[index + 2]) }
      text.append(alphabet[bits >> 18 & 63])
      text.append(alphabet[bits >> 12 & 63])
      text.append(count > 1 ? alphabet[bits >> 6 & 63] : padding)
      text.append(count > 2 ? alphabet[bits & 63] : padding)
      index += 3
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes base64 in its canonical form: with padding, without white space, and with unused bits of zero, so that
  /// each value has one text.
  ///
  /// - Returns: The bytes, or `nil` if the text is not canonical base64.
  public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard let bytes = decodeForgiving(text), encode(bytes).utf8.elementsEqual(text) else { return nil }
    return bytes
  }

  /// Decodes base64 as leniently as browsers do ("forgiving-base64 decode" of the WHATWG Infra Standard): white space
  /// is skipped, padding may be missing, and left-over bits may be set.
  ///
  /// - Returns: The bytes, or `nil` if the text is not base64.
  public static func decodeForgiving(_ text: some Sequence<UInt8>) -> [UInt8]? {
    var digits = text.filter { ![0x20, 0x09, 0x0a, 0x0c, 0x0d].contains($0) }
    if digits.count % 4 == 0 {
      for _ in 0..<2 where digits.last == padding { digits.removeLast() }
    }
    // A single digit holds no byte.
    guard digits.count % 4 != 1 else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(digits.count / 4 * 3 + 2)
    var bits: UInt32 = 0
    var bitCount = 0
    for digit in digits {
      guard let value = value(of: digit) else { return nil }
      bits = bits << 6 | value
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        result.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
      }
    }
    return result
  }

  private static func value(of digit: UInt8) -> UInt32? {
    switch digit {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
