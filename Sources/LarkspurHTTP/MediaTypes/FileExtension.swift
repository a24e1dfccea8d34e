/// Maps common media types to their usual file extensions, and back.
public enum FileExtension {
  /// Returns the extension of a media type, or `nil` if it is unknown. `application/octet-stream` has no extension.
  public static func of(_ type: MediaType) -> String? {
    if let known = extensions[type.essence] { return known }
    // RFC 6839: the suffix names the format that the type is based on.
    if type.subtype.hasSuffix("+json") { return "json" }
    return type.subtype.hasSuffix("+xml") ? "xml" : nil
  }

  /// Returns the media type of a file with this extension, or `application/octet-stream` if the extension is unknown.
  public static func mediaType(of pathExtension: String) -> String {
    types[HostName.normal(pathExtension)] ?? "application/octet-stream"
  }

  private static let extensions = Dictionary(
    table.map { ($0.type, $0.extensions[0]) }, uniquingKeysWith: { first, _ in first })

  private static let types = Dictionary(
    table.flatMap { row in row.extensions.map { ($0, row.type) } }, uniquingKeysWith: { first, _ in first })

  /// For a type its first extension counts, and for an extension the first type that has it.
  private static let table: [(type: String, extensions: [String])] = [
    ("application/atom+xml", ["atom"]), ("application/epub+zip", ["epub"]), ("application/gzip", ["gz", "tgz"]),
    ("application/json", ["json"]), ("application/msword", ["doc"]), ("application/pdf", ["pdf"]),
    ("application/rss+xml", ["rss"]), ("application/rtf", ["rtf"]), ("application/vnd.ms-excel", ["xls"]),
    ("application/vnd.ms-powerpoint", ["ppt"]),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", ["pptx"]),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ["xlsx"]),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", ["docx"]),
    ("application/wasm", ["wasm"]), ("application/x-7z-compressed", ["7z"]), ("application/x-bzip2", ["bz2"]),
    ("application/x-gzip", ["gz"]), ("application/x-tar", ["tar"]), ("application/x-xz", ["xz"]),
    ("application/xhtml+xml", ["xhtml"]), ("application/xml", ["xml"]), ("application/zip", ["zip"]),
    ("audio/aac", ["aac"]), ("audio/flac", ["flac"]), ("audio/mp4", ["m4a"]), ("audio/mpeg", ["mp3"]),
    ("audio/ogg", ["ogg", "oga", "opus"]), ("audio/wav", ["wav"]), ("audio/webm", ["weba"]), ("audio/x-wav", ["wav"]),
    ("font/otf", ["otf"]), ("font/ttf", ["ttf"]), ("font/woff", ["woff"]), ("font/woff2", ["woff2"]),
    ("image/avif", ["avif"]), ("image/bmp", ["bmp"]), ("image/gif", ["gif"]), ("image/heic", ["heic"]),
    ("image/jpeg", ["jpeg", "jpg"]), ("image/png", ["png"]), ("image/svg+xml", ["svg"]),
    ("image/tiff", ["tiff", "tif"]),
    ("image/vnd.microsoft.icon", ["ico"]), ("image/webp", ["webp"]), ("image/x-icon", ["ico"]),
    ("text/calendar", ["ics"]), ("text/css", ["css"]), ("text/csv", ["csv"]), ("text/html", ["html", "htm"]),
    // RFC 9239.
    ("text/javascript", ["js", "mjs"]), ("application/javascript", ["js"]), ("text/markdown", ["md"]),
    ("text/plain", ["txt", "text", "log"]), ("text/rtf", ["rtf"]), ("text/vcard", ["vcf"]), ("text/xml", ["xml"]),
    ("video/mp4", ["mp4", "m4v"]), ("video/mpeg", ["mpeg", "mpg"]), ("video/ogg", ["ogv"]),
    ("video/quicktime", ["mov"]),
    ("video/webm", ["webm"]),
  ]
}
