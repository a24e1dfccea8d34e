import LarkspurBytes

/// Reads the file's name in `Content-Disposition` (RFC 6266), as leniently as browsers do: servers seldom write the
/// field by the grammar.
public enum ContentDisposition {
  /// Returns the file's name as the field names it. `filename*` (RFC 8187) takes precedence over its parts (RFC 2231),
  /// and these over `filename`.
  ///
  /// - Returns: The name, or `nil` if there is no readable name. The name may contain anything, a path for example:
  ///   only ``SuggestedFilename`` makes a name of it that is safe to use.
  public static func filename(of bytes: [UInt8]) -> String? {
    var plain: String?
    var extended: String?
    var parts: [Int: Part] = [:]
    for parameter in parameters(in: bytes[...]) {
      switch parameter.name {
      case "filename" where plain == nil: plain = words(parameter.value)
      case "filename*" where extended == nil: extended = parameter.isQuoted ? nil : extendedValue(parameter.value)
      default:
        if let part = Part(parameter), parts[part.number] == nil { parts[part.number] = part }
      }
    }
    return [extended, joined(parts), plain].compactMap { $0 }.first { !$0.isEmpty }
  }

  public static func filename(of text: String) -> String? { filename(of: Array(text.utf8)) }

  // MARK: - Parameters

  private struct Parameter {
    /// The name in lower case.
    var name: String
    var value: ArraySlice<UInt8>
    var isQuoted: Bool
  }

  /// Returns the parameters before the first malformed one: text after that may belong to something else.
  private static func parameters(in bytes: ArraySlice<UInt8>) -> [Parameter] {
    var result: [Parameter] = []
    for (index, element) in elements(of: bytes).enumerated() {
      let element = trim(element)
      guard let equals = element.firstIndex(of: ASCII.equals) else {
        // The first element is the type, which may be missing. Empty parameters are skipped.
        if index == 0 || element.isEmpty { continue }
        return result
      }
      let name = trim(element[..<equals])
      guard !name.isEmpty, !name.contains(ASCII.quote) else { return result }
      let (value, isQuoted) = unquoted(trim(element[(equals + 1)...]))
      result.append(
        Parameter(name: HostName.normal(String(decoding: name, as: UTF8.self)), value: value, isQuoted: isQuoted))
    }
    return result
  }

  /// Splits the field at semicolons that are neither quoted nor preceded by a backslash. RFC 6266 has no escapes
  /// outside quotes, but Foundation takes such a semicolon for a part of the value.
  private static func elements(of bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    var elements: [ArraySlice<UInt8>] = []
    var start = bytes.startIndex
    var isQuoted = false
    var isEscaped = false
    for (index, byte) in zip(bytes.indices, bytes) {
      if byte == UInt8(ascii: ";"), !isQuoted, !isEscaped {
        elements.append(bytes[start..<index])
        start = index + 1
      }
      if byte == ASCII.quote, !isQuoted || !isEscaped { isQuoted.toggle() }
      isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
    }
    return elements + [bytes[start...]]
  }

  private static func trim(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let rest = bytes.drop(while: ASCII.isWhitespace)
    guard let last = rest.lastIndex(where: { !ASCII.isWhitespace($0) }) else { return rest.prefix(0) }
    return rest[...last]
  }

  /// Returns the text of a quoted string. If the string does not end with a quote, only its first quote is removed, and
  /// escapes stay.
  private static func unquoted(_ bytes: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, isQuoted: Bool) {
    guard bytes.first == ASCII.quote else { return (bytes, false) }
    guard bytes.count > 1, bytes.last == ASCII.quote else { return (bytes.dropFirst(), true) }
    var result: [UInt8] = []
    var rest = bytes.dropFirst().dropLast()
    while let byte = rest.popFirst() { result.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte) }
    return (result[...], true)
  }

  // MARK: - Values

  /// Reads an extended value (RFC 8187): `utf-8'en'na%c3%afve`.
  private static func extendedValue(_ bytes: ArraySlice<UInt8>) -> String? {
    let parts = bytes.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, bytes.allSatisfy({ $0 < 0x80 }), let charset = Charset(parts[0]) else { return nil }
    return charset.text(PercentCoding.decoded(parts[2]))
  }

  /// A part of a value (RFC 2231, section 3): `filename*0`, or `filename*0*` if it is percent-encoded.
  private struct Part {
    /// Highest number of a part that is read, more than any name needs. The limit bounds the work for a hostile field.
    static let numberMax = 99

    var number: Int
    var isExtended: Bool
    var value: ArraySlice<UInt8>

    init?(_ parameter: Parameter) {
      var name = parameter.name.utf8[...]
      guard name.starts(with: "filename*".utf8) else { return nil }
      name = name.dropFirst("filename*".utf8.count)
      isExtended = name.last == UInt8(ascii: "*")
      if isExtended { name = name.dropLast() }
      guard 1...2 ~= name.count, name.allSatisfy(ASCII.isDigit), let number = Int(String(Substring(name))),
        number <= Self.numberMax
      else { return nil }
      self.number = number
      value = parameter.value
    }
  }

  /// Joins the parts from 0 up to the first missing number.
  private static func joined(_ parts: [Int: Part]) -> String? {
    var bytes: [UInt8] = []
    var charset: Charset?
    for number in 0...Part.numberMax {
      guard let part = parts[number] else { break }
      var value = part.value
      if number == 0, part.isExtended {
        let pieces = value.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3, let named = Charset(pieces[0]) else { return nil }
        charset = named
        value = pieces[2]
      }
      bytes += part.isExtended ? PercentCoding.decoded(value) : Array(value)
    }
    guard !bytes.isEmpty else { return nil }
    return charset.map { $0.text(bytes) } ?? FieldValue.text(0..<bytes.count, in: bytes.span)
  }

  /// Reads a `filename`. RFC 6266 takes its characters as they are, but servers write UTF-8, Latin-1, percent-encoded
  /// UTF-8, and the encoded words of mail (RFC 2047).
  ///
  /// - Returns: The text, or `nil` if a word cannot be decoded.
  private static func words(_ bytes: ArraySlice<UInt8>) -> String? {
    var result = ""
    var isAfterCoded = false
    var rest = bytes
    while let byte = rest.first {
      if ASCII.isWhitespace(byte) {
        // White space after an encoded word separates words and is not a part of the text (RFC 2047, section 6.2).
        if !isAfterCoded { result += " " }
        rest.removeFirst()
        continue
      }
      let word = rest.prefix { !ASCII.isWhitespace($0) }
      rest = rest[word.endIndex...]
      isAfterCoded = word.starts(with: "=?".utf8)
      guard let text = isAfterCoded ? codedWord(word) : plainWord(word) else { return nil }
      result += text
    }
    return result
  }

  private static func plainWord(_ word: ArraySlice<UInt8>) -> String? {
    let word = Array(word)
    // A word with bytes outside ASCII is not percent-encoded.
    guard word.allSatisfy({ $0 < 0x80 }) else { return FieldValue.text(0..<word.count, in: word.span) }
    return String(validating: PercentCoding.decoded(word), as: UTF8.self)
  }

  /// Reads an encoded word (RFC 2047): `=?charset?q?text?=`.
  private static func codedWord(_ word: ArraySlice<UInt8>) -> String? {
    let parts = word.split(separator: UInt8(ascii: "?"), omittingEmptySubsequences: false)
    guard parts.count == 5, parts[4].elementsEqual([ASCII.equals]), parts[2].count == 1, let charset = Charset(parts[1])
    else { return nil }
    switch parts[2].first {
    case UInt8(ascii: "b"), UInt8(ascii: "B"): return Base64.decodeForgiving(parts[3]).flatMap(charset.text)
    case UInt8(ascii: "q"), UInt8(ascii: "Q"):
      var bytes: [UInt8] = []
      var rest = parts[3]
      while let byte = rest.popFirst() {
        if byte == ASCII.equals {
          guard let value = PercentCoding.value(rest.prefix(2)) else { return nil }
          bytes.append(value)
          rest = rest.dropFirst(2)
        } else {
          bytes.append(byte == UInt8(ascii: "_") ? ASCII.space : byte)
        }
      }
      return charset.text(bytes)
    default: return nil
    }
  }

  /// The supported charsets. There are no tables for East Asian charsets and others.
  private enum Charset {
    case utf8
    case latin1
    case windows1252

    init?(_ name: ArraySlice<UInt8>) {
      switch HostName.normal(String(decoding: name, as: UTF8.self)) {
      case "utf-8", "utf8", "us-ascii": self = .utf8
      case "iso-8859-1", "iso8859-1", "iso88591", "latin1": self = .latin1
      case "windows-1252", "cp1252": self = .windows1252
      default: return nil
      }
    }

    func text(_ bytes: [UInt8]) -> String? {
      switch self {
      case .utf8: return String(validating: bytes, as: UTF8.self)
      case .latin1:
        // Latin-1 has control characters there, so the text is in another charset.
        guard !bytes.contains(where: { 0x80...0x9f ~= $0 }) else { return nil }
        return String(decoding: bytes.map(UInt16.init), as: UTF16.self)
      case .windows1252:
        return String(
          decoding: bytes.map { 0x80...0x9f ~= $0 ? Self.windows[Int($0) - 0x80] : UInt16($0) }, as: UTF16.self)
      }
    }

    /// The characters of windows-1252 from 0x80 on, where Latin-1 has control characters.
    private static let windows: [UInt16] = [
      0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d,
      0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d,
      0x17e, 0x178,
    ]
  }
}
