import Synchronization

/// Work that a task pool runs on its loop.
public protocol TaskPoolWork: AnyObject, Sendable {
  func run() async
}

/// A pool of reusable tasks on a loop. Any thread may submit work.
///
/// Performance: waking an idle task costs less than creating a task, or than moving the caller's own task to the loop
/// and back.
public final class TaskPool: Sendable {
  private let loop: ClientLoop

  /// A task of the pool. Its fields belong to the task while it works, and to the thread that has removed it from
  /// `idle` otherwise.
  private final class Worker: @unchecked Sendable {
    var work: (any TaskPoolWork)?
    var continuation: TaskContinuation?

    init(_ work: any TaskPoolWork) { self.work = work }
  }

  private struct State {
    var idle: [Worker] = []
    var isShutDown = false
  }

  private let state = Mutex(State())

  /// Maximum number of idle tasks.
  private static let idleMax = 64

  public init(on loop: ClientLoop) { self.loop = loop }

  /// Runs the work in an idle task, or in a new one if all tasks are busy.
  public func run(_ work: any TaskPoolWork) {
    if let worker = state.withLock({ $0.idle.popLast() }) {
      worker.work = work
      worker.continuation.take()?.resume()
    } else {
      let worker = Worker(work)
      // Detached: the task outlives its creator and inherits nothing from it.
      Task.detached(executorPreference: loop) { await self.serve(worker) }
    }
  }

  private func serve(_ worker: Worker) async {
    var work = worker.work.take()
    while work != nil {
      await work?.run()
      // An idle task keeps no reference to its last work.
      work = nil
      await TaskContinuation.suspend { continuation in
        worker.continuation = continuation
        if !addIdle(worker) { worker.continuation.take()?.resume() }
      }
      work = worker.work.take()
    }
  }

  /// Adds a task to the idle ones.
  ///
  /// - Returns: `false` if the task has to end.
  private func addIdle(_ worker: Worker) -> Bool {
    state.withLock { state in
      guard !state.isShutDown, state.idle.count < Self.idleMax else { return false }
      state.idle.append(worker)
      return true
    }
  }

  /// Ends the idle tasks, and each other task when its work is done. Work that is submitted later still runs.
  public func shutDown() {
    let idle = state.withLock { state in
      state.isShutDown = true
      defer { state.idle = [] }
      return state.idle
    }
    for worker in idle { worker.continuation.take()?.resume() }
  }
}
