import Synchronization

/// What a delegate has not been told yet of a body's way out. There is one call at most on its way to a delegate: one that
/// is slower than the network hears of more bytes at a time, and not of ever older ones.
final class SentBytes: Sendable {
  private struct State {
    /// More than one where the body has begun again.
    var untold: [(from: Int64, to: Int64)] = []
    /// On a concurrent queue a second call could overtake the first.
    var isTelling = false
  }

  private let state = Mutex(State())

  /// Whether a call has to be made. Otherwise the one that is on its way says it as well.
  func add(from before: Int64, to total: Int64) -> Bool {
    state.withLock { state in
      if let last = state.untold.last, last.to == before {
        state.untold[state.untold.count - 1].to = total
      } else {
        state.untold.append((before, total))
      }
      defer { state.isTelling = true }
      return !state.isTelling
    }
  }

  /// The call was dropped on its way: what it had to say is the next one's.
  func callIsLost() { state.withLock { $0.isTelling = false } }

  /// What is to be said next. Nil: all has been said, and the call is over.
  func take() -> (from: Int64, to: Int64)? {
    state.withLock { state in
      guard state.untold.isEmpty else { return state.untold.removeFirst() }
      state.isTelling = false
      return nil
    }
  }
}
