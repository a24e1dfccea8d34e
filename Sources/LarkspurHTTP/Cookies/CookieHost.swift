/// A request's host in the form in which cookies compare it (RFC 6265bis 5.1.2): in lower case, its labels in their
/// ASCII form.
public struct CookieHost: Hashable, Sendable {
  /// The host's text without brackets. A trailing dot stays: `example.com.` is a different host.
  public let text: String
  /// Whether the host is an IP address, which has no domains above it. A name whose last label is a number counts as an
  /// address, as in URLs.
  public let isAddress: Bool

  /// Returns `nil` if the host is empty, or has characters that its ASCII form cannot have.
  public init?(_ host: some StringProtocol) {
    var host = host[...]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard !host.isEmpty, host.utf8.allSatisfy({ 0x21..<0x7f ~= $0 }) else { return nil }
    switch IPAddress(host) {
    case .ipv6(let high, let low):
      text = Self.ipv6(high, low)
      isAddress = true
    case .ipv4:
      text = String(host)
      isAddress = true
    case nil:
      text = HostName.normal(String(host))
      // `IPAddress` does not read an IPv6 address with a zone.
      isAddress = text.contains(":") || Self.endsInNumber(text)
    }
  }

  /// Whether the host is `domain`, or a subdomain of it (RFC 6265bis 5.1.3).
  public func matches(domain: String) -> Bool {
    guard text.utf8.count > domain.utf8.count else { return text == domain }
    return !isAddress && Self.isBelow(text, domain)
  }

  static func isBelow(_ name: String, _ domain: String) -> Bool {
    let extra = name.utf8.count - domain.utf8.count
    guard extra > 0 else { return false }
    let rest = name.utf8.dropFirst(extra - 1)
    return rest.first == UInt8(ascii: ".") && rest.dropFirst().elementsEqual(domain.utf8)
  }

  /// Whether the hosts are equal, or one is a subdomain of the other.
  static func isRelated(_ one: String, _ other: String) -> Bool {
    one == other || isBelow(one, other) || isBelow(other, one)
  }

  private static func endsInNumber(_ name: String) -> Bool {
    let labels = name.utf8.split(separator: UInt8(ascii: "."))
    return labels.last?.allSatisfy(ASCII.isDigit) ?? false
  }

  /// Returns the address in the form of RFC 5952: groups without leading zeros, the longest run of two or more zeros as
  /// `::`.
  private static func ipv6(_ high: UInt64, _ low: UInt64) -> String {
    let groups = [high, low].flatMap { half in [48, 32, 16, 0].map { UInt16(truncatingIfNeeded: half >> $0) } }
    var best = 0..<0
    var index = 0
    while index < 8 {
      let end = groups[index...].firstIndex { $0 != 0 } ?? 8
      if end - index > max(best.count, 1) { best = index..<end }
      index = max(end, index) + 1
    }
    let text = { (part: ArraySlice<UInt16>) in part.map { String($0, radix: 16) }.joined(separator: ":") }
    return best.isEmpty ? text(groups[...]) : text(groups[..<best.lowerBound]) + "::" + text(groups[best.upperBound...])
  }
}

/// The paths of cookies (RFC 6265bis 5.1.4).
public enum CookiePath {
  /// Returns the directory of a request's path: the path of a cookie without a `Path`.
  public static func defaultPath(of path: String) -> String {
    guard path.utf8.first == UInt8(ascii: "/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")),
      slash > path.startIndex
    else { return "/" }
    return String(path[..<slash])
  }

  /// Whether a request's path is a cookie's path, or below it.
  public static func matches(_ path: String, cookiePath: String) -> Bool {
    guard path.utf8.starts(with: cookiePath.utf8) else { return false }
    return path.utf8.count == cookiePath.utf8.count || cookiePath.utf8.last == UInt8(ascii: "/")
      || path.utf8.dropFirst(cookiePath.utf8.count).first == UInt8(ascii: "/")
  }
}
