import Foundation

/// The names of text encodings, as servers say them (the IANA's registry of character sets).
enum TextEncodingName {
  private static let encodings: [String: String.Encoding] = [
    "utf-8": .utf8, "utf8": .utf8, "us-ascii": .ascii, "ascii": .ascii,
    "iso-8859-1": .isoLatin1, "latin1": .isoLatin1, "l1": .isoLatin1, "iso8859-1": .isoLatin1,
    "iso-8859-2": .isoLatin2, "latin2": .isoLatin2,
    "utf-16": .utf16, "utf-16be": .utf16BigEndian, "utf-16le": .utf16LittleEndian,
    "utf-32": .utf32, "utf-32be": .utf32BigEndian, "utf-32le": .utf32LittleEndian,
    "shift_jis": .shiftJIS, "shift-jis": .shiftJIS, "sjis": .shiftJIS, "ms_kanji": .shiftJIS,
    "euc-jp": .japaneseEUC, "iso-2022-jp": .iso2022JP,
    "windows-1250": .windowsCP1250, "windows-1251": .windowsCP1251, "windows-1252": .windowsCP1252,
    "windows-1253": .windowsCP1253, "windows-1254": .windowsCP1254, "macintosh": .macOSRoman,
  ]

  /// Nil: unknown.
  static func encoding(of name: String) -> String.Encoding? { encodings[name.lowercased()] }

  /// What requests say of their bodies. Nil: the encoding has no name here.
  static func name(of encoding: String.Encoding) -> String? {
    switch encoding {
    case .utf8: "utf-8"
    case .ascii: "us-ascii"
    case .isoLatin1: "iso-8859-1"
    case .isoLatin2: "iso-8859-2"
    case .shiftJIS: "shift_jis"
    case .japaneseEUC: "euc-jp"
    case .iso2022JP: "iso-2022-jp"
    case .macOSRoman: "macintosh"
    default: encodings.filter { $0.value == encoding }.keys.min()
    }
  }
}
