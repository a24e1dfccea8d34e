/// An IP address that stands for a host. An IPv6 address may have a zone, which names the link to reach the host by
/// (RFC 4007, section 11).
public struct HostAddress: Hashable, Sendable {
  public let address: IPAddress
  /// The text of the address as written, without the zone.
  public let literal: String
  /// The name or the number of a network interface of this machine, or `nil`. The zone is never sent to a peer (RFC
  /// 6874, section 4).
  public let zone: String?

  /// Reads `192.0.2.1`, `fe80::1`, `fe80::1%eth0` or, in the form of URLs, `fe80::1%25eth0` (RFC 6874, section 2),
  /// without brackets.
  ///
  /// Fails if the text is no address, if an IPv4 address has a zone, or if the zone is empty or holds anything but
  /// ASCII letters, digits and `-._~`.
  public init?(_ text: String) {
    let percent = text.utf8.firstIndex(of: UInt8(ascii: "%")) ?? text.endIndex
    guard let address = IPAddress(text[..<percent]) else { return nil }
    self.address = address
    literal = String(text[..<percent])
    guard percent < text.endIndex else {
      zone = nil
      return
    }
    guard case .ipv6 = address else { return nil }
    var rest = Array(text.utf8[percent...].dropFirst())[...]
    // `%25` alone means the interface with the number 25.
    if rest.count > 2, rest.starts(with: "25".utf8) { rest = rest.dropFirst(2) }
    guard !rest.isEmpty, rest.allSatisfy(Self.isZoneByte) else { return nil }
    zone = String(decoding: rest, as: UTF8.self)
  }

  public var isIPv6: Bool { if case .ipv6 = address { true } else { false } }

  /// The form for resolvers: `fe80::1%eth0`.
  public var host: String { zone.map { "\(literal)%\($0)" } ?? literal }

  /// The form of an IPv6 address in a URL: `[fe80::1%25eth0]`.
  public var bracketed: String { zone.map { "[\(literal)%25\($0)]" } ?? "[\(literal)]" }

  private static func isZoneByte(_ byte: UInt8) -> Bool {
    ASCII.isLetterOrDigit(byte) || "-._~".utf8.contains(byte)
  }
}
