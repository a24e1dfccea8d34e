import LarkspurHTTP
import LarkspurIO

/// Fixed addresses of hosts, used without a look-up, like curl's `--resolve`.
public struct HostOverrides: Sendable {
  private struct Key: Hashable {
    var host: String
    /// The port, or `nil` for every port.
    var port: UInt16?
  }

  private var addresses: [Key: [SocketAddress]] = [:]

  public init() {}

  /// Sets the addresses of `host`, a name or an IP address, for one port or for all. An entry for the port takes
  /// precedence over one for all ports. The ports of `addresses` are ignored. With no addresses, looking up the host
  /// fails.
  public mutating func set(_ host: String, port: UInt16? = nil, to addresses: [SocketAddress]) {
    self.addresses[Key(host: Self.normal(host), port: port)] = addresses
  }

  /// Returns the addresses, or `nil` if there is no entry.
  func addresses(of host: String, port: UInt16) -> [SocketAddress]? {
    guard !addresses.isEmpty else { return nil }
    let host = Self.normal(host)
    let found = addresses[Key(host: host, port: port)] ?? addresses[Key(host: host, port: nil)]
    return found?.map { $0.with(port: port) }
  }

  /// The host's name in lower case and without the dot that may end it.
  private static func normal(_ host: String) -> String {
    let host = HostName.normal(host)
    return host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
  }
}
