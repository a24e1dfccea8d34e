/// An IP address and a port, in host byte order.
package enum SocketAddress: Hashable, Sendable {
  case ipv4(UInt32, port: UInt16)
  /// `scope` is the interface index of a link-local address, or 0.
  case ipv6(high: UInt64, low: UInt64, scope: UInt32, port: UInt16)

  package static func loopback(port: UInt16) -> SocketAddress { .ipv4(0x7f00_0001, port: port) }

  package var port: UInt16 {
    switch self {
    case .ipv4(_, let port), .ipv6(_, _, _, let port): port
    }
  }

  package func with(port: UInt16) -> SocketAddress {
    switch self {
    case .ipv4(let address, _): .ipv4(address, port: port)
    case .ipv6(let high, let low, let scope, _): .ipv6(high: high, low: low, scope: scope, port: port)
    }
  }
}

extension SocketAddress: CustomStringConvertible {
  /// `127.0.0.1:80` or `[::1]:80`.
  package var description: String {
    switch self {
    case .ipv4(let address, let port):
      [24, 16, 8, 0].map { String(address >> UInt32($0) & 0xff) }.joined(separator: ".") + ":\(port)"
    case .ipv6(let high, let low, let scope, let port):
      "[\(Self.text(high, low))\(scope == 0 ? "" : "%\(scope)")]:\(port)"
    }
  }

  /// RFC 5952: lower case, no leading zeros, the longest run of zero groups as `::`.
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
