extension String {
  /// Whether the strings are equal when the case of ASCII letters is ignored, as names of fields are compared (RFC 9110
  /// 5.1).
  public func equalsIgnoringCase(_ other: String) -> Bool {
    guard utf8.count == other.utf8.count else { return false }
    let (bytes, others) = (utf8Span.span, other.utf8Span.span)
    for index in bytes.indices where bytes[index] != others[index] {
      guard bytes[index].asciiLowercased == others[index].asciiLowercased else { return false }
    }
    return true
  }

  /// The string with ASCII letters in lower case, and all other characters unchanged.
  public var asciiLowercased: String { String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self) }
}

extension UInt8 {
  /// The byte in lower case if it is an ASCII letter, and else the byte itself.
  @inlinable public var asciiLowercased: UInt8 { self &- UInt8(ascii: "A") < 26 ? self | 0x20 : self }
}
