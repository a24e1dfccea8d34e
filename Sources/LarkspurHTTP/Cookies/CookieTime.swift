/// A point of wall clock time, for cookies.
///
/// Counts seconds since the first instant of 2001 in UTC, as a floating-point number. Foundation's dates do so, too,
/// so that a date leaves the jar exactly as it was put in. Arithmetic cannot overflow.
public struct CookieTime: Comparable, Hashable, Sendable {
  public let seconds: Double

  /// The first instant of 2001, in seconds since 1970.
  public static let unixOffset = 978_307_200.0

  public init(seconds: Double) {
    // Not-a-number has no place in an order.
    self.seconds = seconds.isNaN ? -.infinity : seconds
  }

  public init(secondsSince1970: Int64) {
    self.init(seconds: Double(secondsSince1970) - Self.unixOffset)
  }

  /// The earliest time: a cookie with this expiry has expired.
  public static let earliest = CookieTime(seconds: -.infinity)

  public func adding(seconds more: Double) -> CookieTime { CookieTime(seconds: seconds + more) }

  public static func < (one: CookieTime, other: CookieTime) -> Bool { one.seconds < other.seconds }
}
