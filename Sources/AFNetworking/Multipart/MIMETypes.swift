import Foundation

/// Media types by the extensions of files.
struct MIMETypes: Sendable {
  private let types: [String: String]

  /// Those of this system, read when they are first asked for.
  static let system = MIMETypes(path: "/etc/mime.types")

  /// A file that is larger is not read: it is no table of types.
  static let fileBytesMax = 4 << 20

  /// What is not known.
  static let unknown = "application/octet-stream"

  /// - Parameter path: A table in the form of `/etc/mime.types`. If there is none a small one of our own counts.
  init(path: String) {
    let size = (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber
    guard let size, size.intValue <= Self.fileBytesMax, let data = FileManager.default.contents(atPath: path) else {
      types = Self.common
      return
    }
    let table = Self.parsed(String(decoding: data, as: UTF8.self))
    types = table.isEmpty ? Self.common : table
  }

  /// The type of files with this extension, in either case of letters.
  func type(ofExtension name: String) -> String { types[name.lowercased()] ?? Self.unknown }

  /// Lines of a type and its extensions; `#` begins a comment. The first line that names an extension counts.
  private static func parsed(_ text: String) -> [String: String] {
    var types: [String: String] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
      guard let type = words.first, type.contains("/") else { continue }
      for name in words.dropFirst() where types[name.lowercased()] == nil { types[name.lowercased()] = String(type) }
    }
    return types
  }

  private static let common: [String: String] = [
    "avif": "image/avif", "bmp": "image/bmp", "bz2": "application/x-bzip", "cer": "application/pkix-cert",
    "css": "text/css", "csv": "text/csv", "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "gif": "image/gif", "gz": "application/gzip", "heic": "image/heic", "htm": "text/html", "html": "text/html",
    "ico": "image/vnd.microsoft.icon", "jpeg": "image/jpeg", "jpg": "image/jpeg", "js": "text/javascript",
    "json": "application/json", "m4a": "audio/mp4", "md": "text/markdown", "mov": "video/quicktime",
    "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "oga": "audio/ogg", "ogg": "audio/ogg",
    "ogv": "video/ogg", "pdf": "application/pdf", "png": "image/png",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff",
    "tiff": "image/tiff", "txt": "text/plain", "wasm": "application/wasm", "wav": "audio/x-wav",
    "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2",
    "xhtml": "application/xhtml+xml", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "xml": "application/xml", "zip": "application/zip",
  ]
}
