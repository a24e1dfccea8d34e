/// ASCII constants and classes of ASCII bytes.
public enum ASCII {
  static let tab = UInt8(ascii: "\t")
  static let lf = UInt8(ascii: "\n")
  static let cr = UInt8(ascii: "\r")
  static let space = UInt8(ascii: " ")
  static let colon = UInt8(ascii: ":")
  static let comma = UInt8(ascii: ",")
  static let equals = UInt8(ascii: "=")
  static let quote = UInt8(ascii: "\"")
  static let backslash = UInt8(ascii: "\\")
  static let slash = UInt8(ascii: "/")

  static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

  /// Whether the byte is white space in a field value: SP, HTAB, or the CR or LF of a fold. The parser lets no other CR
  /// or LF through.
  static func isWhitespace(_ byte: UInt8) -> Bool { byte == space || byte == tab || byte == cr || byte == lf }

  /// Whether the byte may stand in a URI's scheme, apart from the rule that a letter comes first (RFC 3986 3.1).
  public static func isSchemeCharacter(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
  }

  public static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    isDigit(byte) || (byte | 0x20) &- UInt8(ascii: "a") < 26
  }

  static func hexDigit(_ byte: UInt8) -> UInt64? {
    if isDigit(byte) { return UInt64(byte - UInt8(ascii: "0")) }
    let letter = (byte | 0x20) &- UInt8(ascii: "a")
    return letter < 6 ? UInt64(letter) + 10 : nil
  }
}
