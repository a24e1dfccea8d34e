import Foundation

extension TimeInterval {
  /// The interval as a timeout, or `nil` if it is 0 or less: programs set 0 for no timeout, and Darwin does not fail
  /// their tasks for that.
  var asTimeout: TimeInterval? { self <= 0 ? nil : self }
}

extension Duration {
  /// Creates a duration from an interval in seconds.
  ///
  /// - Returns: `nil` if the interval never ends in practice: it is infinite, not a number, or at least 1e10 seconds.
  init?(interval: TimeInterval) {
    guard interval.isFinite, interval < 1e10 else { return nil }
    self = .seconds(max(interval, 0))
  }
}
