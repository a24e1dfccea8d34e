import Synchronization

/// Something that somebody else is asked, on whatever thread. The first answer counts; a task that is interrupted does not
/// wait any longer.
final class Question<Answer: Sendable>: Sendable {
  private enum State {
    case open
    case waiting(CheckedContinuation<Answer?, Never>)
    case answered(Answer?)
  }

  private let state = Mutex(State.open)

  func answer(_ answer: Answer) { settle(answer) }

  func giveUp() { settle(nil) }

  private func settle(_ answer: Answer?) {
    let continuation = state.withLock { state -> CheckedContinuation<Answer?, Never>? in
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
    continuation?.resume(returning: answer)
  }

  /// Nil: it was given up.
  func wait() async -> Answer? {
    await withCheckedContinuation { continuation in
      let answer = state.withLock { state -> Answer?? in
        if case .answered(let answer) = state { return .some(answer) }
        state = .waiting(continuation)
        return nil
      }
      if let answer { continuation.resume(returning: answer) }
    }
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
