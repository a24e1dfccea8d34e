import LarkspurBytes
import LarkspurHTTP

/// A file of users and passwords for hosts, in the format that ftp introduced and curl reads: words that stand between
/// blanks or in double quotes.
///
/// ```
/// machine example.org
///   login me
///   password "two words"
/// default login anonymous password me@example.org
/// ```
package struct NetrcFile: Hashable, Sendable {
  /// The problem of a file. Its text names a line and no word, because a word may be a password.
  package struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
    package var line: Int
    var problem: String

    package var description: String { "line \(line): \(problem)" }
  }

  private struct Entry: Hashable {
    /// `nil` for the entry of all hosts.
    var host: String?
    var user: [UInt8]?
    var password: [UInt8]?
  }

  private var entries: [Entry] = []

  package init(_ bytes: [UInt8]) throws(Invalid) {
    /// The keyword before the next word, and its line.
    var keyword: (name: String, line: Int)?
    var isMacro = false
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      var rest = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      // A macro ends with an empty line.
      if isMacro { isMacro = !rest.isEmpty }
      while !isMacro, let word = try Self.takeWord(from: &rest, line: index + 1) {
        if let known = keyword {
          take(word, as: known.name)
          keyword = nil
          isMacro = known.name == "macdef"
          continue
        }
        if word.first == UInt8(ascii: "#") { break }
        switch String(decoding: word, as: UTF8.self).lowercased() {
        case "default": entries.append(Entry())
        case let name where ["machine", "login", "password", "account", "macdef"].contains(name):
          keyword = (name, index + 1)
        // As in curl, other words have no meaning.
        default: break
        }
      }
    }
    if let keyword { throw Invalid(line: keyword.line, problem: "a word is missing after \(keyword.name)") }
  }

  private mutating func take(_ word: [UInt8], as keyword: String) {
    if keyword == "machine" { entries.append(Entry(host: String(decoding: word, as: UTF8.self))) }
    guard let last = entries.indices.last else { return }
    // Of several in one entry the first one counts.
    if keyword == "login" { entries[last].user = entries[last].user ?? word }
    if keyword == "password" { entries[last].password = entries[last].password ?? word }
  }

  /// Takes the next word of a line. In double quotes a backslash stands before a quote, a backslash, or the letter of a
  /// control character: `\n`, `\r`, `\t`.
  private static func takeWord(from rest: inout ArraySlice<UInt8>, line: Int) throws(Invalid) -> [UInt8]? {
    rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    guard let first = rest.first else { return nil }
    guard first == UInt8(ascii: "\"") else {
      let word = rest.prefix { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") }
      rest = rest[word.endIndex...]
      return Array(word)
    }
    guard let word = QuotedWord.take(from: &rest) else {
      throw Invalid(line: line, problem: "the closing quote is missing")
    }
    return word
  }

  /// Returns the user and the password of the first entry for a host, or `nil` if there is none with either.
  package func credentials(host: String) -> UserInfo? {
    let entry = entries.first { $0.host.map { $0.equalsIgnoringCase(host) } ?? true }
    guard let entry, entry.user != nil || entry.password != nil else { return nil }
    return UserInfo(user: entry.user ?? [], password: entry.password ?? [])
  }
}

/// A word in double quotes, in the form that curl reads in its files.
enum QuotedWord {
  private static let escapes: [UInt8: UInt8] = [
    UInt8(ascii: "n"): UInt8(ascii: "\n"), UInt8(ascii: "r"): UInt8(ascii: "\r"), UInt8(ascii: "t"): UInt8(ascii: "\t"),
    UInt8(ascii: "v"): 0x0b,
  ]

  /// Takes a word that begins with a double quote. A backslash stands before the letter of a control character, or before
  /// any other character that is meant as it is.
  ///
  /// - Returns: `nil` if the closing quote is missing.
  static func take(from rest: inout ArraySlice<UInt8>) -> [UInt8]? {
    var word: [UInt8] = []
    rest.removeFirst()
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return word }
      guard byte == UInt8(ascii: "\\") else {
        word.append(byte)
        continue
      }
      guard let escaped = rest.popFirst() else { return nil }
      word.append(escapes[escaped] ?? escaped)
    }
    return nil
  }
}
