extension Format {
  /// Returns the number of columns that a text takes on a terminal. Characters of East Asian scripts and emoji take two,
  /// and marks on a letter have no width.
  package static func columns(of text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + columns(of: $1) } }

  private static func columns(of scalar: Unicode.Scalar) -> Int {
    guard scalar.value >= 0x300 else { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark: return 0
    default: break
    }
    return switch scalar.value {
    // Vowels and final consonants of Hangul join the consonant before them.
    case 0x1160...0x11ff: 0
    // The blocks of wide characters (UAX 11).
    case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xa960...0xa97f, 0xac00...0xd7a3, 0xf900...0xfaff,
      0xfe30...0xfe6f, 0xff01...0xff60, 0xffe0...0xffe6, 0x20000...0x3fffd:
      2
    // Two of these letters are a flag.
    case 0x1f1e6...0x1f1ff: 1
    default: scalar.properties.isEmojiPresentation ? 2 : 1
    }
  }

  /// Replaces the middle of a text by dots if it takes more than this many columns.
  package static func shortened(_ text: String, toColumns max: Int) -> String {
    guard columns(of: text) > max else { return text }
    let dots = "..."
    let room = Swift.max(max - dots.count, 0)
    let head = prefix(text, columns: room - room / 2)
    let tail = prefix(text.reversed(), columns: room - columns(of: String(head)))
    return String(head) + dots + String(tail.reversed())
  }

  private static func prefix(_ text: some Sequence<Character>, columns max: Int) -> [Character] {
    var left = max
    return text.prefix { character in
      left -= columns(of: String(character))
      return left >= 0
    }
  }
}
