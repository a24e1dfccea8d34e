import Dispatch
import Synchronization

/// Something that happens once or several times, for a test that waits for it. Usable from any thread.
public final class Event: Sendable {
  /// The error of a wait in vain.
  public struct Missing: Error, CustomStringConvertible {
    public let description: String
  }

  private struct State {
    var count = 0
    var waiters: [Int: (count: Int, continuation: CheckedContinuation<Bool, Never>)] = [:]
    var nextWaiter = 0
  }

  private let state = Mutex(State())

  public init() {}

  /// The number of calls of `fire`.
  public var count: Int { state.withLock { $0.count } }

  /// Counts one more, and resumes the waiters that wait for this count.
  public func fire() {
    let met = state.withLock { state in
      state.count += 1
      let met = state.waiters.filter { $0.value.count <= state.count }
      for waiter in met.keys { state.waiters[waiter] = nil }
      return met.values
    }
    for waiter in met { waiter.continuation.resume(returning: true) }
  }

  /// Suspends until `fire` has been called `count` times, also if the task is cancelled.
  ///
  /// - Throws: ``Missing`` after 120 seconds.
  public func wait(for count: Int = 1, file: String = #fileID, line: Int = #line) async throws {
    let hasHappened = await withCheckedContinuation { continuation in
      let waiter: Int? = state.withLock { state in
        if state.count >= count { return nil }
        state.nextWaiter += 1
        state.waiters[state.nextWaiter] = (count, continuation)
        return state.nextWaiter
      }
      guard let waiter else { return continuation.resume(returning: true) }
      DispatchQueue.global().asyncAfter(deadline: .now() + Wait.limit) { [weak self] in self?.expire(waiter) }
    }
    if !hasHappened { throw Missing(description: "\(file):\(line): happened \(self.count) times of \(count)") }
  }

  /// Suspends until the task is cancelled.
  public static func cancellation() async throws {
    let isCancelled = Event()
    try await withTaskCancellationHandler {
      try await isCancelled.wait()
    } onCancel: {
      isCancelled.fire()
    }
  }

  private func expire(_ waiter: Int) {
    state.withLock { $0.waiters.removeValue(forKey: waiter) }?.continuation.resume(returning: false)
  }
}
