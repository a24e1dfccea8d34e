import Foundation

extension TimeInterval {
  /// A time that says something. Programs set 0 where they want none, and Darwin does not fail their tasks for it.
  var asTimeout: TimeInterval? { self <= 0 ? nil : self }
}

extension Duration {
  /// An interval in seconds. Nil: it never ends, for it is infinite, no number, or longer than anybody waits.
  init?(interval: TimeInterval) {
    guard interval.isFinite, interval < 1e10 else { return nil }
    self = .seconds(max(interval, 0))
  }
}
