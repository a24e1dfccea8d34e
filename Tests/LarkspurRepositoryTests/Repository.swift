import Foundation

/// The project's files, as the rules read them.
struct Repository {
  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  struct File: Sendable {
    /// The path, relative to the project's root.
    var path: String
    var text: String

    let lines: [Substring]
    /// The lines without their `//` comments and without string literals that begin and end on one line.
    let code: [String]

    init(path: String, text: String) {
      self.path = path
      self.text = text
      lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      code = lines.map(Self.code)
    }

    private static func code(_ line: Substring) -> String {
      var bytes: [UInt8] = []
      var isQuoted = false
      var isEscaped = false
      for byte in line.utf8 {
        if isQuoted {
          if byte == UInt8(ascii: "\""), !isEscaped { isQuoted = false }
          isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
          continue
        }
        if byte == UInt8(ascii: "\"") { isQuoted = true }
        if byte == UInt8(ascii: "/"), bytes.last == byte {
          bytes.removeLast()
          break
        }
        bytes.append(byte)
      }
      return String(decoding: bytes, as: UTF8.self)
    }

    var directory: String { path.split(separator: "/").dropLast().joined(separator: "/") }
    /// The module of a file under Sources.
    var module: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
  }

  /// Returns the files below `directory` whose names end with one of `suffixes`.
  static func files(under directory: String, suffixes: [String] = [".swift"]) -> [File] {
    let base = root.appending(path: directory)
    guard let found = FileManager.default.enumerator(atPath: base.path) else { return [] }
    return found.compactMap { $0 as? String }.filter { path in
      suffixes.contains { path.hasSuffix($0) } && !path.split(separator: "/").contains { $0.hasPrefix(".") }
    }.sorted().compactMap { path in
      guard let data = FileManager.default.contents(atPath: base.appending(path: path).path) else { return nil }
      return File(path: directory + "/" + path, text: String(decoding: data, as: UTF8.self))
    }
  }
}

extension String {
  /// Returns whether `word` occurs as a whole word.
  func hasWord(_ word: String) -> Bool {
    func isWordByte(_ byte: UInt8) -> Bool {
      byte == UInt8(ascii: "_") || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
        || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
    }
    let bytes = Array(utf8)
    let wanted = Array(word.utf8)
    guard bytes.count >= wanted.count else { return false }
    return (0...bytes.count - wanted.count).contains { start in
      let end = start + wanted.count
      return bytes[start..<end].elementsEqual(wanted) && (start == 0 || !isWordByte(bytes[start - 1]))
        && (end == bytes.count || !isWordByte(bytes[end]))
    }
  }
}
