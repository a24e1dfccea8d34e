import Foundation
import Synchronization

/// Makes a background session's delegate calls one after another, also on a queue that runs several operations at once.
final class BackgroundCalls: Sendable {
  private struct State {
    var waiting: [@Sendable () -> Void] = []
    var isRunning = false
  }

  private let queue: DelegateQueue
  private let state = Mutex(State())

  init(on queue: DelegateQueue) { self.queue = queue }

  /// Adds a call. The call is not lost if the program cancels the operations of its queue.
  func add(_ call: @escaping @Sendable () -> Void) {
    let isFirst = state.withLock { state in
      state.waiting.append(call)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if isFirst { makeNext() }
  }

  private func makeNext() {
    queue.insist { [self] in
      let call = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
      call?()
      let isLast = state.withLock { state in
        state.isRunning = !state.waiting.isEmpty
        return !state.isRunning
      }
      if !isLast { makeNext() }
    }
  }
}
