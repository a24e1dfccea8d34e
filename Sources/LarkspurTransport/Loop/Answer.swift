import LarkspurBytes
import Synchronization

/// An answer that another thread finds for a task on a loop. The first of the answer, the deadline and a cancellation ends the
/// wait.
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

  /// Waits for the outcome, on the loop.
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

  /// Asks a function that may take long, on a thread that is not the loop's. Its task is cancelled when the wait is over.
  static func asking(
    until deadline: Deadline, on loop: ClientLoop, _ ask: @escaping @Sendable () async -> Value
  ) async -> Outcome {
    let answer = Answer()
    let question = Task { @concurrent in answer.finish(.answered(await ask())) }
    defer { question.cancel() }
    return await answer.outcome(deadline: deadline, on: loop)
  }

  /// The first outcome counts.
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
