import Foundation
import Larkspur
import Synchronization

/// Carries what a task ends with to the caller that waits for it. No queue has to be free for that: the handler is
/// called where the response has been serialized.
final class AsyncReceiver: Sendable {
  struct Outcome: @unchecked Sendable {
    let response: URLResponse
    let object: Any?
    let error: (any Error)?
  }

  private enum State {
    case waiting(CheckedContinuation<Outcome, Never>?)
    case told(Outcome)
  }

  private let state = Mutex(State.waiting(nil))

  private func tell(_ outcome: Outcome) {
    let continuation = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard case .waiting(let continuation) = state else { return nil }
      state = .told(outcome)
      return continuation
    }
    continuation?.resume(returning: outcome)
  }

  /// Runs a task to its end, and gives what has come of it. The manager makes it as for any handler, which is told at
  /// once.
  static func run(
    _ manager: AFURLSessionManager, _ make: (@escaping (URLResponse, Any?, (any Error)?) -> Void) -> URLSessionTask
  ) async throws -> (object: Any?, response: URLResponse) {
    let receiver = AsyncReceiver()
    let task = make { receiver.tell(Outcome(response: $0, object: $1, error: $2)) }
    manager.record(of: task)?.change { content in
      if case .handler(let completion) = content.receiver { content.receiver = .waiting(completion) }
    }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let told = receiver.state.withLock { state -> Outcome? in
          if case .told(let outcome) = state { return outcome }
          state = .waiting(continuation)
          return nil
        }
        if let told { continuation.resume(returning: told) } else { task.resume() }
      }
    } onCancel: {
      task.cancel()
    }
    if let error = outcome.error { throw error }
    return (outcome.object, outcome.response)
  }
}
