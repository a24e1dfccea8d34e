import LarkspurBytes

/// Parses structured fields (RFC 9651, section 4.2), strictly: a field with any error has no value, as the RFC demands.
///
/// Parameters are checked and dropped: no field that Larkspur reads gives them a meaning.
package struct StructuredFieldParser {
  private let bytes: [UInt8]
  private var index = 0

  private init(_ lines: [String]) {
    // Section 4.2: the lines of one field are joined with a comma and a space.
    bytes = Array(lines.joined(separator: ", ").utf8)
  }

  /// Returns the value of an Item, or `nil` if there is no line or the field breaks the grammar. A field of several
  /// lines is no Item.
  ///
  /// - Parameter lines: The values of all field lines of the name, in order.
  package static func item(_ lines: [String]) -> StructuredItem? {
    guard !lines.isEmpty else { return nil }
    var parser = StructuredFieldParser(lines)
    parser.skipSpaces()
    guard let item = parser.item() else { return nil }
    parser.skipSpaces()
    return parser.isAtEnd ? item : nil
  }

  /// Returns the members of a Dictionary, or `nil` if there is no line or the field breaks the grammar. Of several
  /// members with one key, the last one counts (section 4.2.2).
  ///
  /// - Parameter lines: The values of all field lines of the name, in order.
  package static func dictionary(_ lines: [String]) -> [String: StructuredItem]? {
    guard !lines.isEmpty else { return nil }
    var parser = StructuredFieldParser(lines)
    parser.skipSpaces()
    return parser.dictionary()
  }

  // MARK: - Structures

  private mutating func dictionary() -> [String: StructuredItem]? {
    var members: [String: StructuredItem] = [:]
    while !isAtEnd {
      guard let key = self.key() else { return nil }
      if skip(ASCII.equals) {
        guard let value = peek == Self.openParenthesis ? innerList() : self.item() else { return nil }
        members[key] = value
      } else {
        guard parameters() else { return nil }
        members[key] = .boolean(true)
      }
      skipWhitespace()
      if isAtEnd { return members }
      guard skip(ASCII.comma) else { return nil }
      skipWhitespace()
      // A comma at the end is an error.
      if isAtEnd { return nil }
    }
    return members
  }

  private mutating func item() -> StructuredItem? {
    guard let item = bareItem(), parameters() else { return nil }
    return item
  }

  private mutating func innerList() -> StructuredItem? {
    guard skip(Self.openParenthesis) else { return nil }
    var items: [StructuredItem] = []
    while true {
      skipSpaces()
      if skip(Self.closeParenthesis) { return parameters() ? .innerList(items) : nil }
      guard let item = self.item() else { return nil }
      items.append(item)
      guard peek == ASCII.space || peek == Self.closeParenthesis else { return nil }
    }
  }

  /// Skips the parameters.
  ///
  /// - Returns: `false` if they break the grammar (section 4.2.3.2).
  private mutating func parameters() -> Bool {
    while skip(UInt8(ascii: ";")) {
      skipSpaces()
      guard key() != nil else { return false }
      if skip(ASCII.equals), bareItem() == nil { return false }
    }
    return true
  }

  private mutating func key() -> String? {
    guard let first = peek, Self.isLowercase(first) || first == Self.star else { return nil }
    let start = index
    while let byte = peek, Self.isLowercase(byte) || ASCII.isDigit(byte) || Self.keyMarks.contains(byte) { index += 1 }
    return text(from: start)
  }

  // MARK: - Bare items

  private mutating func bareItem() -> StructuredItem? {
    guard let first = peek else { return nil }
    switch first {
    case Self.minus, UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
    case ASCII.quote: return string()
    case UInt8(ascii: ":"): return byteSequence()
    case UInt8(ascii: "?"): return boolean()
    case UInt8(ascii: "@"):
      index += 1
      guard case .integer(let seconds)? = number() else { return nil }
      return .date(seconds)
    case UInt8(ascii: "%"): return displayString()
    case Self.star: return token()
    default: return Self.isLetter(first) ? token() : nil
    }
  }

  /// Reads an Integer or a Decimal (section 4.2.4).
  private mutating func number() -> StructuredItem? {
    let isNegative = skip(Self.minus)
    let whole = digits()
    guard !whole.isEmpty else { return nil }
    guard skip(UInt8(ascii: ".")) else {
      guard whole.count <= 15, let value = Int(whole) else { return nil }
      return .integer(isNegative ? -value : value)
    }
    let fraction = digits()
    guard whole.count <= 12, 1...3 ~= fraction.count,
      let value = Int(whole + fraction + String(repeating: "0", count: 3 - fraction.count))
    else { return nil }
    return .decimal(thousandths: isNegative ? -value : value)
  }

  private mutating func digits() -> String {
    let start = index
    while let byte = peek, ASCII.isDigit(byte) { index += 1 }
    return text(from: start)
  }

  private mutating func string() -> StructuredItem? {
    guard skip(ASCII.quote) else { return nil }
    var content: [UInt8] = []
    while let byte = next() {
      switch byte {
      case ASCII.backslash:
        guard let escaped = next(), escaped == ASCII.quote || escaped == ASCII.backslash else { return nil }
        content.append(escaped)
      case ASCII.quote: return .string(String(decoding: content, as: UTF8.self))
      case 0x20...0x7e: content.append(byte)
      default: return nil
      }
    }
    return nil
  }

  /// Reads a Token (section 4.2.6). The caller has checked the first character.
  private mutating func token() -> StructuredItem? {
    let start = index
    index += 1
    while let byte = peek, byte == ASCII.colon || byte == ASCII.slash || isTokenCharacter(at: index) { index += 1 }
    return .token(text(from: start))
  }

  private func isTokenCharacter(at index: Int) -> Bool {
    Scan.endOfToken(in: bytes.span, from: index, to: index + 1) == index + 1
  }

  /// Reads a Byte Sequence (section 4.2.7), whose padding may be missing.
  private mutating func byteSequence() -> StructuredItem? {
    guard skip(ASCII.colon), let end = bytes[index...].firstIndex(of: ASCII.colon),
      !bytes[index..<end].contains(where: ASCII.isWhitespace), let decoded = Base64.decodeForgiving(bytes[index..<end])
    else { return nil }
    index = end + 1
    return .byteSequence(decoded)
  }

  private mutating func boolean() -> StructuredItem? {
    guard skip(UInt8(ascii: "?")) else { return nil }
    if skip(UInt8(ascii: "1")) { return .boolean(true) }
    return skip(UInt8(ascii: "0")) ? .boolean(false) : nil
  }

  /// Reads a Display String (section 4.2.10): percent-encoded UTF-8 with lower-case hexadecimal digits.
  private mutating func displayString() -> StructuredItem? {
    guard skip(UInt8(ascii: "%")), skip(ASCII.quote) else { return nil }
    var content: [UInt8] = []
    while let byte = next() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = hexDigit(), let low = hexDigit() else { return nil }
        content.append(high << 4 | low)
      case ASCII.quote: return String(validating: content, as: UTF8.self).map { .displayString($0) }
      case 0x20...0x7e: content.append(byte)
      default: return nil
      }
    }
    return nil
  }

  private mutating func hexDigit() -> UInt8? {
    guard let byte = next() else { return nil }
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): return byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): return byte - UInt8(ascii: "a") + 10
    default: return nil
    }
  }

  // MARK: - Bytes

  private static let openParenthesis = UInt8(ascii: "(")
  private static let closeParenthesis = UInt8(ascii: ")")
  private static let star = UInt8(ascii: "*")
  private static let minus = UInt8(ascii: "-")
  private static let keyMarks = Array("_-.*".utf8)

  private static func isLowercase(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "a") < 26 }
  private static func isLetter(_ byte: UInt8) -> Bool { isLowercase(byte | 0x20) }

  private var isAtEnd: Bool { index >= bytes.count }
  private var peek: UInt8? { isAtEnd ? nil : bytes[index] }

  private mutating func next() -> UInt8? {
    guard let byte = peek else { return nil }
    index += 1
    return byte
  }

  private mutating func skip(_ byte: UInt8) -> Bool {
    guard peek == byte else { return false }
    index += 1
    return true
  }

  private mutating func skipSpaces() {
    while peek == ASCII.space { index += 1 }
  }

  /// Skips the optional white space around the commas of a Dictionary.
  private mutating func skipWhitespace() {
    while peek == ASCII.space || peek == ASCII.tab { index += 1 }
  }

  private func text(from start: Int) -> String { String(decoding: bytes[start..<index], as: UTF8.self) }
}
