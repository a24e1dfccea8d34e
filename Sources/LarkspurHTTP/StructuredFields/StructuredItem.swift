/// The value of an Item of a structured field, or of a member of a Dictionary (RFC 9651, section 3), without its
/// parameters.
package enum StructuredItem: Hashable, Sendable {
  /// At most 15 digits (section 3.3.1).
  case integer(Int)
  /// A number with at most three digits behind the point, in thousandths (section 3.3.2).
  case decimal(thousandths: Int)
  case string(String)
  case token(String)
  case byteSequence([UInt8])
  case boolean(Bool)
  /// Seconds since 1970 (section 3.3.7).
  case date(Int)
  case displayString(String)
  case innerList([StructuredItem])

  /// The largest Integer that a structured field can carry (section 3.3.1).
  package static let integerMax = 999_999_999_999_999

  /// Returns the field's text of a Boolean (section 4.1.9).
  package static func text(_ value: Bool) -> String { value ? "?1" : "?0" }
}
