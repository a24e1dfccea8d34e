import Foundation

/// Converts text to bytes and back, in the encodings that have a name.
enum TextCoding {
  /// - Returns: The text, or `nil` if the bytes are not valid in that encoding.
  static func text(of data: Data, in encoding: String.Encoding) -> String? {
    isJapaneseEUC(encoding) ? JapaneseEUC.text(of: data) : String(data: data, encoding: usable(encoding))
  }

  /// - Returns: The bytes, or `nil` if the encoding is unknown or does not have all of the characters.
  static func bytes(of text: String, in encoding: String.Encoding) -> Data? {
    isJapaneseEUC(encoding) ? JapaneseEUC.bytes(of: text) : text.data(using: usable(encoding))
  }

  private static func isJapaneseEUC(_ encoding: String.Encoding) -> Bool {
    encoding == .japaneseEUC || encoding.rawValue == 1 << 31 | 0x920
  }

  /// Returns the encoding whose number has a converter in Foundation.
  private static func usable(_ encoding: String.Encoding) -> String.Encoding {
    switch encoding.rawValue {
    // Under the usual number of Macintosh's Western set, Foundation's table is wrong, and some texts end the process.
    case String.Encoding.macOSRoman.rawValue: String.Encoding(rawValue: 1 << 31)
    case 1 << 31 | 0x631: String.Encoding(rawValue: 1 << 31 | 0x421)
    default: encoding
    }
  }
}

/// Converts EUC-JP, for which Foundation on Linux has no converter. Shift_JIS has the characters of JIS X 0208 in a
/// different arrangement, and ISO-2022-JP-1 has the characters of JIS X 0212 unchanged.
private enum JapaneseEUC {
  private static let shiftJIS = String.Encoding(rawValue: 1 << 31 | 0x420)
  private static let iso2022JP1 = String.Encoding(rawValue: 1 << 31 | 0x822)

  static func text(of data: Data) -> String? {
    var text = ""
    var pending: [UInt8] = []
    var rest = data[...]
    func convert() -> Bool {
      guard let part = String(data: Data(pending), encoding: shiftJIS) else { return false }
      text += part
      pending = []
      return true
    }
    while let byte = rest.popFirst() {
      switch byte {
      case ..<0x80: pending.append(byte)
      case 0x8E:
        guard let kana = rest.popFirst(), 0xA1...0xDF ~= kana else { return nil }
        pending.append(kana)
      case 0x8F:
        guard let first = rest.popFirst(), let second = rest.popFirst(), 0xA1...0xFE ~= first, 0xA1...0xFE ~= second,
          convert(),
          let part = String(
            data: Data([0x1B, 0x24, 0x28, 0x44, first & 0x7F, second & 0x7F, 0x1B, 0x28, 0x42]), encoding: iso2022JP1)
        else { return nil }
        text += part
      case 0xA1...0xFE:
        guard let second = rest.popFirst(), 0xA1...0xFE ~= second else { return nil }
        let (row, cell) = (byte - 0xA1, second - 0xA1)
        pending.append(row / 2 + (row < 62 ? 0x81 : 0xC1))
        // Two rows form one row of Shift_JIS, which skips the byte 0x7F.
        pending.append(row % 2 == 0 ? cell + (cell < 63 ? 0x40 : 0x41) : cell + 0x9F)
      default: return nil
      }
    }
    return convert() ? text : nil
  }

  static func bytes(of text: String) -> Data? {
    guard let shifted = text.data(using: shiftJIS) else { return nil }
    var bytes = Data()
    var rest = shifted[...]
    while let byte = rest.popFirst() {
      switch byte {
      case ..<0x80: bytes.append(byte)
      case 0xA1...0xDF: bytes += [0x8E, byte]
      case 0x81...0x9F, 0xE0...0xEF:
        guard let second = rest.popFirst() else { return nil }
        let row = (byte - (byte < 0xA0 ? 0x81 : 0xC1)) * 2
        if second < 0x9F {
          bytes += [row + 0xA1, second - (second < 0x7F ? 0x40 : 0x41) + 0xA1]
        } else {
          bytes += [row + 1 + 0xA1, second - 0x9F + 0xA1]
        }
      // Vendor-specific characters, which EUC-JP does not have.
      default: return nil
      }
    }
    return bytes
  }
}
