import Foundation
import LarkspurBytes
import LarkspurHTTP

/// Reads the type and the charset of a response's content from the response's fields.
enum ContentType {
  static func parse(_ fields: ResponseFields) -> (mimeType: String?, charset: String?) {
    if let plain = fields.only(KnownField.contentType, plain) { return plain }
    let values = fields.values(of: KnownField.contentType)
    if let type = MediaType(fieldValues: values) { return (type.essence, type.charset) }
    // The value is not a valid media type. Programs still get its first word: `text` stays `text`.
    let first = values.last?.prefix { $0 != ";" } ?? ""
    let word = first.trimmingCharacters(in: .whitespaces).lowercased()
    return (word.isEmpty ? nil : word, nil)
  }

  /// Parses the forms that nearly every server sends, `text/html` and `text/html; charset=utf-8`, without the other
  /// forms that the standard allows.
  ///
  /// - Returns: `nil` if the value has another form.
  static func plain(_ value: Span<UInt8>) -> (mimeType: String?, charset: String?)? {
    let typeEnd = Scan.endOfToken(in: value, from: 0, to: value.count)
    guard typeEnd > 0, typeEnd < value.count, value[typeEnd] == UInt8(ascii: "/"), value[0] != UInt8(ascii: "*")
    else { return nil }
    let end = Scan.endOfToken(in: value, from: typeEnd + 1, to: value.count)
    guard end > typeEnd + 1, let essence = lowercased(value.extracting(0..<end)) else { return nil }
    guard end < value.count else { return (essence, nil) }
    guard value[end] == UInt8(ascii: ";") else { return nil }
    var start = end + 1
    while start < value.count, value[start] == UInt8(ascii: " ") { start += 1 }
    let nameEnd = start + charsetName.count
    guard nameEnd < value.count, charsetName.matches(value, start..<nameEnd), value[nameEnd] == UInt8(ascii: "="),
      Scan.endOfToken(in: value, from: nameEnd + 1, to: value.count) == value.count, nameEnd + 1 < value.count
    else { return nil }
    return (essence, lowercased(value.extracting((nameEnd + 1)...)))
  }

  private static var charsetName: CaseInsensitiveToken { "charset" }

  private static func lowercased(_ text: Span<UInt8>) -> String? {
    guard let text = try? UTF8Span(validating: text) else { return nil }
    let capitals = UInt8(ascii: "A")...UInt8(ascii: "Z")
    for index in text.span.indices where capitals.contains(text.span[index]) {
      return String(copying: text).lowercased()
    }
    return String(copying: text)
  }
}

extension SuggestedFilename {
  /// The suggested filename. For a URL without a path, Apple's documentation names the host; programs on Linux expect
  /// `Unknown`.
  static func name(disposition: String?, url: URL?, mimeType: String?) -> String {
    // The path of a `data:` URL is its content.
    let last = url?.scheme?.lowercased() == "data" ? nil : url?.lastPathComponent
    let bare = name(disposition: disposition, pathComponent: last, host: nil, mediaType: nil)
    guard bare != unknown, let type = mimeType.flatMap({ MediaType(parsing: $0) }) else { return bare }
    return name(disposition: disposition, pathComponent: last, host: nil, mediaType: type)
  }
}
