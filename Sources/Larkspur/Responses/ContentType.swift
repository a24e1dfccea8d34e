import Foundation

/// What `Content-Type` says.
enum ContentType {
  static func parse(_ value: String) -> (mimeType: String?, charset: String?) {
    var parts = value.split(separator: ";", omittingEmptySubsequences: false)[...]
    let type = parts.popFirst()?.trimmingCharacters(in: .whitespaces).lowercased()
    for part in parts {
      let pair = part.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, pair[0].trimmingCharacters(in: .whitespaces).lowercased() == "charset" else { continue }
      return (type, pair[1].trimmingCharacters(in: CharacterSet(charactersIn: " \t\"")).lowercased())
    }
    return (type?.isEmpty == true ? nil : type, nil)
  }
}

/// A name for a file that holds a response's content.
enum SuggestedFilename {
  static func make(disposition: String?, url: URL?) -> String {
    let last = url?.lastPathComponent ?? ""
    return last.isEmpty || last == "/" ? "Unknown" : last
  }
}
