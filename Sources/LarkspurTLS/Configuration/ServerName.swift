import LarkspurBytes

/// The DNS name or IP address for which a server's certificate must be issued.
public struct ServerName: Hashable, Sendable {
  /// The name in lower case without a final dot, or `nil` for an address.
  let name: String?
  /// The address as text without a zone, or `nil` for a name.
  let address: String?
  /// The zone of the address, which no certificate contains. An address on another link is another server.
  private let zone: String

  /// Parses a host as it stands in a URL, without brackets.
  ///
  /// RFC 6125 6.4.1: names are compared without regard to case. A final dot marks a complete name in DNS and stands in
  /// no certificate; it is removed, as in curl and browsers. Internationalized names must be A-labels (`xn--...`). A
  /// name whose last label is a number is refused, as in the URL standard, because a resolver may take `127.1` or
  /// `0x7f000001` for an address.
  ///
  /// - Returns: The name, or `nil` if the host is neither an address nor a name.
  public init?(host: String) {
    let percent = host.utf8.firstIndex(of: UInt8(ascii: "%")) ?? host.endIndex
    let text = String(host[..<percent])
    if let canonical = AddressText.canonical(text) {
      // Only IPv6 addresses have zones.
      guard percent == host.endIndex || canonical.utf8.contains(UInt8(ascii: ":")) else { return nil }
      name = nil
      address = canonical
      zone = String(host[percent...])
      return
    }
    var bytes = Array(host.utf8)
    if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
    // RFC 1035 2.3.4.
    guard 1...253 ~= bytes.count else { return nil }
    let labels = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    // No label may be empty: OpenSSL treats a leading dot as "any name below".
    guard labels.allSatisfy({ 1...63 ~= $0.count && $0.allSatisfy(Self.isNameByte) }), let last = labels.last,
      !Self.isNumber(last)
    else { return nil }
    name = String(decoding: bytes.map(\.asciiLowercased), as: UTF8.self)
    address = nil
    zone = ""
  }

  /// Whether the byte is a letter, a digit, `-`, or `_`, which some names in use contain.
  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Whether the label is a decimal number, or a hexadecimal one that begins with `0x`.
  private static func isNumber(_ label: ArraySlice<UInt8>) -> Bool {
    let isDigit = { (byte: UInt8) in UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
    if label.allSatisfy(isDigit) { return true }
    guard label.count >= 2, label.first == UInt8(ascii: "0"), label[label.startIndex + 1] | 0x20 == UInt8(ascii: "x")
    else { return false }
    return label.dropFirst(2).allSatisfy { isDigit($0) || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0 | 0x20 }
  }

  public var text: String { name ?? address ?? "" }
}
