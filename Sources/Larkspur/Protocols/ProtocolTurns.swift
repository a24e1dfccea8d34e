import Dispatch
import Synchronization

/// The order in which a session starts programs' protocols: that of `resume` of their tasks.
///
/// A start waits until each earlier turn is over: its protocol has returned from `startLoading()`, or there is none.
/// Class methods and `startLoading()` may block, so the order is kept for as long as they do not: if a turn lasts
/// `patience` while others wait, all that wait start at once. For any thread.
final class ProtocolTurns: Sendable {
  typealias Start = @Sendable () -> Void

  private struct State {
    /// The number of the next turn.
    var next = 0
    /// The number of the earliest turn that counts and is not over. Earlier ones have no effect.
    var first = 0
    /// The turns after `first` that are over.
    var over: Set<Int> = []
    /// The starts that wait, by the numbers of their turns.
    var waiting: [Int: Start] = [:]
    /// Whether a timer runs, which looks whether `first` advances.
    var isTimed = false
  }

  private let state = Mutex(State())
  private let patience: DispatchTimeInterval

  /// - Parameter patience: How long a turn may delay later ones.
  init(patience: DispatchTimeInterval = .milliseconds(20)) { self.patience = patience }

  /// Takes the next turn. Call `end` in each case.
  func take() -> Int {
    state.withLock { state in
      defer { state.next += 1 }
      return state.next
    }
  }

  /// Calls `start` when the earlier turns are over, on the calling thread or on that of the call of `end`.
  func start(_ turn: Int, _ start: @escaping Start) {
    let (isFirst, watched) = state.withLock { state -> (Bool, Int?) in
      guard turn > state.first, !state.over.contains(turn) else { return (true, nil) }
      state.waiting[turn] = start
      defer { state.isTimed = true }
      return (false, state.isTimed ? nil : state.first)
    }
    if isFirst { start() }
    if let watched { watch(watched) }
  }

  /// Ends a turn, and calls the start of the next one. The start of this turn is dropped if it still waits, and no longer
  /// has to wait if it comes later. Further calls have no effect.
  func end(_ turn: Int) {
    let next = state.withLock { state -> Start? in
      guard turn >= state.first else { return nil }
      state.waiting[turn] = nil
      state.over.insert(turn)
      while state.over.remove(state.first) != nil { state.first += 1 }
      return state.waiting.removeValue(forKey: state.first)
    }
    next?()
  }

  /// Ends all turns, and calls the starts that wait, in their order.
  func endAll() {
    let starts = state.withLock { state -> [Start] in
      defer { state.waiting = [:] }
      (state.first, state.over) = (state.next, [])
      return state.waiting.sorted { $0.key < $1.key }.map(\.value)
    }
    for start in starts { start() }
  }

  /// Looks after `patience` whether the turn still delays others.
  private func watch(_ turn: Int) {
    DispatchQueue.global().asyncAfter(deadline: .now() + patience) { [self] in
      let (isLate, first) = state.withLock { state in
        state.isTimed = !state.waiting.isEmpty && state.first > turn
        return (!state.waiting.isEmpty && state.first == turn, state.isTimed ? state.first : nil)
      }
      if isLate { endAll() }
      if let first { watch(first) }
    }
  }
}
