import Foundation
import Larkspur
import Synchronization

/// Passes a task's result to the caller that awaits it. No queue is needed: the receiver is called on the thread that
/// has serialized the response.
final class AsyncReceiver: Sendable {
  /// Performance: an object, because copying three existentials costs more.
  private final class Outcome: @unchecked Sendable {
    let response: URLResponse
    let object: Any?
    let error: (any Error)?

    init(_ response: URLResponse, _ object: Any?, _ error: (any Error)?) {
      self.response = response
      self.object = object
      self.error = error
    }
  }

  private struct State {
    var isTold = false
    var outcome: Outcome?
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  private func tell(_ outcome: Outcome) {
    let waiter = state.withLock { state in
      if !state.isTold { state.outcome = outcome }
      state.isTold = true
      return state.waiter.take()
    }
    waiter?.resume()
  }

  private func wait(for task: URLSessionTask) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        let isTold = state.withLock { state in
          if !state.isTold { state.waiter = waiter }
          return state.isTold
        }
        if isTold { waiter.resume() } else { task.resume() }
      }
    } onCancel: {
      task.cancel()
    }
  }

  /// Runs a task to its end, and returns its result. `make` creates the task with a handler, which is then changed to a
  /// receiver that is called at once.
  static func run(
    _ manager: AFURLSessionManager, _ make: (@escaping (URLResponse, Any?, (any Error)?) -> Void) -> URLSessionTask
  ) async throws -> (object: Any?, response: URLResponse) {
    let receiver = AsyncReceiver()
    let task = make { receiver.tell(Outcome($0, $1, $2)) }
    manager.record(of: task)?.change { content in
      if case .handler(let completion) = content.receiver { content.receiver = .waiting(completion) }
    }
    await receiver.wait(for: task)
    let outcome = receiver.state.withLock { $0.outcome.take() }
    if let error = outcome?.error { throw error }
    return (outcome?.object, outcome?.response ?? task.someResponse)
  }
}
