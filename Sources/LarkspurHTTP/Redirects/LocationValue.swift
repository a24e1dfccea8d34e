/// The value of a `Location` field, made into a reference that the grammar knows (RFC 3986).
///
/// The field is to hold one; servers send spaces, raw UTF-8 and backslashes. Browsers follow these all the same, by the rules
/// of the WHATWG URL Standard: so does this, as far as it is about the text.
public enum LocationValue {
  /// The bytes of the field, as they came.
  ///
  /// - White space and control characters go from both ends, and tabs and ends of lines from everywhere.
  /// - `\` counts as `/` before the query, unless a scheme says that it is no web address. One program that takes it for a
  ///   part of the host's name and another that does not would disagree about whose host it is.
  /// - What may not stand there is percent-encoded byte by byte, and a `%` that begins nothing, too. What is encoded already
  ///   is left alone.
  /// - A host's name is left as it is, for it has a coding of its own.
  ///
  /// Nil: nothing is left. Browsers follow no empty field.
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
    if isWeb { start = start.map { $0 == UInt8(ascii: "\\") ? UInt8(ascii: "/") : $0 }[...] }

    var result: [UInt8] = []
    result.reserveCapacity(kept.count)
    if let scheme {
      result += start.prefix(scheme.utf8.count + 1)
      start = start.dropFirst(scheme.utf8.count + 1)
    }
    if start.starts(with: "//".utf8) {
      let host = start.dropFirst(2).prefix { $0 != UInt8(ascii: "/") }
      // Bytes that are no UTF-8 are in no host's name: they are encoded, and then refused.
      let isText = String(validating: host, as: UTF8.self) != nil
      result += "//".utf8
      PercentCoding.encode(host, into: &result) { mustEncode($0) && !(isText && $0 >= 0x80) }
      start = start[host.endIndex...]
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

  /// The absolute URL that a redirect leads to, with the fragment of the request's URL if it has none itself. Nil: none.
  public static func target(_ bytes: [UInt8], from base: String) -> String? {
    reference(bytes).map { URLResolution.resolve($0, against: base, inheritsFragment: true) }
  }

  private static func scheme(of bytes: ArraySlice<UInt8>) -> String? {
    URLResolution.Parts(String(decoding: bytes.prefix { $0 < 0x80 }, as: UTF8.self)).scheme.map(String.init)
  }

  /// All but what RFC 3986 has in its grammar. `[` and `]` stand in queries of old, and around addresses.
  private static func mustEncode(_ byte: UInt8) -> Bool {
    switch byte {
    case 0...0x20, 0x7f..., ASCII.quote, UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"), UInt8(ascii: "^"),
      UInt8(ascii: "`"), UInt8(ascii: "{"), UInt8(ascii: "|"), UInt8(ascii: "}"):
      true
    default: false
    }
  }
}
