import Foundation

extension Duration {
  /// An interval in seconds. Nil: it never ends, for it is infinite, no number, or longer than anybody waits.
  init?(interval: TimeInterval) {
    guard interval.isFinite, interval < 1e10 else { return nil }
    self = .seconds(max(interval, 0))
  }
}
