/// An IP address as a host is named by it. An IPv6 address may have a zone: the link that it is reached by (RFC 4007,
/// section 11).
public struct HostAddress: Hashable, Sendable {
  public let address: IPAddress
  /// The address as it was written, without the zone.
  public let literal: String
  /// Name or number of a network interface of this machine. A peer never gets it (RFC 6874, section 4).
  public let zone: String?

  /// Reads `192.0.2.1`, `fe80::1`, `fe80::1%eth0` or, as URLs have it, `fe80::1%25eth0` (RFC 6874, section 2). Brackets are
  /// not read.
  ///
  /// Returns `nil` if the text is no address, or if it has a zone that is empty or holds anything but letters, digits and
  /// `-._~`.
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
    // `%25` alone is the interface with the number 25.
    if rest.count > 2, rest.starts(with: "25".utf8) { rest = rest.dropFirst(2) }
    guard !rest.isEmpty, rest.allSatisfy(Self.isZoneByte) else { return nil }
    zone = String(decoding: rest, as: UTF8.self)
  }

  public var isIPv6: Bool { if case .ipv6 = address { true } else { false } }

  /// `fe80::1%eth0`, as resolvers take it.
  public var host: String { zone.map { "\(literal)%\($0)" } ?? literal }

  /// `[fe80::1%25eth0]`, as an IPv6 address stands in a URL.
  public var bracketed: String { zone.map { "[\(literal)%25\($0)]" } ?? "[\(literal)]" }

  private static func isZoneByte(_ byte: UInt8) -> Bool {
    ASCII.isLetterOrDigit(byte) || "-._~".utf8.contains(byte)
  }
}
