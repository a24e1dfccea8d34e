import LarkspurBytes

/// The key under which responses are stored: the URI in a normal form, and the method (RFC 9111 2).
///
/// GET and HEAD share their keys, because a stored GET answers both. The key contains no fragment, which is not a part
/// of the request, and no password, which would not be safe there. The key contains the user's name, because two users
/// may get two responses.
public enum CacheKey {
  /// Makes the key of a request.
  ///
  /// - Parameter host: The value of `Host`, if the program has set one, which then names the target (RFC 9110 7.1). A
  ///   value that differs from the URI's host takes the place of the fragment. In the place of the authority, one
  ///   server could answer for another.
  /// - Returns: The key, or `nil` if the URI is not absolute.
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
    let scheme = bytes[..<colon].map(\.asciiLowercased)
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
    // RFC 9110 4.2.3: an empty path is equivalent to `/`.
    if authorityEnd == end || bytes[authorityEnd] == UInt8(ascii: "?") { key.append(UInt8(ascii: "/")) }
    key += bytes[authorityEnd..<end]
    if let host {
      let other = userAndHost(Array(host.utf8)[...], defaultPort(scheme)).host
      if other != authority.host { key += [UInt8(ascii: "#")] + other }
    }
    return String(decoding: key, as: UTF8.self)
  }

  /// Returns the user's name followed by `@`, and the host, with its port unless that is the default of the scheme.
  private static func userAndHost(
    _ authority: ArraySlice<UInt8>, _ defaultPort: String?
  ) -> (user: [UInt8], host: [UInt8]) {
    var (user, host) = ([UInt8](), authority)
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
      user = authority[..<at].prefix { $0 != ASCII.colon } + [UInt8(ascii: "@")]
      host = authority[(at + 1)...]
    }
    // The colons of an IPv6 address are inside the brackets.
    if let colon = host.lastIndex(of: ASCII.colon), !host[colon...].contains(UInt8(ascii: "]")) {
      let port = host[(colon + 1)...]
      if port.isEmpty || defaultPort.map({ port.elementsEqual($0.utf8) }) == true { host = host[..<colon] }
    }
    return (user, host.map(\.asciiLowercased))
  }

  private static func defaultPort(_ scheme: [UInt8]) -> String? {
    if scheme.elementsEqual("http".utf8) { return "80" }
    return scheme.elementsEqual("https".utf8) ? "443" : nil
  }

  /// Returns scheme, user, host and port of a key, or the whole URI if it has no authority.
  public static func origin(of key: String) -> Substring {
    let bytes = key.utf8
    let start = bytes.firstIndex(of: ASCII.space).map { bytes.index(after: $0) } ?? bytes.startIndex
    let uri = bytes[start...]
    guard let colon = uri.firstIndex(of: ASCII.colon), uri[colon...].starts(with: "://".utf8) else {
      return Substring(uri)
    }
    let authority = uri[colon...].dropFirst(3)
    let end = authority.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? uri.endIndex
    return Substring(uri[..<end])
  }
}
