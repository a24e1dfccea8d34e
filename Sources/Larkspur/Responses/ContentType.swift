import Foundation
import LarkspurBytes
import LarkspurHTTP

/// What the fields of a response say of its content.
enum ContentType {
  /// - Parameter values: Those of `Content-Type`, line by line.
  static func parse(_ values: [String]) -> (mimeType: String?, charset: String?) {
    if values.count == 1, let plain = plain(values[0]) { return plain }
    if let type = MediaType(fieldValues: values) { return (type.essence, type.charset) }
    // No media type, but what programs have been shown all the same: `text` stays `text`.
    let first = values.last?.prefix { $0 != ";" } ?? ""
    let word = first.trimmingCharacters(in: .whitespaces).lowercased()
    return (word.isEmpty ? nil : word, nil)
  }

  /// What nearly every server sends, `text/html` or `text/html; charset=utf-8`, without the detours that the standard
  /// allows for. Nil: it is not of that kind.
  static func plain(_ value: String) -> (mimeType: String?, charset: String?)? {
    let bytes = value.utf8Span.span
    let typeEnd = Scan.endOfToken(in: bytes, from: 0, to: bytes.count)
    guard typeEnd > 0, typeEnd < bytes.count, bytes[typeEnd] == UInt8(ascii: "/"), bytes[0] != UInt8(ascii: "*")
    else { return nil }
    let end = Scan.endOfToken(in: bytes, from: typeEnd + 1, to: bytes.count)
    guard end > typeEnd + 1 else { return nil }
    let essence = lowercased(value, 0..<end, bytes)
    guard end < bytes.count else { return (essence, nil) }
    guard bytes[end] == UInt8(ascii: ";") else { return nil }
    var start = end + 1
    while start < bytes.count, bytes[start] == UInt8(ascii: " ") { start += 1 }
    let nameEnd = start + charsetName.count
    guard nameEnd < bytes.count, charsetName.matches(bytes, start..<nameEnd), bytes[nameEnd] == UInt8(ascii: "="),
      Scan.endOfToken(in: bytes, from: nameEnd + 1, to: bytes.count) == bytes.count, nameEnd + 1 < bytes.count
    else { return nil }
    return (essence, lowercased(value, nameEnd + 1..<bytes.count, bytes))
  }

  private static let charsetName: CaselessWord = "charset"

  private static func lowercased(_ value: String, _ range: Range<Int>, _ bytes: Span<UInt8>) -> String {
    let isLower = !range.contains { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= bytes[$0] }
    if isLower, range.count == bytes.count { return value }
    let start = value.utf8.index(value.startIndex, offsetBy: range.lowerBound)
    let part = value[start..<value.utf8.index(start, offsetBy: range.count)]
    return isLower ? String(part) : part.lowercased()
  }
}

extension SuggestedFilename {
  /// Apple's documentation has the host's name for a URL without a path; programs on Linux know `Unknown`.
  static func name(disposition: String?, url: URL?, mimeType: String?) -> String {
    let last = url?.lastPathComponent
    let bare = name(disposition: disposition, pathComponent: last, host: nil, mediaType: nil)
    guard bare != unknown, let type = mimeType.flatMap({ MediaType(parsing: $0) }) else { return bare }
    return name(disposition: disposition, pathComponent: last, host: nil, mediaType: type)
  }
}
