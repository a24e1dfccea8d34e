import Foundation

extension Duration {
  /// An interval in seconds. Nil: it never ends, for it is infinite, no number, or longer than anybody waits. So it is with
  /// zero, as programs that read endless streams say it.
  init?(interval: TimeInterval) {
    guard interval > 0, interval < 1e10 else { return nil }
    self = .seconds(interval)
  }
}
