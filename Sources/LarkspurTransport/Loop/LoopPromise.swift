import LarkspurBytes
import Synchronization

/// The result of work on another thread, or of a later event, that a task on a loop awaits. The wait ends with whichever
/// comes first: the value, the deadline or a cancellation.
final class LoopPromise<Value: Sendable>: Sendable {
  enum Outcome: Sendable {
    case fulfilled(Value)
    case timedOut
    case cancelled
  }

  private struct State {
    var outcome: Outcome?
    var continuation: TaskContinuation?
  }

  private let state = Mutex(State())

  /// Suspends the task until there is an outcome. Call it on the loop.
  func outcome(deadline: Deadline, on loop: ClientLoop) async -> Outcome {
    let timer = loop.startTimer(deadline) { [self] in finish(.timedOut) }
    defer { loop.stopTimer(timer) }
    await withTaskCancellationHandler {
      await TaskContinuation.suspend { continuation in
        let isOver = state.withLock { state in
          if state.outcome == nil { state.continuation = continuation }
          return state.outcome != nil
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      finish(.cancelled)
    }
    return state.withLock { $0.outcome } ?? .cancelled
  }

  /// Runs `operation`, which may take long, in a task on Swift's thread pool. The task is cancelled when the wait is
  /// over.
  static func run(
    until deadline: Deadline, on loop: ClientLoop, _ operation: @escaping @Sendable () async -> Value
  ) async -> Outcome {
    let promise = LoopPromise()
    let task = Task { @concurrent in promise.finish(.fulfilled(await operation())) }
    defer { task.cancel() }
    return await promise.outcome(deadline: deadline, on: loop)
  }

  /// Ends the wait. The first outcome counts; later ones are ignored.
  func finish(_ outcome: Outcome) {
    let continuation = state.withLock { state -> TaskContinuation? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      let continuation = state.continuation
      state.continuation = nil
      return continuation
    }
    continuation?.resume()
  }
}
