/// Compares entity tags (RFC 9110 8.8.3).
enum EntityTag {
  /// Whether the tag has quotation marks at both ends, and not inside.
  static func isStrong(_ tag: String) -> Bool {
    tag.utf8.first == ASCII.quote && tag.utf8.last == ASCII.quote && tag.utf8.count { $0 == ASCII.quote } == 2
  }

  /// Whether the tags are equal when weakness is ignored (RFC 9110 8.8.3.2).
  static func isWeaklyEqual(_ tag: String, _ other: String) -> Bool { opaque(tag) == opaque(other) }

  static func isStronglyEqual(_ tag: String, _ other: String) -> Bool { isStrong(tag) && tag == other }

  private static func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }
}
