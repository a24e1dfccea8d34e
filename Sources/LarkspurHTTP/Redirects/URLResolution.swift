/// Resolves references by RFC 3986, section 5.2, on text that otherwise stays as it is: percent-encoded text stays
/// percent-encoded.
///
/// Foundation's own resolution refuses an empty reference, and leaves `..` in references that have a host.
public enum URLResolution {
  /// The parts of a reference (RFC 3986, appendix B). A missing part is `nil`, which differs from an empty one.
  public struct Parts: Hashable, Sendable {
    public var scheme: Substring?
    public var authority: Substring?
    public var path: Substring
    public var query: Substring?
    public var fragment: Substring?

    public init(_ text: String) {
      var rest = text[...]
      if let colon = rest.utf8.firstIndex(where: { ":/?#".utf8.contains($0) }), rest.utf8[colon] == ASCII.colon,
        Self.isScheme(rest[..<colon])
      {
        scheme = rest[..<colon]
        rest = rest[colon...].dropFirstByte()
      }
      if let hash = rest.utf8.firstIndex(of: UInt8(ascii: "#")) {
        fragment = rest[hash...].dropFirstByte()
        rest = rest[..<hash]
      }
      if let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) {
        query = rest[mark...].dropFirstByte()
        rest = rest[..<mark]
      }
      path = rest
      if rest.utf8.starts(with: "//".utf8) {
        rest = rest.dropFirstByte().dropFirstByte()
        let end = rest.utf8.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        authority = rest[..<end]
        path = rest[end...]
      }
    }

    private static func isScheme(_ text: Substring) -> Bool {
      guard let first = text.utf8.first, isLetter(first) else { return false }
      return text.utf8.allSatisfy { isLetter($0) || ASCII.isDigit($0) || "+-.".utf8.contains($0) }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }

    /// The reference made of its parts (RFC 3986, section 5.3).
    public var text: String {
      var text = ""
      if let scheme { text += "\(scheme):" }
      if let authority { text += "//\(authority)" }
      // A path that begins with `//` would be read as an authority (section 4.2).
      if authority == nil, path.utf8.starts(with: "//".utf8) { text += "/." }
      text += path
      if let query { text += "?\(query)" }
      if let fragment { text += "#\(fragment)" }
      return text
    }
  }

  /// Returns the absolute URL that `reference` names if `base` is the URL of the response.
  ///
  /// - Parameter inheritsFragment: Whether a reference without a fragment gets the fragment of `base`, as in a
  ///   redirection (RFC 9110, section 10.2.2).
  public static func resolve(_ reference: String, against base: String, inheritsFragment: Bool = false) -> String {
    let own = Parts(reference)
    let base = Parts(base)
    var target = own
    if own.scheme == nil {
      target.scheme = base.scheme
      if own.authority == nil {
        target.authority = base.authority
        if own.path.isEmpty {
          target.path = base.path
          target.query = own.query ?? base.query
        } else if !own.path.utf8.starts(with: "/".utf8) {
          target.path = merged(own.path, base)
        }
      }
    }
    // A reference without scheme, authority and path keeps the base's path as it is. Any other path loses its dot
    // segments.
    if own.scheme != nil || own.authority != nil || !own.path.isEmpty { target.path = withoutDots(target.path) }
    if inheritsFragment, own.fragment == nil { target.fragment = base.fragment }
    return target.text
  }

  /// Merges a relative path with the base's path (RFC 3986, section 5.2.3).
  private static func merged(_ path: Substring, _ base: Parts) -> Substring {
    if base.authority != nil, base.path.isEmpty { return "/" + path }
    guard let slash = base.path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
    return base.path[...slash] + path
  }

  /// Removes the dot segments from a path (RFC 3986, section 5.2.4).
  public static func withoutDots(_ path: Substring) -> Substring {
    let slash = UInt8(ascii: "/")
    var segments = path.utf8.split(separator: slash, omittingEmptySubsequences: false).map { Substring($0) }
    let isAbsolute = path.utf8.first == slash
    guard segments.contains(where: { $0 == "." || $0 == ".." }) else { return path }
    if isAbsolute { segments.removeFirst() }
    var kept: [Substring] = []
    for (index, segment) in segments.enumerated() {
      let isLast = index == segments.count - 1
      switch segment {
      case ".": if isLast { kept.append("") }
      case "..":
        _ = kept.popLast()
        if isLast { kept.append("") }
      default: kept.append(segment)
      }
    }
    return Substring((isAbsolute ? "/" : "") + kept.joined(separator: "/"))
  }
}

extension Substring {
  fileprivate func dropFirstByte() -> Substring { self[utf8.index(after: startIndex)...] }
}
