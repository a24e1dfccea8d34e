import CLarkspurOpenSSL

enum AddressText {
  /// Whether `text` is an IPv4 or IPv6 address, by the rule that certificates' addresses are read by as well.
  static func isAddress(_ text: String) -> Bool {
    guard !text.utf8.contains(0) else { return false }
    // Safe: the text is lent for the call.
    return unsafe larkspur_is_address(text)
  }
}
