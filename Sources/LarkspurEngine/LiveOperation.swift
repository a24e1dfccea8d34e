import LarkspurTransport
import Synchronization

/// One call of a program on a live connection: the way to the connection on its loop, and the way of the result back.
///
/// A caller awaits the operation, or gave a completion handler. The first result counts. The connection writes the result on
/// its loop before the caller resumes; the caller reads it afterwards.
open class LiveOperation: LoopCallback, LoopCompletion, Awaited, @unchecked Sendable {
  private let gate: LiveGate
  /// Whether the caller gave a completion handler.
  private let isHandled: Bool
  private var continuation: TaskContinuation?
  private let isCancelRequested = Atomic(false)
  /// Whether the caller is on the connection's loop, and resumes in the tick that brings the result.
  private var isCallersOwn = false
  /// The connection that performs the operation, until the operation is finished. Belongs to the loop.
  private var connection: (any LiveConnection)?

  // Set before the caller resumes, and read by it.
  package private(set) final var isFinished = false
  package private(set) final var failure: (any Error)?

  /// - Parameter isHandled: Whether the caller gave a completion handler. Otherwise it awaits the operation.
  public init(through gate: LiveGate, isHandled: Bool = false) {
    self.gate = gate
    self.isHandled = isHandled
  }

  /// Calls the completion handler, or dispatches the call.
  ///
  /// - Parameter owner: The load of the connection, or `nil` if the operation has reached none or the load is complete.
  open func handleResult(for owner: AnyObject?) {}

  /// Whether the caller's task has been cancelled.
  final var isCancelled: Bool { isCancelRequested.load(ordering: .sequentiallyConsistent) }

  // MARK: - The caller

  /// Starts the operation, for a caller with a completion handler.
  package final func start() { gate.submit(self) }

  /// Performs the operation. Cancelling the task ends the wait.
  package final func run() async throws {
    isCallersOwn = gate.connection?.loop.isPreferred ?? false
    await TaskContinuation.suspend(for: self)
    if let failure { throw failure }
  }

  public func isAwaited(by continuation: TaskContinuation) {
    self.continuation = continuation
    gate.submit(self)
  }

  public func waitIsCancelled() {
    isCancelRequested.store(true, ordering: .sequentiallyConsistent)
    gate.cancel(self)
  }

  // MARK: - The loop

  public func perform() {
    guard let connection = gate.connection else { return }
    self.connection = connection
    guard !isCancelled else { return finish(CancellationError()) }
    connection.start(self)
  }

  /// Ends the wait of a caller whose task has been cancelled.
  final func waitEnded() {
    // An operation without a connection ends when it gets the connection.
    guard let connection, !isFinished else { return }
    connection.forget(self)
    finish(CancellationError())
  }

  /// Ends the operation, on the loop.
  package final func finish(_ failure: (any Error)? = nil) {
    guard !isFinished else { return }
    isFinished = true
    self.failure = failure
    guard let connection = connection.take() else { return }
    if isHandled {
      handleResult(for: connection.owner)
    } else if isCallersOwn {
      complete()
    } else {
      connection.loop.completeAfterTick(self)
    }
  }

  /// Ends an operation that has reached no connection, on any thread.
  final func refuse(_ error: any Error) {
    isFinished = true
    failure = error
    if isHandled { handleResult(for: nil) } else { complete() }
  }

  /// Resumes the caller that awaits the operation.
  public func complete() { continuation.take()?.resume() }
}
