import Foundation
import Larkspur
import Synchronization

/// The result of one task, which one caller awaits. Needs no queue: `set` is called on the thread that has serialized
/// the response.
final class TaskPromise: Sendable {
  /// An object that one thread makes and one caller takes. Performance: copying three existentials costs more.
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
    var isSet = false
    var outcome: Outcome?
    var continuation: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  private func set(_ outcome: Outcome) {
    let continuation = state.withLock { state in
      if !state.isSet { state.outcome = outcome }
      state.isSet = true
      return state.continuation.take()
    }
    continuation?.resume()
  }

  private func wait(for task: URLSessionTask) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isSet = state.withLock { state in
          if !state.isSet { state.continuation = continuation }
          return state.isSet
        }
        if isSet { continuation.resume() } else { task.resume() }
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
    let promise = TaskPromise()
    let task = make { promise.set(Outcome($0, $1, $2)) }
    manager.record(of: task)?.change { content in
      if case .handler(let completion) = content.receiver { content.receiver = .waiting(completion) }
    }
    await promise.wait(for: task)
    let outcome = promise.state.withLock { $0.outcome.take() }
    if let error = outcome?.error { throw error }
    return (outcome?.object, outcome?.response ?? task.someResponse)
  }
}
