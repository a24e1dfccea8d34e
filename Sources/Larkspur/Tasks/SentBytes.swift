import Synchronization

/// What a delegate has not been told yet of a body's way out. There is one call at most on its way to a delegate: one that
/// is slower than the network hears of more bytes at a time, and not of ever older ones.
final class SentBytes: Sendable {
  private let untold = Mutex<(from: Int64, to: Int64)?>(nil)

  /// Whether a call has to be made. Otherwise the one that is on its way says it as well.
  func add(from before: Int64, to total: Int64) -> Bool {
    untold.withLock { untold in
      defer { untold = (untold?.from ?? before, total) }
      return untold == nil
    }
  }

  /// What the call says.
  func take() -> (from: Int64, to: Int64) {
    untold.withLock { untold in
      defer { untold = nil }
      return untold ?? (0, 0)
    }
  }
}
