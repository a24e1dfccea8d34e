@_implementationOnly import CLarkspurOpenSSL

enum AddressText {
  /// An IPv4 or IPv6 address in its one canonical form. Nil: the text is none.
  static func canonical(_ text: String) -> String? {
    var hasColon = false
    var last: UInt8 = 0
    for byte in text.utf8 {
      // It would end the text for what reads it.
      guard byte != 0 else { return nil }
      if byte == UInt8(ascii: ":") { hasColon = true }
      last = byte
    }
    // Safe: here and below, the text is lent for the call.
    if !hasColon {
      // Most hosts are names, and need not be read as a number. An IPv4 address that can be read is canonical.
      guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= last, unsafe larkspur_is_ipv4_address(text) else { return nil }
      return text
    }
    let canonical = unsafe Certificate.text(larkspur_canonical_ipv6_address(text))
    return canonical.isEmpty ? nil : canonical
  }
}
