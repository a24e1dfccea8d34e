/// A content coding that can be undone (RFC 9110, section 8.4.1).
package enum ContentCoding: Hashable, Sendable, CaseIterable {
  /// `gzip`, and its alias `x-gzip` (section 8.4.1.3).
  case gzip
  /// `deflate`: the zlib format by the standard, a raw deflate stream from some servers. The first two bytes
  /// distinguish the two formats.
  case deflate

  /// The codings that a request offers: the field value of `Accept-Encoding`.
  package static let offer = "gzip, deflate"
}

/// The codings that the `Content-Encoding` fields of a response name.
package struct ContentCodings: Hashable, Sendable {
  /// The codings in the order in which they were applied: the last one is undone first.
  package private(set) var layers: [ContentCoding] = []

  /// Whether an unknown coding is named. Then `layers` is empty and the body is delivered as it came, as browsers do.
  /// Undoing only the codings around an unknown one would give bytes that no field describes.
  package private(set) var hasUnknown = false

  /// Reads the field values of a response, in their order. Several lines mean the list that they form when joined with
  /// commas.
  package init(
    fieldValues: some Sequence<String>, limits: CodingLimits = CodingLimits()
  ) throws(CodingError) {
    for value in fieldValues {
      for element in value[...].utf8.split(separator: UInt8(ascii: ",")) { try append(Substring(element).utf8, limits) }
    }
    if hasUnknown { layers = [] }
  }

  private mutating func append(
    _ element: Substring.UTF8View, _ limits: CodingLimits
  ) throws(CodingError) {
    guard let first = element.firstIndex(where: { !Self.isSpace($0) }),
      let last = element.lastIndex(where: { !Self.isSpace($0) })
    else { return }
    let name = element[first...last]
    if Self.equalsIgnoringCase(name, "gzip") || Self.equalsIgnoringCase(name, "x-gzip") {
      layers.append(.gzip)
    } else if Self.equalsIgnoringCase(name, "deflate") {
      layers.append(.deflate)
    } else if !Self.equalsIgnoringCase(name, "identity") {
      // `identity` means no coding. A response should not name it, but some do (RFC 9110, section 12.5.3).
      hasUnknown = true
    }
    if layers.count > limits.layersMax { throw .peerSentTooManyLayers }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  /// Names of codings are case-insensitive. This comparison is written here because this module imports no other module
  /// of Larkspur.
  private static func equalsIgnoringCase(_ name: Substring.UTF8View, _ token: String) -> Bool {
    name.elementsEqual(token.utf8) { byte, other in
      (UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte) == other
    }
  }

  /// Whether there is no coding to undo.
  package var isEmpty: Bool { layers.isEmpty }
}
