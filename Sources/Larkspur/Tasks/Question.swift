import Synchronization

/// Something that somebody else is asked, on whatever thread. The first answer counts; a task that is interrupted does not
/// wait any longer.
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

  /// Nil: it was given up.
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

/// Something that one thread leaves for another to find.
///
/// By a lock, and not only by the continuation that the other one waits for: of one that is resumed before it is awaited
/// ThreadSanitizer does not see that it orders anything.
final class Handover<Value: Sendable>: Sendable {
  private let stored = Mutex<Value?>(nil)

  var value: Value? {
    get { stored.withLock { $0 } }
    set { stored.withLock { $0 = newValue } }
  }
}
