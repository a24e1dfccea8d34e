/// A chunked body, decoded in the slow and obvious way from all of its bytes at once.
struct NaiveChunks {
  /// The decoded bytes: all of the body, or those before an error.
  var body: [UInt8] = []
  /// The trailers, or `nil` if the body is malformed or not complete.
  var trailers: [Transcript.Field]?
  /// The index behind the body and its trailers.
  var end = 0

  init(_ bytes: ArraySlice<UInt8>, trailersMayEndWithLF: Bool = false) {
    var rest = bytes
    while let lineEnd = NaiveFields.firstCRLF(in: rest) {
      guard let size = Self.size(ofLine: Array(rest[rest.startIndex..<lineEnd])) else { return }
      rest = rest[(lineEnd + 2)...]
      if size == 0 {
        guard let section = NaiveFields.section(of: rest, mayEndWithLF: trailersMayEndWithLF) else { return }
        trailers = NaiveFields.parse(section.lines)
        end = section.end
        return
      }
      body += rest.prefix(size)
      guard rest.count >= size, rest.dropFirst(size).starts(with: [0x0d, 0x0a]) else { return }
      rest = rest.dropFirst(size + 2)
    }
  }

  private static func size(ofLine line: [UInt8]) -> Int? {
    let digits = line.prefix { $0 != UInt8(ascii: ";") }
    guard 1...16 ~= digits.count, digits.allSatisfy({ "0123456789abcdefABCDEF".utf8.contains($0) }) else { return nil }
    guard digits.count == line.count || hasExtensions(line[digits.endIndex...]) else { return nil }
    return Int(String(decoding: digits, as: UTF8.self), radix: 16)
  }

  /// Whether the text is `*( BWS ";" BWS name [ BWS "=" BWS value ] )`, checked by recursive descent.
  private static func hasExtensions(_ text: ArraySlice<UInt8>) -> Bool {
    var text = text
    while !text.isEmpty {
      text = spaceless(text)
      guard text.popFirst() == UInt8(ascii: ";") else { return false }
      text = spaceless(text)
      guard let afterName = behindToken(text) else { return false }
      text = afterName
      let afterSpace = spaceless(text)
      if afterSpace.first == UInt8(ascii: "=") {
        let value = spaceless(afterSpace.dropFirst())
        guard let afterValue = value.first == UInt8(ascii: "\"") ? behindQuoted(value) : behindToken(value) else {
          return false
        }
        text = afterValue
      }
    }
    return true
  }

  private static func spaceless(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    text.drop { $0 == 0x20 || $0 == 0x09 }
  }

  private static func behindToken(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    let rest = text.drop(while: NaiveFields.isToken)
    return rest.count < text.count ? rest : nil
  }

  private static func behindQuoted(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var rest = text.dropFirst()
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return rest }
      guard NaiveFields.isValue([byte]) else { return nil }
      if byte == UInt8(ascii: "\\") {
        guard let escaped = rest.popFirst(), NaiveFields.isValue([escaped]) else { return nil }
      }
    }
    return nil
  }
}
