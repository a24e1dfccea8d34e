import Foundation
import LarkspurHTTP

/// What the fields of a response say of its content.
enum ContentType {
  /// - Parameter values: Those of `Content-Type`, line by line.
  static func parse(_ values: [String]) -> (mimeType: String?, charset: String?) {
    if let type = MediaType(fieldValues: values) { return (type.essence, type.charset) }
    // No media type, but what programs have been shown all the same: `text` stays `text`.
    let first = values.last?.prefix { $0 != ";" } ?? ""
    let word = first.trimmingCharacters(in: .whitespaces).lowercased()
    return (word.isEmpty ? nil : word, nil)
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
