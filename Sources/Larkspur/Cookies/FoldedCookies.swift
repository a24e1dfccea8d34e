import Foundation

/// Splits Set-Cookie fields that were joined by commas, although RFC 9110 5.3 says that they cannot be.
enum FoldedCookies {
  /// Splits joined fields.
  ///
  /// - Returns: The fields. Line ends next to a comma, and at the ends of the text, are removed. A line end within a
  ///   field stays, and makes that field invalid.
  static func split(_ text: String) -> [String] {
    let bytes = withoutSeparatingLineEnds(Array(text.utf8))
    var parts: [String] = []
    var start = 0
    for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: ",") && beginsCookie(bytes[(index + 1)...]) {
      parts.append(String(decoding: bytes[start..<index], as: UTF8.self))
      start = index + 1
    }
    parts.append(String(decoding: bytes[start...], as: UTF8.self))
    return parts
  }

  private static func withoutSeparatingLineEnds(_ bytes: [UInt8]) -> [UInt8] {
    guard bytes.contains(where: isLineEnd) else { return bytes }
    let pieces = bytes.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map { piece in
      let ahead = piece.prefix { isBlank($0) || isLineEnd($0) }
      let rest = ahead.contains(where: isLineEnd) ? piece[ahead.endIndex...] : piece
      let end = rest.lastIndex { !isBlank($0) && !isLineEnd($0) }.map { $0 + 1 } ?? rest.startIndex
      return rest[end...].contains(where: isLineEnd) ? rest[..<end] : rest
    }
    return Array(pieces.joined(separator: CollectionOfOne(UInt8(ascii: ","))))
  }

  private static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0D || byte == 0x0A }

  /// Whether the bytes begin with a token (RFC 9110 5.6.2) and an equals sign.
  private static func beginsCookie(_ bytes: ArraySlice<UInt8>) -> Bool {
    let rest = bytes.drop(while: isBlank)
    let name = rest.prefix(while: isTokenByte)
    return !name.isEmpty && rest.dropFirst(name.count).first { !isBlank($0) } == UInt8(ascii: "=")
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"):
      true
    default: marks.contains(byte)
    }
  }

  private static let marks = Set("!#$%&'*+-.^_`|~".utf8)
}
