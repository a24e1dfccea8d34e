/// The name under which a response may be saved, safe whatever the server sends (RFC 6266, section 4.3).
///
/// The name means a file in the directory that the caller has chosen and nothing else: it is never empty, never `.` or
/// `..`, and contains no separator, no control character and no character that changes the direction of text; it does
/// not begin with a dot, which would hide the file.
public enum SuggestedFilename {
  /// Maximum length of a name in bytes: `NAME_MAX` of Linux's file systems. A file with a longer name could not be
  /// created.
  public static let bytesMax = 255

  /// Maximum length of an extension in bytes. Longer text after a dot is a part of the name.
  public static let extensionBytesMax = 16

  /// The name of a response for which there is no other name.
  public static let unknown = "Unknown"

  /// Returns the name, from the first source that gives one, in Apple's order: `Content-Disposition`, the last
  /// component of the URL's path (percent-decoded), the URL's host. A name without an extension gets the extension of
  /// its media type, if that is known.
  public static func name(
    disposition: String?, pathComponent: String?, host: String?, mediaType: MediaType?
  ) -> String {
    let named = [disposition.flatMap { ContentDisposition.filename(of: $0) }, pathComponent].lazy.compactMap { $0 }
    if let name = named.compactMap(safe).first {
      return fitting(name, mediaType.flatMap { hasExtension(name) ? nil : FileExtension.of($0) })
    }
    // The last label of a host's name is not an extension.
    return fitting(host.flatMap(safe) ?? unknown, mediaType.flatMap(FileExtension.of))
  }

  /// Returns the safe form of a name, or `nil` if nothing is left of it or it names a directory.
  private static func safe(_ name: String) -> String? {
    var scalars = String.UnicodeScalarView()
    for scalar in name.unicodeScalars {
      switch scalar {
      // Safari on macOS, Firefox and Chrome replace separators in this way.
      case "/", "\\": scalars.append("_")
      // Control characters, and line and paragraph separators.
      case "\0"..."\u{1f}", "\u{7f}"..."\u{9f}", "\u{2028}", "\u{2029}": continue
      // Characters that change the direction of text make `exe.gpj` look like `jpg.exe`.
      case "\u{200e}", "\u{200f}", "\u{202a}"..."\u{202e}", "\u{2066}"..."\u{2069}": continue
      default: scalars.append(scalar)
      }
    }
    var rest = scalars.drop { $0 == " " || $0 == "." }
    while rest.last == " " || rest.last == "." { rest.removeLast() }
    // Only dots and replaced separators are left: the name of a directory.
    guard rest.contains(where: { $0 != "." && $0 != "_" }) else { return nil }
    return String(String.UnicodeScalarView(rest))
  }

  private static func hasExtension(_ name: String) -> Bool { split(name).tail.utf8.count > 1 }

  /// Splits a name before its last dot, if the text after the dot is an extension; otherwise `tail` is empty.
  private static func split(_ name: String) -> (stem: Substring, tail: Substring) {
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name[...], "") }
    let tail = name[dot...]
    guard 1...extensionBytesMax + 1 ~= tail.utf8.count, !tail.contains(" ") else { return (name[...], "") }
    return (name[..<dot], tail)
  }

  /// Appends `added`, or else keeps the name's own extension, and shortens the stem until the name fits into
  /// `bytesMax`.
  private static func fitting(_ name: String, _ added: String?) -> String {
    var (stem, tail) = added.map { (name[...], ".\($0)"[...]) } ?? split(name)
    if stem.utf8.count + tail.utf8.count <= bytesMax { return String(stem) + tail }
    let room = bytesMax - tail.utf8.count
    // The stem is shortened by whole characters; a single character may be longer than the room.
    stem = stem.prefix(room)
    while stem.utf8.count > room, !stem.isEmpty { stem.removeLast() }
    return stem.isEmpty ? unknown + tail : String(stem) + tail
  }
}
