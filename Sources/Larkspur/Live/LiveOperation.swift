import Foundation
import LarkspurTransport
import Synchronization

/// One call of a program on a live connection: the way to the connection on its loop, and the way of the result back.
///
/// A caller awaits the operation, or gave a completion handler. The handler is called on the delegate queue, after all
/// calls for earlier events of the connection. The first result counts. The connection writes the result on its loop
/// before the caller resumes; the caller reads it afterwards.
class LiveOperation: LoopCallback, LoopCompletion, Awaited, @unchecked Sendable {
  private let gate: LiveGate
  /// Whether the caller gave a completion handler.
  private let isHandled: Bool
  private let queue: DelegateQueue?
  private var continuation: TaskContinuation?
  private let isUnwanted = Atomic(false)
  /// Whether the caller is on the connection's loop, and resumes in the tick that brings the result.
  private var isCallersOwn = false
  /// The connection that performs the operation, until the operation is finished. Belongs to the loop.
  private var connection: (any LiveConnection)?

  // Set before the caller resumes, and read by it.
  private(set) var isFinished = false
  private(set) var failure: (any Error)?

  /// - Parameters:
  ///   - queue: The queue of the completion handler.
  ///   - isHandled: Whether the caller gave a completion handler. Otherwise it awaits the operation.
  init(through gate: LiveGate, on queue: DelegateQueue?, isHandled: Bool) {
    self.gate = gate
    self.queue = queue
    self.isHandled = isHandled
  }

  /// Calls the completion handler, on the delegate queue.
  func handleResult() {}

  /// Whether the caller's task has been cancelled.
  var isCancelled: Bool { isUnwanted.load(ordering: .sequentiallyConsistent) }

  // MARK: - The caller

  /// Starts the operation, for a caller with a completion handler.
  func start() { gate.submit(self) }

  /// Performs the operation. Cancelling the task ends the wait.
  func run() async throws {
    isCallersOwn = gate.connection?.loop.isPreferred ?? false
    await TaskContinuation.suspend(for: self)
    if let failure { throw failure }
  }

  func isAwaited(by continuation: TaskContinuation) {
    self.continuation = continuation
    gate.submit(self)
  }

  func waitIsCancelled() {
    isUnwanted.store(true, ordering: .sequentiallyConsistent)
    gate.cancel(self)
  }

  // MARK: - The loop

  func perform() {
    guard let connection = gate.connection else { return }
    self.connection = connection
    guard !isCancelled else { return finish(CancellationError()) }
    connection.start(self)
  }

  /// Ends the wait of a caller whose task has been cancelled.
  func waitEnded() {
    // An operation that has not come yet ends when it comes.
    guard let connection, !isFinished else { return }
    connection.forget(self)
    finish(CancellationError())
  }

  /// Ends the operation, on the loop.
  func finish(_ failure: (any Error)? = nil) {
    guard !isFinished else { return }
    isFinished = true
    self.failure = failure
    guard let connection = connection.take() else { return }
    if isHandled {
      // In the tick, as the delegate's calls are: a call that the connection causes later does not overtake this one.
      guard let calls = connection.transfer?.calls else { return callHandler() }
      calls.insist { [self] in handleResult() }
    } else if isCallersOwn {
      complete()
    } else {
      connection.loop.completeAfterTick(self)
    }
  }

  /// Ends an operation that has reached no connection, on any thread.
  func refuse(_ error: any Error) {
    isFinished = true
    failure = error
    if isHandled { callHandler() } else { complete() }
  }

  private func callHandler() { queue?.insist { [self] in handleResult() } }

  /// Resumes the caller that awaits the operation.
  func complete() { continuation.take()?.resume() }
}
