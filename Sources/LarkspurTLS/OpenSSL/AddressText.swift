import CLarkspurOpenSSL

enum AddressText {
  /// An IPv4 or IPv6 address in its one canonical form. Nil: the text is none.
  static func canonical(_ text: String) -> String? {
    guard !text.utf8.contains(0) else { return nil }
    // Safe: the text is lent for the call.
    let canonical = unsafe Certificate.text(larkspur_canonical_address(text))
    return canonical.isEmpty ? nil : canonical
  }
}
