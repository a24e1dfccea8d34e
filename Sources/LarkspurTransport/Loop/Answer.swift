import LarkspurBytes
import Synchronization

/// The result of work on another thread, which a task on a loop awaits. The answer, the deadline and a cancellation
/// race: the first of them ends the wait.
final class Answer<Value: Sendable>: Sendable {
  enum Outcome: Sendable {
    case answered(Value)
    case timedOut
    case cancelled
  }

  private struct State {
    var outcome: Outcome?
    var waiter: Waiter?
  }

  private let state = Mutex(State())

  /// Suspends the task until there is an outcome. Call it on the loop.
  func outcome(deadline: Deadline, on loop: ClientLoop) async -> Outcome {
    let timer = loop.startTimer(deadline) { [self] in finish(.timedOut) }
    defer { loop.stopTimer(timer) }
    await withTaskCancellationHandler {
      await Waiter.suspend { waiter in
        let isOver = state.withLock { state in
          if state.outcome == nil { state.waiter = waiter }
          return state.outcome != nil
        }
        if isOver { waiter.wake() }
      }
    } onCancel: {
      finish(.cancelled)
    }
    return state.withLock { $0.outcome } ?? .cancelled
  }

  /// Runs `ask`, which may take long, in a task on Swift's thread pool. The task is cancelled when the wait is over.
  static func asking(
    until deadline: Deadline, on loop: ClientLoop, _ ask: @escaping @Sendable () async -> Value
  ) async -> Outcome {
    let answer = Answer()
    let question = Task { @concurrent in answer.finish(.answered(await ask())) }
    defer { question.cancel() }
    return await answer.outcome(deadline: deadline, on: loop)
  }

  /// Ends the wait. The first outcome counts; later ones are ignored.
  func finish(_ outcome: Outcome) {
    let waiter = state.withLock { state -> Waiter? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      let waiter = state.waiter
      state.waiter = nil
      return waiter
    }
    waiter?.wake()
  }
}
