/// Converts text in which a peer names a URL, such as the value of a `Location` field, into a reference of the
/// grammar (RFC 3986, section 4.1).
///
/// Servers also send spaces, brackets, raw UTF-8 and backslashes. Browsers follow such text by the rules of the WHATWG
/// URL Standard; this type follows those rules as far as they concern the text.
public enum LocationValue {
  /// Converts the bytes of a field's value into a reference.
  ///
  /// - White space and control characters are removed from both ends, and tabs and line breaks everywhere.
  /// - `\` counts as `/` before the query, unless the reference has a scheme other than `http` and `https`. Two
  ///   programs that disagree on this would disagree about the host of the URL.
  /// - Each byte that the grammar does not allow at its place is percent-encoded, and so is a `%` without two
  ///   hexadecimal digits. Text that is percent-encoded already stays as it is, byte for byte.
  /// - An IPv6 address keeps its brackets. The `%` before its zone becomes `%25` (RFC 6874, section 2).
  /// - A host's name in UTF-8 stays as it is: such a name is encoded differently. No other part of the result contains
  ///   bytes other than ASCII.
  ///
  /// - Returns: The reference, or `nil` if nothing is left of the bytes. Browsers do not follow an empty field.
  public static func reference(_ bytes: [UInt8]) -> String? {
    let isEnd = { (byte: UInt8) in byte <= 0x20 }
    var rest = bytes[...].drop(while: isEnd)
    while let last = rest.last, isEnd(last) { rest.removeLast() }
    let kept = rest.filter { $0 != ASCII.tab && $0 != ASCII.cr && $0 != ASCII.lf }
    guard !kept.isEmpty else { return nil }
    let end = kept.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? kept.endIndex
    var start = kept[..<end]
    let tail = kept[end...]
    let scheme = scheme(of: start)
    let isWeb = scheme.map { ["http", "https"].contains(HostName.normal($0)) } ?? true
    if isWeb { start = start.map { $0 == UInt8(ascii: "\\") ? ASCII.slash : $0 }[...] }

    var result: [UInt8] = []
    result.reserveCapacity(kept.count)
    if let scheme {
      result += start.prefix(scheme.utf8.count + 1)
      start = start.dropFirst(scheme.utf8.count + 1)
    }
    if start.starts(with: "//".utf8) {
      let authority = start.dropFirst(2).prefix { $0 != ASCII.slash }
      result += "//".utf8
      encodeAuthority(authority, into: &result)
      start = start[authority.endIndex...]
    }
    PercentCoding.encode(start, into: &result, where: mustEncode)
    var isInFragment = false
    PercentCoding.encode(tail, into: &result) { byte in
      guard byte == UInt8(ascii: "#") else { return mustEncode(byte) }
      defer { isInFragment = true }
      return isInFragment
    }
    return String(decoding: result, as: UTF8.self)
  }

  public static func reference(_ text: String) -> String? { reference(Array(text.utf8)) }

  /// Returns the absolute URL that the bytes name if `base` is the URL of the response, or `nil` if they are empty.
  ///
  /// - Parameter inheritsFragment: Whether a reference without a fragment gets the fragment of `base`, as in a
  ///   redirection (RFC 9110, section 10.2.2).
  public static func target(_ bytes: [UInt8], from base: String, inheritsFragment: Bool = true) -> String? {
    reference(bytes).map { URLResolution.resolve($0, against: base, inheritsFragment: inheritsFragment) }
  }

  /// Percent-encodes the bytes of a reference that are not ASCII, which stand in a host's name only (RFC 3986, section
  /// 3.2.2).
  public static func ascii(_ reference: String) -> String {
    var result: [UInt8] = []
    PercentCoding.encode(reference.utf8, into: &result) { $0 >= 0x80 }
    return String(decoding: result, as: UTF8.self)
  }

  private static func scheme(of bytes: ArraySlice<UInt8>) -> String? {
    URLResolution.Parts(String(decoding: bytes.prefix { $0 < 0x80 }, as: UTF8.self)).scheme.map(String.init)
  }

  /// Appends `[userinfo@]host[:port]` (RFC 3986, section 3.2).
  ///
  /// A bracket or a colon that belongs to no address and no port is percent-encoded. No host has such a name: the URL
  /// can be shown and refused, and its load fails.
  private static func encodeAuthority(_ bytes: ArraySlice<UInt8>, into result: inout [UInt8]) {
    var host = bytes
    if let at = bytes.lastIndex(of: UInt8(ascii: "@")) {
      PercentCoding.encode(bytes[..<at], into: &result) { mustEncode($0) || $0 == UInt8(ascii: "@") }
      result.append(UInt8(ascii: "@"))
      host = bytes[(at + 1)...]
    }
    if host.first == UInt8(ascii: "["), let bracket = host.firstIndex(of: UInt8(ascii: "]")),
      isPort(host[(bracket + 1)...]),
      let address = HostAddress(String(decoding: host[..<bracket].dropFirst(), as: UTF8.self)), address.isIPv6
    {
      result += address.bracketed.utf8
      result += host[(bracket + 1)...]
      return
    }
    var port = host.suffix(0)
    if let colon = host.firstIndex(of: ASCII.colon), isPort(host[colon...]) {
      port = host[colon...]
      host = host[..<colon]
    }
    // A host's name contains valid UTF-8 only, and does not mix raw UTF-8 with percent-encoding.
    let isName = !host.contains(UInt8(ascii: "%")) && String(validating: host, as: UTF8.self) != nil
    PercentCoding.encode(host, into: &result) {
      $0 == ASCII.colon || mustEncode($0) && !(isName && $0 >= 0x80)
    }
    result += port
  }

  /// Whether the bytes are empty, or a colon with digits or nothing behind it (RFC 3986, section 3.2.3).
  private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.isEmpty || bytes.first == ASCII.colon && bytes.dropFirst().allSatisfy(ASCII.isDigit)
  }

  /// Whether the grammar does not allow this byte in a path, a query, a fragment, user information or a name (RFC 3986,
  /// appendix A). Brackets stand around addresses only.
  private static func mustEncode(_ byte: UInt8) -> Bool {
    switch byte {
    case 0...0x20, 0x7f..., ASCII.quote, UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "["), UInt8(ascii: "\\"),
      UInt8(ascii: "]"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
      true
    default: false
    }
  }
}
