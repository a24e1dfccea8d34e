/// The address of a socket: an IP address and a port in host byte order, or a path.
public enum SocketAddress: Hashable, Sendable, Codable {
  case ipv4(UInt32, port: UInt16)
  /// `scope` is the interface index of a link-local address, or 0.
  case ipv6(high: UInt64, low: UInt64, scope: UInt32, port: UInt16)
  /// A socket in the file system, or, if the path begins with a NUL, a name in Linux's abstract namespace.
  case unix(path: String)

  /// The longest path, or the longest abstract name without its first NUL, in bytes. `sun_path` has 108, one of them
  /// for a NUL (unix(7)).
  public static let unixPathBytesMax = 107

  public enum Family: Hashable, Sendable {
    case ipv4
    case ipv6
    case unix
  }

  public var family: Family {
    switch self {
    case .ipv4: .ipv4
    case .ipv6: .ipv6
    case .unix: .unix
    }
  }

  public static func loopback(port: UInt16) -> SocketAddress { .ipv4(0x7f00_0001, port: port) }

  /// The port, or 0 for a path.
  public var port: UInt16 {
    switch self {
    case .ipv4(_, let port), .ipv6(_, _, _, let port): port
    case .unix: 0
    }
  }

  public func with(port: UInt16) -> SocketAddress {
    switch self {
    case .ipv4(let address, _): .ipv4(address, port: port)
    case .ipv6(let high, let low, let scope, _): .ipv6(high: high, low: low, scope: scope, port: port)
    case .unix: self
    }
  }
}

extension SocketAddress: CustomStringConvertible {
  /// The address as `127.0.0.1:80`, `[::1]:80`, `unix:/run/a.socket`, or `unix:@name` in the abstract namespace.
  public var description: String {
    switch self {
    case .ipv4(let address, let port):
      [24, 16, 8, 0].map { String(address >> UInt32($0) & 0xff) }.joined(separator: ".") + ":\(port)"
    case .ipv6(let high, let low, let scope, let port):
      "[\(Self.text(high, low))\(scope == 0 ? "" : "%\(scope)")]:\(port)"
    case .unix(let path): path.utf8.first == 0 ? "unix:@\(path.dropFirst())" : "unix:\(path)"
    }
  }

  /// Returns an IPv6 address as in RFC 5952: lower case, no leading zeros, the longest run of zero groups as `::`.
  private static func text(_ high: UInt64, _ low: UInt64) -> String {
    let groups = [high, low].flatMap { half in [48, 32, 16, 0].map { UInt16(truncatingIfNeeded: half >> UInt64($0)) } }
    var longest = 0..<0
    var start = 0
    for index in 0...groups.count where index == groups.count || groups[index] != 0 {
      if index - start > longest.count { longest = start..<index }
      start = index + 1
    }
    let hex = groups.map { String($0, radix: 16) }
    guard longest.count > 1 else { return hex.joined(separator: ":") }
    return hex[..<longest.lowerBound].joined(separator: ":") + "::" + hex[longest.upperBound...].joined(separator: ":")
  }
}
