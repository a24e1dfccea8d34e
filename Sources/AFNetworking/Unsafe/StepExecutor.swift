import Dispatch

/// Runs a Swift task on a serial queue, and reports the end of each step. A step is the code between two suspensions of
/// the task.
final class StepExecutor: TaskExecutor {
  private let queue = DispatchQueue(label: "com.alamofire.networking.event-source")
  private let stepEnded: @Sendable () -> Void

  /// - Parameter stepEnded: Called on the queue after each step.
  init(_ stepEnded: @escaping @Sendable () -> Void) { self.stepEnded = stepEnded }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { [self] in
      // Safe: each job is enqueued once, and so runs once. The block keeps the executor alive while the job runs.
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
      stepEnded()
    }
  }
}
