/// The name under which a response may be saved, whatever the server says (RFC 6266, section 4.3).
///
/// It names a file in the directory that the caller has in mind and nothing else: it is never empty, never `.` or `..`, and
/// holds no separator, no control character and nothing that turns text around; it does not begin with a dot, which would
/// hide it.
public enum SuggestedFilename {
  /// `NAME_MAX` of Linux's file systems. A longer one could not be created.
  public static let bytesMax = 255

  /// What counts as an extension. What is longer is a part of the name that happens to follow a dot.
  public static let extensionBytesMax = 16

  /// The name for a response of nobody knows what.
  public static let unknown = "Unknown"

  /// In Apple's order: what `Content-Disposition` says, the last component of the URL's path (percent-decoded), the URL's
  /// host. A name without an extension gets the one of its media type, if that is known.
  public static func name(
    disposition: String?, pathComponent: String?, host: String?, mediaType: MediaType?
  ) -> String {
    let named = [disposition.flatMap { ContentDisposition.filename(of: $0) }, pathComponent].lazy.compactMap { $0 }
    if let name = named.compactMap(safe).first {
      return fitting(name, mediaType.flatMap { hasExtension(name) ? nil : FileExtension.of($0) })
    }
    // The end of a host's name is no extension.
    return fitting(host.flatMap(safe) ?? unknown, mediaType.flatMap(FileExtension.of))
  }

  /// Nil: nothing is left of it, or it names a directory.
  private static func safe(_ name: String) -> String? {
    var scalars = String.UnicodeScalarView()
    for scalar in name.unicodeScalars {
      switch scalar {
      // Safari on macOS does so, and Firefox and Chrome.
      case "/", "\\": scalars.append("_")
      // Control characters, the ends of lines and paragraphs.
      case "\0"..."\u{1f}", "\u{7f}"..."\u{9f}", "\u{2028}", "\u{2029}": continue
      // What changes the direction makes `exe.gpj` look like `jpg.exe`.
      case "\u{200e}", "\u{200f}", "\u{202a}"..."\u{202e}", "\u{2066}"..."\u{2069}": continue
      default: scalars.append(scalar)
      }
    }
    var rest = scalars.drop { $0 == " " || $0 == "." }
    while rest.last == " " || rest.last == "." { rest.removeLast() }
    // Nothing but dots and what has replaced separators: a directory.
    guard rest.contains(where: { $0 != "." && $0 != "_" }) else { return nil }
    return String(String.UnicodeScalarView(rest))
  }

  private static func hasExtension(_ name: String) -> Bool { split(name).tail.utf8.count > 1 }

  /// What stands before the last dot, and the rest from the dot on, if that is an extension.
  private static func split(_ name: String) -> (stem: Substring, tail: Substring) {
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name[...], "") }
    let tail = name[dot...]
    guard 1...extensionBytesMax + 1 ~= tail.utf8.count, !tail.contains(" ") else { return (name[...], "") }
    return (name[..<dot], tail)
  }

  /// Appends an extension, and shortens what stands before it.
  private static func fitting(_ name: String, _ added: String?) -> String {
    var (stem, tail) = added.map { (name[...], ".\($0)"[...]) } ?? split(name)
    if stem.utf8.count + tail.utf8.count <= bytesMax { return String(stem) + tail }
    let room = bytesMax - tail.utf8.count
    // By whole characters; but a single one may be longer than that.
    stem = stem.prefix(room)
    while stem.utf8.count > room, !stem.isEmpty { stem.removeLast() }
    return stem.isEmpty ? unknown + tail : String(stem) + tail
  }
}
