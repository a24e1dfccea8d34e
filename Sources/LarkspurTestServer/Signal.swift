import LarkspurBytes
import LarkspurIO
import Synchronization

extension TestServer {
  /// An event that happens once, shared by a test and the server's threads.
  ///
  /// A script's `.wait(signal)` holds a connection until the test calls ``fire()``; a script's `.fire(signal)` resumes
  /// the test from `try await signal.wait()`. A signal that has fired stays so. Usable from any thread.
  public final class Signal: Sendable {
    private struct State {
      var hasFired = false
      var nextID = 0
      var waiters: [Int: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    /// Creates a signal that has not fired.
    public init() {}

    /// Whether the signal has fired.
    public var hasFired: Bool { state.withLock { $0.hasFired } }

    /// Fires the signal and resumes all waiters. Further calls do nothing.
    public func fire() {
      let waiters = state.withLock { state in
        state.hasFired = true
        let waiters = state.waiters
        state.waiters = [:]
        return waiters
      }
      for waiter in waiters.values { waiter() }
    }

    /// Suspends until the signal has fired. Throws `CancellationError` if the task is cancelled first.
    public func wait() async throws {
      let wait = OneShot<Result<Void, any Error>>()
      whenFired { wait.set(.success(())) }
      try await withTaskCancellationHandler {
        try await wait.get()?.get()
      } onCancel: {
        wait.set(.failure(CancellationError()))
      }
    }

    /// Calls `body` once the signal has fired, on the thread that fires it; at once if the signal has already fired.
    ///
    /// - Returns: A closure that withdraws the call.
    @discardableResult
    func whenFired(_ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
      let id: Int? = state.withLock { state in
        if state.hasFired { return nil }
        state.nextID += 1
        state.waiters[state.nextID] = body
        return state.nextID
      }
      guard let id else {
        body()
        return {}
      }
      return { self.state.withLock { _ = $0.waiters.removeValue(forKey: id) } }
    }
  }
}
