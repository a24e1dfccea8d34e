import Synchronization

/// A question to other code, which may answer on any thread. The first answer counts. When a task is interrupted,
/// `giveUp()` ends its wait.
final class Question<Answer: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Void, Never>)
    case answered(Answer?)
  }

  private let state = Mutex(State.open)

  func answer(_ answer: Answer) { settle(answer) }

  func giveUp() { settle(nil) }

  private func settle(_ answer: Answer?) {
    let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
      switch state {
      case .open:
        state = .answered(answer)
        return nil
      case .waiting(let continuation):
        state = .answered(answer)
        return continuation
      case .answered: return nil
      }
    }
    continuation?.resume()
  }

  /// Suspends until there is an answer.
  ///
  /// - Returns: The answer, or `nil` if `giveUp()` was called.
  func wait() async -> Answer? {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isAnswered = state.withLock { state -> Bool in
        if case .answered = state { return true }
        state = .waiting(continuation)
        return false
      }
      if isAnswered { continuation.resume() }
    }
    return state.withLock { state in if case .answered(let answer) = state { answer } else { nil } }
  }
}

/// A value that one thread stores for another thread.
///
/// The value is behind a lock, although the other thread awaits a continuation as well: ThreadSanitizer does not see
/// the order of the two threads if a continuation is resumed before it is awaited.
final class Handover<Value: Sendable>: Sendable {
  private let stored = Mutex<Value?>(nil)

  var value: Value? {
    get { stored.withLock { $0 } }
    set { stored.withLock { $0 = newValue } }
  }
}
