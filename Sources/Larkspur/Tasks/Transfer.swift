import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport
import Synchronization

/// What runs: a task from its first `resume` to its end, or an awaited load. It can be interrupted and suspended, it has a
/// clock, and who awaits it finds the result here.
///
/// It begins in `perform`. What waits for nothing but a connection and an answer ends there, too: see `Transfer+Quick`. All
/// else is done by a `TaskPerformer`, who goes on from there. A load that is awaited, and that nobody watches, has no task until
/// somebody wants to see it: a performer, or who asks the session for its tasks.
///
/// Threads. From any thread come `interrupt` and `suspensionChanged`, by the loop's mail. The result belongs to who awaits it,
/// once it has come; all else to the loop.
final class Transfer: TimedWork, @unchecked Sendable {
  let session: URLSession
  var core: SessionCore { session.core }
  let engine: SessionEngine
  let request: URLRequest
  /// Whose it is. Nil: an awaited load's.
  let task: URLSessionTask?
  /// The number of its task.
  let identifier: Int
  /// The task that an awaited load has got, and its place among those that have none. The session's lock guards both.
  var shownTask: URLSessionTask?
  var place: Int?
  /// Who goes on with it, if it takes more than a connection and an answer.
  private(set) var performer: TaskPerformer?

  /// Why it is to end before its time.
  private(set) var interruption: URLError.Code?
  /// It has been cancelled, and may not have heard of it yet.
  private let isUnwanted = Atomic(false)
  private let isSuspended = Atomic(false)
  /// Waits for the end of the suspension.
  private var gate: Waiter?
  private var stopsAtGate = false
  /// What is to be given up when it is interrupted.
  private var giveUpWait: (() -> Void)?

  // What has been begun quickly, while it has not ended, nor become the performer's.
  var quick: Quick?
  /// The response's head is there, and it is not for the owner as it is; or there is more to come.
  var running: RunningExchange?

  // What has come. Of an awaited transfer it is set on the loop, and read when the caller's task has been woken: nobody else
  // knows it, and it needs no lock.
  var response: URLResponse?
  /// Of the content, in bytes; -1 if nobody knows.
  var length: Int64 = -1
  var data = Data()
  var file: URL?
  var failure: (any Error)?

  // Who waits for that.
  private enum Stage: UInt8, AtomicRepresentable {
    case running
    case awaited
    case complete
  }

  /// Of the caller's task and whoever completes the transfer, the one who comes second wakes. (Waking is order enough; this is one
  /// that ThreadSanitizer sees, too.)
  private let stage = Atomic(Stage.running)
  private var waiter: Waiter?
  /// It has not begun when the caller suspends.
  var beginsWhenAwaited = false
  /// The caller is on the loop, and goes on in the turn that brings the result.
  var isCallersOwn = false

  /// - Parameter isWatched: A delegate wants to hear of it.
  init(
    of task: URLSessionTask?, _ request: URLRequest, identifier: Int, _ session: URLSession, _ engine: SessionEngine,
    isWatched: Bool
  ) {
    self.task = task
    self.request = request
    self.identifier = identifier
    self.session = session
    self.engine = engine
    let core = session.core
    let idle =
      request.own.timeoutInterval?.asTimeout.map { TaskClocks.nanoseconds(Duration(interval: $0)) }
      ?? core.timeoutForRequest
    super.init(
      idle: idle, total: core.timeoutForResource, by: engine.clocks, in: engine.pool, collectsMetrics: isWatched)
  }

  /// Makes who goes on with it.
  func makePerformer() -> TaskPerformer {
    let performer = TaskPerformer(core.task(of: self), of: self)
    self.performer = performer
    return performer
  }

  // MARK: - Interruption

  /// Ends it as cancelled. What it waits for is given up. From any thread.
  func interrupt() {
    isUnwanted.store(true, ordering: .sequentiallyConsistent)
    engine.loop.post { [self] in interrupted(.cancelled) }
  }

  private func interrupted(_ code: URLError.Code) {
    guard interruption == nil else { return }
    interruption = code
    cancel()
    giveUpWait?()
    openGate()
  }

  /// What was done to its task before it was there, nobody has told it; and what is on its way by mail comes too late.
  func begins(isCancelled: Bool, isSuspended: Bool) {
    if isCancelled || isUnwanted.load(ordering: .sequentiallyConsistent) { interruption = .cancelled }
    self.isSuspended.store(isSuspended, ordering: .sequentiallyConsistent)
  }

  override func timeIsUp() { interrupted(.timedOut) }

  /// Whether something keeps it from going on at once. It is asked often, and is hardly ever true.
  var isHeldUp: Bool {
    interruption != nil || isUnwanted.load(ordering: .relaxed) || isSuspended.load(ordering: .relaxed)
  }

  /// Waits for something that an interruption has to end: `giveUp` makes it return. Time counts if it is the load that is
  /// waited for, and not its owner.
  func waiting<T>(
    givingUpBy giveUp: @escaping () -> Void, timeCounts: Bool = false, _ operation: () async -> T
  ) async throws(URLError) -> T {
    if let interruption { throw URLError.make(interruption) }
    if !timeCounts { pauseClock() }
    giveUpWait = giveUp
    let result = await operation()
    giveUpWait = nil
    if !timeCounts { resumeClock() }
    if let interruption { throw URLError.make(interruption) }
    return result
  }

  // MARK: - Suspension

  /// From any thread.
  ///
  /// - Parameter changed: The task that was told. It may be one that has just been replaced: the loop knows.
  func suspensionChanged(of changed: URLSessionTask) {
    isSuspended.store(changed.isSuspended, ordering: .sequentiallyConsistent)
    engine.loop.post { [self] in
      isSuspended.store((performer?.task ?? changed).isSuspended, ordering: .sequentiallyConsistent)
      suspensionSettled()
    }
  }

  private func suspensionSettled() {
    let isSuspended = isSuspended.load(ordering: .sequentiallyConsistent)
    if isSuspended != stopsAtGate {
      stopsAtGate = isSuspended
      if isSuspended {
        pauseClock()
        hold()
      } else {
        resumeClock()
        letGo()
      }
    }
    if !isSuspended { openGate() }
  }

  private func openGate() { gate.take()?.wake() }

  /// Waits while it is suspended, and throws if it is to end. Nobody need call it who is not held up.
  func passGate() async throws(URLError) {
    if let interruption { throw URLError.make(interruption) }
    guard isSuspended.load(ordering: .relaxed) else { return }
    suspensionSettled()
    while stopsAtGate, interruption == nil { await Waiter.suspend { gate = $0 } }
    if let interruption { throw URLError.make(interruption) }
  }

  // MARK: - The result

  /// Who awaits it goes on.
  func resultHasCome() {
    leaveToOwner()
    if isCallersOwn { complete() } else { engine.loop.completeAfterTick(self) }
  }

  /// Nothing is left to be done but to tell its owner.
  func leaveToOwner() {
    performer = nil
  }

  private func success<Content>(_ content: @autoclosure () -> Content?) throws -> (Content, URLResponse) {
    guard stage.load(ordering: .acquiring) == .complete else { throw URLError(.unknown) }
    if let failure { throw failure }
    guard let content = content(), let response else { throw URLError(.unknown) }
    return (content, response)
  }

  func takeData() throws -> (Data, URLResponse) { try success(data) }

  func takeFile() throws -> (URL, URLResponse) { try success(file) }
}

extension Transfer: Awaited, LoopCompletion {
  func isAwaited(by waiter: Waiter) {
    self.waiter = waiter
    if stage.exchange(.awaited, ordering: .acquiringAndReleasing) == .complete { return complete() }
    if beginsWhenAwaited { core.begin(self) }
  }

  func waitIsCancelled() { core.cancel(self) }

  func complete() {
    if stage.exchange(.complete, ordering: .sequentiallyConsistent) == .awaited { waiter.take()?.wake() }
  }

  var hasCome: Bool { stage.load(ordering: .sequentiallyConsistent) == .complete }
}
