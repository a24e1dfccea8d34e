extension SocketAddress {
  /// A zone that no network interface has.
  public struct UnknownZone: Error, Hashable, Sendable {
    public let zone: String
  }

  /// Parses an IP address with an optional zone (RFC 4007 11): `192.0.2.1`, `fe80::1%eth0`, `fe80::1%2`.
  ///
  /// - Returns: The address, or `nil` if the text is not an address. Only link-local IPv6 addresses may have a zone:
  ///   `::1%eth0` is no address here.
  /// - Throws: `UnknownZone` if no network interface has the zone's name.
  public init?(literal text: String, port: UInt16, kernel: any Kernel) throws(UnknownZone) {
    guard let percent = text.utf8.firstIndex(of: UInt8(ascii: "%")) else {
      self.init(literal: text, port: port)
      return
    }
    // fe80::/10.
    guard case .ipv6(let high, let low, _, _)? = SocketAddress(literal: String(text[..<percent]), port: port),
      high >> 54 == 0xfe80 >> 6
    else { return nil }
    let zone = String(text[text.utf8.index(after: percent)...])
    guard let scope = NetworkInterface.index(ofZone: zone, kernel: kernel) else { throw UnknownZone(zone: zone) }
    self = .ipv6(high: high, low: low, scope: scope, port: port)
  }
}
