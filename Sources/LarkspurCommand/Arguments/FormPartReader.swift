import LarkspurBytes
import LarkspurHTTP

/// Reads the value of one `-F` option by the rules of curl (curl's manual page, `--form`).
///
/// ```
/// NAME=TEXT[;option ...]   NAME=@FILE[;option ...]     option: type=TYPE  filename=NAME  headers=FIELD
/// ```
///
/// TEXT, FILE, NAME and FIELD are words. Blanks around a word are dropped. A word in double quotes may hold any
/// character; in it a backslash escapes a quote or another backslash. Behind TYPE, its parameters may follow after
/// semicolons. Where curl warns and drops unreadable input, this reader throws an error; in a TEXT without quotes it
/// takes such input as a part of the text.
struct FormPartReader {
  private typealias Bytes = ArraySlice<UInt8>

  private static let quote = UInt8(ascii: "\"")
  private static let backslash = UInt8(ascii: "\\")
  private static let semicolon = UInt8(ascii: ";")
  private static let comma = UInt8(ascii: ",")

  private var rest: Bytes
  /// Whether the word is a file. Then a comma is a separator, as curl separates files by commas.
  private let isFile: Bool

  static func part(_ text: String) throws(UsageError) -> SessionOptions.Part {
    let bytes = Array(text.utf8)
    guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals > 0 else {
      throw UsageError("-F wants NAME=TEXT or NAME=@FILE, not \(text.debugDescription)")
    }
    let value = bytes[(equals + 1)...]
    guard value.first != UInt8(ascii: "<") else {
      throw UsageError("-F NAME=<FILE is not supported: a file is sent as one, by NAME=@FILE")
    }
    let name = String(decoding: bytes[..<equals], as: UTF8.self)
    let isFile = value.first == UInt8(ascii: "@")
    var reader = FormPartReader(rest: isFile ? value.dropFirst() : value, isFile: isFile)
    let word = try reader.word(until: isFile ? nil : reader.firstOption)
    var part = SessionOptions.Part(name, isFile ? .file(word) : .text(word))
    try reader.readOptions(of: &part)
    return part
  }

  private mutating func readOptions(of part: inout SessionOptions.Part) throws(UsageError) {
    var continuesType = false
    while rest.first == Self.semicolon {
      let start = rest
      rest.removeFirst()
      skipBlanks()
      if !continuesType, take("type=") {
        skipBlanks()
        let type = takeRaw()
        part.type = String(decoding: type, as: UTF8.self)
        guard !Self.trimmed(type).isEmpty else { throw UsageError("-F: the type is missing behind ;type=") }
        continuesType = true
      } else if take("filename=") {
        part.fileName = try word()
        continuesType = false
      } else if take("headers=") {
        part.fields.append(try field(try word()))
        continuesType = false
      } else if continuesType {
        rest = start.dropFirst()
        part.type = (part.type ?? "") + ";" + String(decoding: takeRaw(), as: UTF8.self)
      } else {
        throw UsageError(
          "-F knows ;type=, ;filename= and ;headers=, not \(Self.trimmed(takeRaw()).debugDescription) "
            + "(double quotes keep semicolons)")
      }
    }
    part.type = part.type.map { Self.trimmed(Array($0.utf8)[...]) }
    guard rest.isEmpty else {
      throw UsageError("-F sends one file at a time: a name with a comma has to stand in double quotes")
    }
  }

  private func field(_ text: String) throws(UsageError) -> Field {
    guard text.first != "@", text.first != "<" else {
      throw UsageError("-F ;headers=@FILE is not supported: a field is given by ;headers='Name: value'")
    }
    let field = try GetOptions.field(text, of: "-F ;headers=")
    guard !field.name.isEmpty, field.name.utf8.allSatisfy(Scan.isToken),
      field.value.utf8.allSatisfy(Scan.isFieldValueByte)
    else { throw UsageError("-F: \(text.debugDescription) cannot be a field of a part") }
    return field
  }

  // MARK: - Words

  /// Takes a word, which ends with its closing quote, at `end`, or at the next separator.
  private mutating func word(until end: Bytes.Index? = nil) throws(UsageError) -> String {
    skipBlanks()
    if rest.first == Self.quote, let word = takeQuoted() {
      skipBlanks()
      if let next = rest.first, !isSeparator(next) {
        throw UsageError("-F: something stands behind the closing quote: \(String(decoding: rest, as: UTF8.self))")
      }
      return word
    }
    guard let end else { return Self.trimmed(takeRaw()) }
    // Skipping blanks may have gone past `end`.
    let word = rest.startIndex < end ? rest[..<end] : []
    rest = rest[max(end, rest.startIndex)...]
    return Self.trimmed(word)
  }

  /// - Returns: The word, or `nil` if the closing quote is missing: then the opening quote is a character of the word.
  private mutating func takeQuoted() -> String? {
    var word: [UInt8] = []
    var bytes = rest.dropFirst()
    while let byte = bytes.popFirst() {
      switch byte {
      case Self.quote:
        rest = bytes
        return String(decoding: word, as: UTF8.self)
      case Self.backslash where bytes.first == Self.quote || bytes.first == Self.backslash:
        word.append(bytes.removeFirst())
      default: word.append(byte)
      }
    }
    return nil
  }

  /// The index of the first option behind a TEXT without quotes. Other semicolons in the text are not followed by the
  /// name of an option.
  private var firstOption: Bytes.Index {
    rest.indices.first { index in
      guard rest[index] == Self.semicolon else { return false }
      let option = rest[(index + 1)...].drop(while: Self.isBlank)
      return ["type=", "filename=", "headers=", "encoder="].contains { Self.hasPrefix($0, option) }
    } ?? rest.endIndex
  }

  private mutating func takeRaw() -> Bytes {
    let end = rest.firstIndex(where: isSeparator) ?? rest.endIndex
    defer { rest = rest[end...] }
    return rest[..<end]
  }

  private mutating func take(_ option: String) -> Bool {
    guard Self.hasPrefix(option, rest) else { return false }
    rest.removeFirst(option.utf8.count)
    return true
  }

  private mutating func skipBlanks() { rest = rest.drop(while: Self.isBlank) }

  private func isSeparator(_ byte: UInt8) -> Bool { byte == Self.semicolon || isFile && byte == Self.comma }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0d ~= byte }

  /// Whether the bytes begin with the name of an option, in any letter case.
  private static func hasPrefix(_ option: String, _ bytes: Bytes) -> Bool {
    String(decoding: bytes.prefix(option.utf8.count), as: UTF8.self).lowercased() == option
  }

  private static func trimmed(_ bytes: Bytes) -> String {
    let start = bytes.drop(while: isBlank)
    let end = start.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? start.startIndex
    return String(decoding: start[..<end], as: UTF8.self)
  }
}
