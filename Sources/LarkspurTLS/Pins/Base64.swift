/// Base64 with padding (RFC 4648 4). Modules below the products cannot use Foundation's.
enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")

  static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var index = 0
    while index < bytes.count {
      let group = bytes[index..<min(index + 3, bytes.count)]
      let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
      for place in 0..<4 {
        text.append(place <= group.count ? alphabet[bits >> (18 - 6 * place) & 63] : padding)
      }
      index += 3
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes base64 in its canonical form.
  ///
  /// - Returns: The bytes, or `nil` if the text is not canonical base64.
  static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    let digits = Array(text)
    guard digits.count % 4 == 0 else { return nil }
    let paddingCount = digits.suffix(2).reversed().prefix { $0 == padding }.count
    var bytes: [UInt8] = []
    var bits = 0
    for (index, digit) in digits.dropLast(paddingCount).enumerated() {
      guard let value = alphabet.firstIndex(of: digit) else { return nil }
      bits = bits << 6 | value
      if index % 4 > 0 { bytes.append(UInt8(truncatingIfNeeded: bits >> (6 - 2 * (index % 4)))) }
    }
    // Unused bits must be zero. Otherwise one pin could be written in several ways.
    return encode(bytes).utf8.elementsEqual(digits) ? bytes : nil
  }
}
