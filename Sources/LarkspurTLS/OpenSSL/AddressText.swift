enum AddressText {
  /// Returns an IPv4 or IPv6 address in its canonical form, or `nil` if the text is not an address.
  static func canonical(_ text: String) -> String? {
    var hasColon = false
    var last: UInt8 = 0
    for byte in text.utf8 {
      // A NUL would end the text early for the C functions.
      guard byte != 0 else { return nil }
      if byte == UInt8(ascii: ":") { hasColon = true }
      last = byte
    }
    // Safe: here and below, the text is lent for the call.
    if !hasColon {
      // Performance: most hosts are names, and do not end with a digit. An IPv4 address that inet_pton accepts is
      // canonical.
      guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= last, unsafe larkspur_is_ipv4_address(text) else { return nil }
      return text
    }
    let canonical = unsafe Certificate.text(larkspur_canonical_ipv6_address(text))
    return canonical.isEmpty ? nil : canonical
  }
}
