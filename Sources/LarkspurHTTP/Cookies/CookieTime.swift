/// A point of time by the calendar, as cookies know it.
///
/// In seconds since the first instant of 2001 in UTC, as a floating-point number: Foundation's dates are the same, so
/// that a date comes out of the jar as it went in. Arithmetic cannot overflow.
package struct CookieTime: Comparable, Hashable, Sendable {
  package let seconds: Double

  /// The time of 2001 in seconds since 1970.
  package static let unixOffset = 978_307_200.0

  package init(seconds: Double) {
    // What is no number has no place in an order.
    self.seconds = seconds.isNaN ? -.infinity : seconds
  }

  package init(secondsSince1970: Int64) {
    self.init(seconds: Double(secondsSince1970) - Self.unixOffset)
  }

  /// Before everything: what expires then has expired.
  package static let earliest = CookieTime(seconds: -.infinity)

  package func adding(seconds more: Double) -> CookieTime { CookieTime(seconds: seconds + more) }

  package static func < (one: CookieTime, other: CookieTime) -> Bool { one.seconds < other.seconds }
}
