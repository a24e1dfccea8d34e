/// The delay that failures in a row lead to.
package enum BackOff {
  /// Returns the delay in seconds: doubled with each failure up to a limit, and random in part, so that the clients of a
  /// server that restarts do not return at once.
  ///
  /// - Parameters:
  ///   - failures: The number of failures in a row. Values below 1 count as 1.
  ///   - first: The longest delay after the first failure, in seconds.
  ///   - longest: The longest delay of all, in seconds.
  ///   - fixedShare: The share of the delay that is not random, from 0 to 1.
  ///   - fraction: A random number from 0 to 1.
  package static func delay(
    failures: Int, first: Double, longest: Double, fixedShare: Double, fraction: Double
  ) -> Double {
    let doublings = Double(UInt64(1) << UInt64(min(max(failures, 1) - 1, 40)))
    let whole = min(max(first, 0) * doublings, max(longest, 0))
    let share = fraction.isNaN ? 0 : min(max(fraction, 0), 1)
    return whole * (fixedShare + (1 - fixedShare) * share)
  }
}
