import Dispatch
import Testing

/// Runs each test on a thread of its own.
///
/// Swift's pool has as many threads as the machine has cores. A test that blocks one of them, by waiting for a process or by
/// counting for long, holds all others up, and on a small machine their times run out.
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
  /// For tests that block, or that count for long.
  public static var ownThread: Self { OwnThread() }
}
