import LarkspurHTTP
import LarkspurIO

/// Addresses that hosts are given without asking anybody, as by curl's `--resolve`.
public struct HostOverrides: Sendable {
  private struct Key: Hashable {
    var host: String
    /// Nil: every port.
    var port: UInt16?
  }

  private var addresses: [Key: [SocketAddress]] = [:]

  public init() {}

  /// From now on `host`, a name or an IP address, has these addresses, for one port or for all of them. An entry for
  /// the port counts before one for all. The ports of the addresses do not count. Without addresses the host has none.
  public mutating func set(_ host: String, port: UInt16? = nil, to addresses: [SocketAddress]) {
    self.addresses[Key(host: Self.normal(host), port: port)] = addresses
  }

  /// Nil: there is no entry.
  func addresses(of host: String, port: UInt16) -> [SocketAddress]? {
    guard !addresses.isEmpty else { return nil }
    let host = Self.normal(host)
    let found = addresses[Key(host: host, port: port)] ?? addresses[Key(host: host, port: nil)]
    return found?.map { $0.with(port: port) }
  }

  /// The letters' case does not count, nor does the dot that may end a name.
  private static func normal(_ host: String) -> String {
    let host = HostName.normal(host)
    return host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
  }
}
