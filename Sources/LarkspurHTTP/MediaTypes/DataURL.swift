import LarkspurBytes

/// The content of a `data:` URL (RFC 2397), read as browsers do, by the "data: URL processor" of the WHATWG Fetch
/// Standard.
public struct DataURL: Hashable, Sendable {
  /// The media type, or `text/plain;charset=US-ASCII` if the URL names no readable type.
  public let mediaType: MediaType
  /// Whether the URL names a type that can be read.
  public let isTypeNamed: Bool
  public let body: [UInt8]

  private static let unnamed = MediaType(
    type: "text", subtype: "plain", parameters: [.init(name: "charset", value: "US-ASCII")])

  /// Reads a URL. The fragment is not a part of the data.
  ///
  /// - Parameter text: The URL with its scheme.
  /// - Returns: The content, or `nil` if the scheme is not `data`, there is no comma, or the data is not valid base64.
  public init?(_ text: String) {
    let scheme = "data:"
    var rest = Array(text.utf8)[...]
    guard HostName.normal(String(decoding: rest.prefix(scheme.utf8.count), as: UTF8.self)) == scheme else { return nil }
    rest = rest.dropFirst(scheme.utf8.count).prefix { $0 != UInt8(ascii: "#") }
    guard let comma = rest.firstIndex(of: ASCII.comma) else { return nil }
    var name = Array(String(decoding: rest[..<comma], as: UTF8.self).unicodeScalars)[...]
    name = Text.trim(name)
    let decoded = PercentCoding.decoded(rest[(comma + 1)...])
    if let plainName = Self.withoutBase64(name) {
      guard let bytes = Base64.decodeForgiving(decoded) else { return nil }
      body = bytes
      name = plainName
    } else {
      body = decoded
    }
    let typed = String(String.UnicodeScalarView(name))
    let type = MediaType(parsing: typed.hasPrefix(";") ? "text/plain" + typed : typed)
    isTypeNamed = type != nil
    mediaType = type ?? Self.unnamed
  }

  /// Returns the text before `;base64`, with optional spaces after the semicolon, or `nil` if the text does not
  /// end that way.
  private static func withoutBase64(_ name: Text.Scalars) -> Text.Scalars? {
    guard Text.lowercased(name.suffix(6)) == "base64" else { return nil }
    var rest = name.dropLast(6)
    while rest.last == " " { rest.removeLast() }
    return rest.popLast() == ";" ? rest : nil
  }
}
