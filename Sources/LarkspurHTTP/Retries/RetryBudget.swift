/// Limits repeated requests to a share of all requests, so that clients do not add to the load of a server that fails under
/// its load.
///
/// Each request pays in a share of a token, and each repetition takes out a whole one. A reserve lets a program that makes
/// few requests repeat them.
public struct RetryBudget: Hashable, Sendable {
  /// The part of a token that a request pays in: the repetitions for each request in the long run.
  public let share: Double
  /// The number of tokens at the beginning, and the highest number that is kept.
  public let reserve: Double
  /// The number of tokens that are left. A repetition needs one.
  public private(set) var tokens: Double

  /// - Parameters:
  ///   - share: From 0 to 1. Other values count as the nearest of these.
  ///   - reserve: At least 0.
  public init(share: Double = 0.2, reserve: Double = 10) {
    self.share = share.isNaN ? 0 : min(max(share, 0), 1)
    self.reserve = reserve.isNaN ? 0 : max(reserve, 0)
    tokens = self.reserve
  }

  /// Counts a request's first attempt.
  public mutating func requested() { tokens = min(tokens + share, max(reserve, 1)) }

  /// Takes a token for a repetition.
  ///
  /// - Returns: `false` if there is none: the request must not be repeated.
  public mutating func takeRepetition() -> Bool {
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }
}
