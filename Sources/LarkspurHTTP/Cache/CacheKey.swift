/// What responses are stored under: the URI, written in one way, and the method (RFC 9111 2).
///
/// GET and HEAD share their keys, for a stored GET answers both. A fragment is not part of what is asked for. A
/// password is no part of it either, and would not be safe here; the user's name is, for two users see two things.
public enum CacheKey {
  /// Nil: the URI is not absolute.
  ///
  /// - Parameter host: The `Host` that is sent, if a program has set it: it is that of the target (RFC 9110 7.1). Where it is
  ///   not the URI's, it stands in the fragment's place. (In the authority's it would let one server answer for another.)
  public static func make(method: String, uri: String, host: String? = nil) -> String? {
    let bytes = Array(uri.utf8)
    let end = bytes.firstIndex(of: UInt8(ascii: "#")) ?? bytes.endIndex
    guard let colon = bytes[..<end].firstIndex(of: ASCII.colon), colon > 0 else { return nil }
    var key: [UInt8] = []
    key.reserveCapacity(bytes.count + 8)
    if method != "GET", method != "HEAD" {
      key += method.utf8
      key.append(ASCII.space)
    }
    let scheme = bytes[..<colon].map(lowered)
    key += scheme
    guard bytes[colon..<end].starts(with: "://".utf8) else {
      key += bytes[colon..<end]
      return String(decoding: key, as: UTF8.self)
    }
    key += "://".utf8
    let start = colon + 3
    let authorityEnd =
      bytes[start..<end].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? end
    let authority = userAndHost(bytes[start..<authorityEnd], defaultPort(scheme))
    key += authority.user + authority.host
    // RFC 9110 4.2.3: an empty path is the same as `/`.
    if authorityEnd == end || bytes[authorityEnd] == UInt8(ascii: "?") { key.append(UInt8(ascii: "/")) }
    key += bytes[authorityEnd..<end]
    if let host {
      let other = userAndHost(Array(host.utf8)[...], defaultPort(scheme)).host
      if other != authority.host { key += [UInt8(ascii: "#")] + other }
    }
    return String(decoding: key, as: UTF8.self)
  }

  /// The user with an `@`, and the host with its port if that is not the scheme's own.
  private static func userAndHost(
    _ authority: ArraySlice<UInt8>, _ defaultPort: String?
  ) -> (user: [UInt8], host: [UInt8]) {
    var (user, host) = ([UInt8](), authority)
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
      user = authority[..<at].prefix { $0 != ASCII.colon } + [UInt8(ascii: "@")]
      host = authority[(at + 1)...]
    }
    // The colons of an IPv6 address stand before its bracket.
    if let colon = host.lastIndex(of: ASCII.colon), !host[colon...].contains(UInt8(ascii: "]")) {
      let port = host[(colon + 1)...]
      if port.isEmpty || defaultPort.map({ port.elementsEqual($0.utf8) }) == true { host = host[..<colon] }
    }
    return (user, host.map(lowered))
  }

  private static func defaultPort(_ scheme: [UInt8]) -> String? {
    if scheme.elementsEqual("http".utf8) { return "80" }
    return scheme.elementsEqual("https".utf8) ? "443" : nil
  }

  private static func lowered(_ byte: UInt8) -> UInt8 {
    byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
  }

  /// Scheme, host and port of a key.
  public static func origin(of key: String) -> Substring {
    let uri = key.firstIndex(of: " ").map { key[key.index(after: $0)...] } ?? key[...]
    guard let colon = uri.range(of: "://") else { return uri }
    let authority = uri[colon.upperBound...].prefix { $0 != "/" && $0 != "?" }
    return uri[..<authority.endIndex]
  }
}

extension Substring {
  /// The first place where `other` stands.
  fileprivate func range(of other: String) -> Range<Index>? {
    var index = startIndex
    while index < endIndex {
      if self[index...].hasPrefix(other) { return index..<self.index(index, offsetBy: other.count) }
      index = self.index(after: index)
    }
    return nil
  }
}
