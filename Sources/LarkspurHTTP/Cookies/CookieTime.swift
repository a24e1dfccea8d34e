/// A point of time by the calendar, as cookies know it.
///
/// In seconds since the first instant of 2001 in UTC, as a floating-point number: Foundation's dates are the same, so
/// that a date comes out of the jar as it went in. Arithmetic cannot overflow.
public struct CookieTime: Comparable, Hashable, Sendable {
  public let seconds: Double

  /// The time of 2001 in seconds since 1970.
  public static let unixOffset = 978_307_200.0

  public init(seconds: Double) {
    // What is no number has no place in an order.
    self.seconds = seconds.isNaN ? -.infinity : seconds
  }

  public init(secondsSince1970: Int64) {
    self.init(seconds: Double(secondsSince1970) - Self.unixOffset)
  }

  /// Before everything: what expires then has expired.
  public static let earliest = CookieTime(seconds: -.infinity)

  public func adding(seconds more: Double) -> CookieTime { CookieTime(seconds: seconds + more) }

  public static func < (one: CookieTime, other: CookieTime) -> Bool { one.seconds < other.seconds }
}
