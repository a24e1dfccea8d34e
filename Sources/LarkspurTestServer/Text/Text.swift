import LarkspurBytes

// Functions for text. Foundation has them, but would add its weight to every program under test.

/// Compares field names, tokens and the like, without regard to the case of ASCII letters.
func isSameName(_ one: some StringProtocol, _ other: some StringProtocol) -> Bool {
  one.utf8.elementsEqual(other.utf8) { $0.asciiLowercased == $1.asciiLowercased }
}

/// Returns the text without the blanks and tabs around it.
func trimmed(_ text: some StringProtocol) -> String {
  let isBlank = { (character: Character) in character == " " || character == "\t" }
  guard let first = text.firstIndex(where: { !isBlank($0) }), let last = text.lastIndex(where: { !isBlank($0) }) else {
    return ""
  }
  return String(text[first...last])
}

/// Decodes bytes as UTF-8 if they are valid, otherwise as ISO 8859-1, in which every byte is a character.
func text(of bytes: some Collection<UInt8>) -> String {
  String(validating: bytes, as: UTF8.self) ?? latin1Text(of: bytes)
}

func latin1Text(of bytes: some Collection<UInt8>) -> String {
  var text = String.UnicodeScalarView()
  text.append(contentsOf: bytes.lazy.map { Unicode.Scalar($0) })
  return String(text)
}

func hexadecimal(_ value: some FixedWidthInteger & UnsignedInteger) -> String {
  let digits = String(value, radix: 16)
  return String(repeating: "0", count: value.bitWidth / 4 - digits.count) + digits
}

/// Decodes percent-encoded text (RFC 3986, section 2.1). A percent sign without two hexadecimal digits stays.
func percentDecoded(_ source: some StringProtocol, plusIsSpace: Bool = false) -> String {
  let source = Array(source.utf8)
  var bytes: [UInt8] = []
  var index = 0
  while index < source.count {
    let byte = source[index]
    if byte == UInt8(ascii: "%"), index + 2 < source.count, let high = hexDigit(source[index + 1]),
      let low = hexDigit(source[index + 2])
    {
      bytes.append(high << 4 | low)
      index += 3
    } else {
      bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
      index += 1
    }
  }
  return text(of: bytes)
}

func hexDigit(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}

/// Decodes `name=value` pairs, as in a query or a form (application/x-www-form-urlencoded).
func decodedPairs(_ source: some StringProtocol) -> [TestServer.Field] {
  source.split(separator: "&").map { pair in
    let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    return TestServer.Field(
      percentDecoded(parts[0], plusIsSpace: true), parts.count > 1 ? percentDecoded(parts[1], plusIsSpace: true) : "")
  }
}
