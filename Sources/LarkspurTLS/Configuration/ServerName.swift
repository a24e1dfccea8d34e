/// Whom a certificate has to be for: a DNS name or an IP address.
public struct ServerName: Hashable, Sendable {
  /// In lower case, without the dot that may end it. Nil: the server is known by an address.
  let name: String?
  /// As text, without a zone. Nil: the server is known by a name.
  let address: String?
  /// The zone of the address, which no certificate has: the same address on another link is another server.
  private let zone: String

  /// Takes a host as it stands in a URL, without brackets. Nil: it can be neither an address nor a name.
  ///
  /// RFC 6125 6.4.1: names are compared without regard to case. The dot at the end is DNS's mark of a complete name
  /// and stands in no certificate: as in curl and browsers it is taken off. Internationalised names have to come as
  /// A-labels (`xn--...`). A name that ends in a number is refused, as in the URL standard: the resolver may take
  /// `127.1` or `0x7f000001` for an address.
  public init?(host: String) {
    let percent = host.utf8.firstIndex(of: UInt8(ascii: "%")) ?? host.endIndex
    let text = String(host[..<percent])
    if let canonical = AddressText.canonical(text) {
      // Only IPv6 has zones.
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
    // No empty label: OpenSSL takes a dot in front for "any name below".
    guard labels.allSatisfy({ 1...63 ~= $0.count && $0.allSatisfy(Self.isNameByte) }), let last = labels.last,
      !Self.isNumber(last)
    else { return nil }
    name = String(decoding: bytes.map { 0x41...0x5a ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
    address = nil
    zone = ""
  }

  /// Letters, digits and `-`, and the `_` that names in use have.
  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Decimal, or hexadecimal with `0x` before it.
  private static func isNumber(_ label: ArraySlice<UInt8>) -> Bool {
    let isDigit = { (byte: UInt8) in UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte }
    if label.allSatisfy(isDigit) { return true }
    guard label.count >= 2, label.first == UInt8(ascii: "0"), label[label.startIndex + 1] | 0x20 == UInt8(ascii: "x")
    else { return false }
    return label.dropFirst(2).allSatisfy { isDigit($0) || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0 | 0x20 }
  }

  public var text: String { name ?? address ?? "" }
}
