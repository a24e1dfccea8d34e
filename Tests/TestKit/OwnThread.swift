import Dispatch
import Testing

/// Runs each test on a thread of its own.
///
/// Swift's pool has as many threads as the machine has cores. A test that blocks one of them, by waiting for a process
/// or by computing for long, delays all other tests, whose timeouts expire on a small machine.
public struct OwnThread: TestTrait, SuiteTrait, TestScoping {
  public let isRecursive = true

  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(QueueExecutor()) { try await function() }
  }

  private final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "own-thread")

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }
}

extension Trait where Self == OwnThread {
  /// The trait for tests that block or that compute for long.
  public static var ownThread: Self { OwnThread() }
}
