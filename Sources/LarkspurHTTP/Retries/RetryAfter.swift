/// Reads the field `Retry-After` (RFC 9110 10.2.3).
package enum RetryAfter {
  /// Returns the delay in seconds that the field asks for, or `nil` if it has neither a number nor a date. A date that
  /// has passed is a delay of 0.
  ///
  /// - Parameter now: The current time in seconds since 1970.
  package static func seconds(_ text: String, now: Double) -> Double? {
    let bytes = Array(text.utf8)
    if !bytes.isEmpty, bytes.allSatisfy(ASCII.isDigit) { return Double(text) }
    return HTTPDate.parse(text, now: now).map { max($0 - now, 0) }
  }
}
