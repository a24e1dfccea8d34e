/// Whom a certificate has to be for: a DNS name or an IP address.
package struct ServerName: Hashable, Sendable {
  /// In lower case, without the dot that may end it. Nil: the server is known by an address.
  let name: String?
  /// As text, without a zone. Nil: the server is known by a name.
  let address: String?

  /// Takes a host as it stands in a URL, without brackets. Nil: it is neither an address nor a name in ASCII
  /// (internationalised names have to come as A-labels, `xn--...`).
  ///
  /// RFC 6125 6.4.1: names are compared without regard to case. The dot at the end is DNS's mark of a complete name
  /// and stands in no certificate: as in curl and browsers it is taken off.
  package init?(host: String) {
    let text = host.utf8.firstIndex(of: UInt8(ascii: "%")).map { String(host[..<$0]) } ?? host
    if AddressText.isAddress(text) {
      name = nil
      address = text
      return
    }
    var bytes = Array(host.utf8)
    if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
    // RFC 1035 2.3.4. Anything but visible ASCII would be cut or misread on its way through C.
    guard 1...253 ~= bytes.count, bytes.allSatisfy({ 0x21...0x7e ~= $0 }) else { return nil }
    name = String(decoding: bytes.map { 0x41...0x5a ~= $0 ? $0 | 0x20 : $0 }, as: UTF8.self)
    address = nil
  }

  package var text: String { name ?? address ?? "" }
}
