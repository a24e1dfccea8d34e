import Dispatch
import Synchronization

/// Makes calls on a dispatch queue one after another, in the order in which they are posted, also if the queue is
/// concurrent.
final class EventSourceOutbox: Sendable {
  private struct State {
    var calls: [@Sendable () -> Void] = []
    /// Whether a block that makes the calls is on a queue.
    var isDelivering = false
  }

  private let state = Mutex(State())

  /// Makes a call on a queue. If earlier calls are still pending, this call follows them on their queue.
  func post(on queue: DispatchQueue, _ call: @escaping @Sendable () -> Void) {
    let isIdle = state.withLock { state -> Bool in
      state.calls.append(call)
      defer { state.isDelivering = true }
      return !state.isDelivering
    }
    if isIdle { queue.async { self.deliver() } }
  }

  private func deliver() {
    while let call = next() { call() }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { state -> (@Sendable () -> Void)? in
      guard state.calls.isEmpty else { return state.calls.removeFirst() }
      state.isDelivering = false
      return nil
    }
  }
}
