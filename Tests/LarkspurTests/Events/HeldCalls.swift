import Synchronization

/// Calls of a source's closures, which wait until the world releases them.
final class HeldCalls: Sendable {
  private struct State {
    var held: [(number: Int, continuation: CheckedContinuation<Void, any Error>)] = []
    /// The delays of the calls that the world has not seen.
    var new: [(number: Int, delay: Duration)] = []
    var cancelled: Set<Int> = []
    var count = 0
  }

  private let state = Mutex(State())

  var isHolding: Bool { state.withLock { !$0.held.isEmpty } }

  /// Returns the delays of the calls that have come since the last time and have not been cancelled.
  func takeNew() -> [Duration] {
    state.withLock { state in
      defer { state.new = [] }
      return state.new.map(\.delay)
    }
  }

  func release() {
    let held = state.withLock { state in
      defer { state.held = [] }
      return state.held
    }
    for (_, continuation) in held { continuation.resume() }
  }

  func hold(_ delay: Duration) async throws {
    let number = state.withLock { state in
      state.count += 1
      return state.count
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let isHeld = state.withLock { state in
          if state.cancelled.contains(number) { return false }
          state.held.append((number, continuation))
          state.new.append((number, delay))
          return true
        }
        if !isHeld { continuation.resume(throwing: CancellationError()) }
      }
    } onCancel: {
      let continuation = state.withLock { state in
        state.cancelled.insert(number)
        state.new.removeAll { $0.number == number }
        let held = state.held.first { $0.number == number }
        state.held.removeAll { $0.number == number }
        return held?.continuation
      }
      continuation?.resume(throwing: CancellationError())
    }
  }
}
