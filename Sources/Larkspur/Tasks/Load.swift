import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport
import Synchronization

/// One load, from its first `resume` or its awaited call to its end: the state of its stages, and the objects that handle
/// its parts. See `Load+Stages`.
///
/// An awaited load that has no delegate has no task. Its task is made when a part of the load needs one, or when the
/// program asks the session for its tasks.
///
/// Threads. `interrupt` and `suspensionChanged` may be called from any thread, and reach the load through the loop's
/// inbox. `isAwaited` runs on the caller's thread and uses the properties of the wait; `waitIsCancelled` may be called
/// from any thread. The result belongs to the caller that awaits it, once it is available. The session's lock guards
/// `shownTask` and `indexInSet`. Everything else belongs to the loop.
final class Load: @unchecked Sendable {
  let session: URLSession
  var core: SessionCore { session.core }
  let engine: SessionEngine
  let request: URLRequest
  let output: TaskOutput
  let source: BodySource
  /// The task that the load was made for, or `nil` for an awaited load.
  let givenTask: URLSessionTask?
  /// The number of its task.
  let identifier: Int
  /// The task that an awaited load has got, and its index among the loads without a task. The session's lock guards
  /// both properties.
  var shownTask: URLSessionTask?
  var indexInSet: Int?
  /// The load's current task. Changes when a data task becomes a download.
  private(set) var currentTask: URLSessionTask?
  /// The session's delegate, if it chooses its calls.
  let selective: (any URLSessionSelectiveDelegate)?

  // MARK: - Stages

  struct State: ~Copyable {
    var stage = LoadStage.created
    /// What stopped the stages in the last callback, if a worker has to see to it.
    var stop: Stop?
    var machine: TaskMachine
    var content = TaskContent()
  }

  let loopBound: LoopBound<State>

  var machine: TaskMachine {
    _read { yield loopBound.state.machine }
    _modify { yield &loopBound.state.machine }
  }

  var content: TaskContent {
    _read { yield loopBound.state.content }
    _modify { yield &loopBound.state.content }
  }

  /// The place of the load's requests in the pool.
  let slot: RequestSlot
  var clock: LoadClock
  /// The current request, once its URL has been parsed, up to its end.
  var networkLoad: NetworkLoad?
  /// The exchange of the current request, from its response's head to its end.
  var running: RunningExchange?
  /// Whether a task of Swift's carries the load on.
  var hasWorker = false
  /// The worker's wait for a callback.
  var callbackWait: TaskContinuation?
  /// Whether `engine` counts the load among those that are about to get a worker.
  var isStarting = false
  /// Why the load has failed, before it has been completed.
  var loadFailure: URLError?

  // MARK: - Owners

  /// `nil` if no delegate gets metrics.
  private(set) var metrics: TaskMetrics?
  /// The challenges and credentials of the load, or `nil` if there have been none.
  var authentication: TaskAuthentication?
  /// `nil` if the load's task is not a download.
  var download: TaskDownload?
  /// `nil` unless the load uploads a file in the way that can be resumed.
  var resumable: ResumableUpload?
  /// The delegate of one call of an async function.
  var perCallDelegate: PerCallDelegate?
  /// The protocol that uses the connection after or in place of HTTP, or `nil` for a load of HTTP only.
  var live: (any LiveLoad)?
  /// The router of challenges of the connection that was requested last.
  var challenges: ChallengeRouter?
  /// The latest turn to start a program's protocol.
  var protocolTurn = 0
  /// The error of a program's protocol or interceptor, which becomes the task's error as it is.
  var ownFailure: (any Error)?

  /// `nil` if no delegate has been called.
  private(set) var callsIfAny: DelegateCalls?
  /// `nil` if the session has no interceptors.
  let interception: Interception<any URLSessionInterceptor, URLRequest>?
  /// `nil` if the load has sent no body, and its request has no observer.
  private(set) var uploadIfAny: TaskUpload?
  var connectivity = ConnectivityWait()

  var calls: DelegateCalls {
    if let callsIfAny { return callsIfAny }
    let calls = DelegateCalls(on: core.delegateQueue, engine.loop)
    callsIfAny = calls
    return calls
  }

  var upload: TaskUpload {
    if let uploadIfAny { return uploadIfAny }
    let upload = TaskUpload(core, source)
    uploadIfAny = upload
    return upload
  }

  // MARK: - Interruption

  /// The error with which the load ends before its time, or `nil`.
  private(set) var interruption: URLError?
  /// The part of the load that is in progress without a request of the slot, for the error of a timeout.
  var phase: String?
  /// Whether the load has been cancelled. It may not have been interrupted yet.
  private let isCancelRequested = Atomic(false)
  private let isSuspended = Atomic(false)
  /// The wait for the end of a suspension.
  private var gate: TaskContinuation?
  private var stopsAtGate = false
  /// Cancels the operation in progress. Called on interruption.
  var cancelWait: (() -> Void)?

  // MARK: - The result

  // Set on the loop, and read when the caller's task has been woken: no other thread refers to them, and they need no
  // lock.
  var resultFile: URL?
  var failure: (any Error)?

  private enum Awaiting: UInt8, AtomicRepresentable {
    case running
    case awaited
    case complete
  }

  /// The caller's task and the thread that completes the load each change this once. The second of them wakes the
  /// caller. Waking orders their memory already; ThreadSanitizer sees the order of this variable only.
  private let awaiting = Atomic(Awaiting.running)
  private var continuation: TaskContinuation?
  /// The place of the task that awaits the result. A caller on the loop begins the load itself, and resumes in the tick of
  /// the result. A caller elsewhere suspends first, and resumes after that tick; it is served if the load has
  /// needed no waiting. A caller may repeat a load that needs no waiting, in either place, and then yields to other tasks.
  enum Caller {
    case onLoop
    case elsewhere
    case served
  }

  var caller = Caller.elsewhere

  /// - Parameter isWatched: Whether metrics are collected for a delegate.
  init(
    of task: URLSessionTask?, _ request: URLRequest, identifier: Int, _ session: URLSession, _ engine: SessionEngine,
    isWatched: Bool, selective: (any URLSessionSelectiveDelegate)? = nil
  ) {
    givenTask = task
    currentTask = task
    self.request = request
    self.identifier = identifier
    self.session = session
    self.engine = engine
    let core = session.core
    output = task?.output ?? .dataResult
    source = task?.source ?? .request
    self.selective = selective
    loopBound = LoopBound(State(machine: TaskMachine(request)))
    slot = RequestSlot(of: engine.pool, collectsMetrics: isWatched)
    if engine.observer != nil { slot.task = identifier }
    let idle =
      request.own.timeoutInterval?.asTimeout.map { LoadClock.nanoseconds(Duration(interval: $0)) }
      ?? core.timeoutForRequest
    clock = LoadClock(idle: idle, total: core.timeoutForResource)
    interception =
      core.interceptors.isEmpty
      ? nil : Interception(core.interceptors, timeouts: core.interceptors.compactMap(\.attemptTimeout))
    if isWatched { metrics = TaskMetrics() }
  }

  // MARK: - The task

  /// The load's task, which is made here if there is none. On the loop.
  var task: URLSessionTask {
    if let currentTask { return currentTask }
    let made = core.task(of: self)
    currentTask = made
    showContent(by: made)
    return made
  }

  /// Copies the response and the counts to a task that was created after they arrived. When a response has arrived, all
  /// of a short request body has been sent.
  func showContent(by task: URLSessionTask) {
    let (response, expected, count) = (content.response, content.expectedCount, content.data.count)
    guard response != nil else { return }
    task.show {
      $0.response = response
      $0.bytesExpectedToReceive = expected
      $0.bytesReceived = Int64(count)
      $0.bytesSent = max($0.bytesSent, $0.bytesExpectedToSend)
    }
  }

  /// Another task continues in place of the current one.
  func continues(as other: URLSessionTask) { currentTask = other }

  var priority: UInt8 { currentTask?.poolPriority ?? URLSessionTask.poolPriorityDefault }

  // MARK: - Interruption

  /// Cancels the load and the operation that it waits for. From any thread.
  func interrupt() {
    isCancelRequested.store(true, ordering: .sequentiallyConsistent)
    engine.loop.post { [self] in interrupted(.make(.cancelled)) }
  }

  private func interrupted(_ error: URLError) {
    guard interruption == nil else { return }
    interruption = error
    slot.cancel()
    cancelWait.take()?()
    openGate()
  }

  /// Takes over the task's state: what was done to the task before the load was there has not reached the load, and
  /// what is still in the loop's inbox comes too late.
  func adoptTaskState() {
    let state = currentTask?.state
    if state == .canceling || isCancelRequested.load(ordering: .sequentiallyConsistent) {
      interruption = .make(.cancelled)
    }
    isSuspended.store(state == .suspended, ordering: .sequentiallyConsistent)
  }

  func timeIsUp() { interrupted(lateness) }

  /// The error of a load whose time is up, which names what the load waits for.
  private var lateness: URLError {
    if live?.awaitsEvent == true { return .make(.timedOut, "timed out while the connection was open") }
    if let phase { return .make(.timedOut, "timed out \(phase)") }
    switch slot.phase {
    case nil: return .make(.timedOut, "timed out while preparing a request")
    case .securing?: return URLError(.tls(TLSError(.handshakeTimedOut)), url: nil)
    case let phase?: return URLError(.timedOut(phase), url: nil)
    }
  }

  /// Whether the load has been interrupted or suspended. Performance: read often, and hardly ever `true`.
  var isHalted: Bool {
    interruption != nil || isCancelRequested.load(ordering: .relaxed) || isSuspended.load(ordering: .relaxed)
  }

  /// Awaits an operation, which an interruption of the load ends by `cancel`.
  ///
  /// - Parameter phase: The name of the operation for the error of a timeout, such as "while waiting for a network";
  ///   `nil` if the load's time limits do not count meanwhile, because the program is waited for.
  func waiting<T>(
    cancellingBy cancel: @escaping () -> Void, timed phase: String? = nil, _ operation: () async -> T
  ) async throws(URLError) -> T {
    if let interruption { throw interruption }
    if phase == nil { pauseClock() }
    self.phase = phase
    cancelWait = cancel
    let result = await operation()
    cancelWait = nil
    self.phase = nil
    if phase == nil { resumeClock() }
    if let interruption { throw interruption }
    return result
  }

  // MARK: - Suspension

  /// From any thread.
  ///
  /// - Parameter changed: The task that was suspended or resumed. Another task may have just replaced it, which is
  ///   known on the loop.
  func suspensionChanged(of changed: URLSessionTask) {
    isSuspended.store(changed.isSuspended, ordering: .sequentiallyConsistent)
    engine.loop.post { [self] in
      isSuspended.store((currentTask ?? changed).isSuspended, ordering: .sequentiallyConsistent)
      suspensionSettled()
    }
  }

  private func suspensionSettled() {
    let isSuspended = isSuspended.load(ordering: .sequentiallyConsistent)
    if isSuspended != stopsAtGate {
      stopsAtGate = isSuspended
      if isSuspended {
        pauseClock()
        slot.suspend()
      } else {
        resumeClock()
        slot.resume()
      }
    }
    if !isSuspended { openGate() }
  }

  private func openGate() { gate.take()?.resume() }

  /// Suspends while the task is suspended, and throws once it is interrupted. Check `isHalted` first.
  func passGate() async throws(URLError) {
    // A cancellation that is still in the loop's inbox counts.
    if isCancelRequested.load(ordering: .relaxed) { interrupted(.make(.cancelled)) }
    if let interruption { throw interruption }
    guard isSuspended.load(ordering: .relaxed) else { return }
    suspensionSettled()
    while stopsAtGate, interruption == nil { await TaskContinuation.suspend { gate = $0 } }
    if let interruption { throw interruption }
  }

  // MARK: - The end

  /// Resumes the caller that awaits the result.
  func resultHasCome() {
    if case .onLoop = caller { complete() } else { engine.loop.completeAfterTick(self) }
  }

  private func success<Content>(_ content: @autoclosure () -> Content?) throws -> (Content, URLResponse) {
    guard awaiting.load(ordering: .acquiring) == .complete else { throw Self.inconsistency }
    if let failure { throw failure }
    guard let content = content(), let response = self.content.response else { throw Self.inconsistency }
    return (content, response)
  }

  func takeData() throws -> (Data, URLResponse) { try success(content.takeData()) }

  func takeFile() throws -> (URL, URLResponse) { try success(resultFile) }
}

extension Load: TimedLoad {
  var clocks: LoadClocks { engine.clocks }
  var queuedUntil: Deadline { slot.queuedUntil }
}

extension Load: Awaited, LoopCompletion {
  func isAwaited(by continuation: TaskContinuation) {
    self.continuation = continuation
    if awaiting.exchange(.awaited, ordering: .acquiringAndReleasing) == .complete { return complete() }
    guard case .elsewhere = caller else { return }
    core.start(self)
    if hasCome { caller = .served }
  }

  func waitIsCancelled() { core.cancel(self) }

  func complete() {
    if awaiting.exchange(.complete, ordering: .sequentiallyConsistent) == .awaited { continuation.take()?.resume() }
  }

  var hasCome: Bool { awaiting.load(ordering: .sequentiallyConsistent) == .complete }
}
