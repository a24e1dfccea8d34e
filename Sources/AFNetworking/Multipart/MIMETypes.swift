import Foundation

/// Media types by file extension.
struct MIMETypes: Sendable {
  private let types: [String: String]

  /// The types of this system, read at first use.
  static let system = MIMETypes(path: "/etc/mime.types")

  /// Maximum size of the file, in bytes. A larger file is not a table of types, and is not read.
  static let fileBytesMax = 4 << 20

  /// The type of unknown extensions.
  static let unknown = "application/octet-stream"

  /// Reads a table of types.
  ///
  /// - Parameter path: A table in the format of `/etc/mime.types`. If it cannot be read or is empty, a small built-in
  ///   table is used.
  init(path: String) {
    let size = (try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? NSNumber
    guard let size, size.intValue <= Self.fileBytesMax, let data = FileManager.default.contents(atPath: path) else {
      types = Self.common
      return
    }
    let table = Self.parsed(String(decoding: data, as: UTF8.self))
    types = table.isEmpty ? Self.common : table
  }

  /// Returns the type of files with this extension. Ignores case.
  func type(ofExtension name: String) -> String { types[name.lowercased()] ?? Self.unknown }

  /// Parses lines of a type and its extensions; `#` begins a comment. If several lines name an extension, the first one
  /// counts.
  private static func parsed(_ text: String) -> [String: String] {
    var types: [String: String] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      let fields = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
      guard let type = fields.first, type.contains("/") else { continue }
      for name in fields.dropFirst() where types[name.lowercased()] == nil { types[name.lowercased()] = String(type) }
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
