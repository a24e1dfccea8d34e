import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport
import Synchronization

/// Carries out what a task's machine decides, on its session's loop. It begins in `perform`; tasks that wait for nothing but a
/// connection and an answer end there, too. All others run as one async function to their end: what it waits for, it awaits,
/// and so nothing of a task happens twice or out of order.
///
/// Threads. `run` and all state belong to the loop. From any thread come `interrupt` and `suspensionChanged`, by the loop's
/// mail. The delegate is called on the session's delegate queue, one call at a time, and `run` waits for each call to return.
final class TaskPerformer: TimedWork, CrewWork, LoopWork, @unchecked Sendable {
  /// Another one, when a data task becomes a download.
  private(set) var task: URLSessionTask
  let session: URLSession
  let core: SessionCore
  let engine: SessionEngine
  let scope: RequestScope
  let wantsMetrics: Bool
  /// The session's delegate, if it is asked what it wants.
  let selective: (any URLSessionSelectiveDelegate)?
  var transactions: [URLSessionTaskTransactionMetrics] = []
  /// Of the first task: another one may go on in its place.
  let creationDate: Date
  /// When it was set running.
  let startDate: Date

  /// Why the task is to end before its time.
  private var interruption: URLError.Code?
  /// Waits for the end of the suspension.
  private var gate: Waiter?
  private var stopsAtGate = false
  /// What is to be given up when the task is interrupted.
  private var giveUp: (() -> Void)?
  private let isSuspended: Atomic<Bool>
  /// The last call that nobody has waited for, on a queue that makes several at once. The loop's.
  var lastTold: Task<Void, Never>?

  /// Whether a call has been on its way to the delegate queue.
  var hasTold = false

  struct Own: ~Copyable {
    var machine: TaskMachine
    var content = TaskContent()
    var quick: QuickLoad?
  }

  /// What each step of a load changes.
  let own: Confined<Own>
  /// Whether a load has begun quickly, and nobody goes on with it at present.
  var isUnderWay: Bool { own.state.quick != nil }
  /// Whether it is among those that `engine` counts as starting.
  var isStarting = false

  var machine: TaskMachine {
    _read { yield own.state.machine }
    _modify { yield &own.state.machine }
  }

  var content: TaskContent {
    _read { yield own.state.content }
    _modify { yield &own.state.content }
  }

  /// Nil: nobody has said anything about credentials.
  var authentication: TaskAuthentication?
  /// What the server has said last.
  var latestResponse: HTTPURLResponse?
  /// A download's file, while it is being written, and after it while somebody looks at it.
  var file: DownloadFile?
  /// Those of the connection that it has asked for last.
  var challenges: SessionChallenges?
  /// Of a download that goes on, or may.
  var download: DownloadState?
  /// The stream of a request that a body has come from.
  var usedStream: InputStream?
  /// Its delegate has heard that there is no network.
  var hasWaitedForConnectivity = false
  var hasTriedAgainAtOnce = false
  lazy var sentBytes = SentBytes()
  /// What a program's protocol has failed with: the task's error is this very one.
  var protocolFailure: (any Error)?

  init(_ task: URLSessionTask, of session: URLSession, core: SessionCore, engine: SessionEngine) {
    self.task = task
    self.session = session
    self.core = core
    self.engine = engine
    let request = task.originalRequest ?? URLRequest(RequestStorage(url: nil))
    own = Confined(Own(machine: TaskMachine(request)))
    let idle =
      request.own.timeoutInterval?.asTimeout.map { TaskClocks.nanoseconds(Duration(interval: $0)) }
      ?? core.timeoutForRequest
    wantsMetrics = task.isKnown && (core.hasTaskDelegate || task.read { $0.delegate != nil })
    scope = RequestScope(of: engine.pool, collectsMetrics: wantsMetrics)
    selective = core.selectiveDelegate
    isSuspended = Atomic(false)
    creationDate = task.creationDate
    startDate = wantsMetrics ? Date() : .distantPast
    super.init(idle: idle, total: core.timeoutForResource, by: engine.clocks)
  }

  // MARK: - From any thread

  /// Ends the task with an error. What it waits for is given up.
  func interrupt(_ code: URLError.Code) {
    engine.loop.post { [self] in interrupted(code) }
  }

  /// Whether the task is to end, whatever else comes.
  var isInterrupted: Bool { interruption != nil }

  /// - Parameter changed: The task that was told. It may be one that has just been replaced: the loop knows.
  func suspensionChanged(of changed: URLSessionTask) {
    isSuspended.store(changed.isSuspended, ordering: .sequentiallyConsistent)
    engine.loop.post { [self] in
      isSuspended.store(task.isSuspended, ordering: .sequentiallyConsistent)
      suspensionSettled()
    }
  }

  private func interrupted(_ code: URLError.Code) {
    guard interruption == nil else { return }
    interruption = code
    scope.cancel()
    giveUp?()
    openGate()
  }

  private func suspensionSettled() {
    let isSuspended = isSuspended.load(ordering: .sequentiallyConsistent)
    if isSuspended != stopsAtGate {
      stopsAtGate = isSuspended
      if isSuspended {
        pauseClock()
        scope.hold()
      } else {
        resumeClock()
        scope.letGo()
      }
    }
    if !isSuspended { openGate() }
  }

  private func openGate() { gate.take()?.wake() }

  // MARK: - On the loop

  /// Whether something keeps the task from going on at once. It is asked often, and is hardly ever true.
  var isHeldUp: Bool { interruption != nil || isSuspended.load(ordering: .relaxed) }

  /// Waits while the task is suspended, and throws if it is to end. Nobody need call it who is not held up.
  func passGate() async throws(URLError) {
    if let interruption { throw URLError.make(interruption) }
    guard isSuspended.load(ordering: .relaxed) else { return }
    suspensionSettled()
    while stopsAtGate, interruption == nil { await Waiter.suspend { gate = $0 } }
    if let interruption { throw URLError.make(interruption) }
  }

  /// Waits for something that an interruption has to end: `giveUp` makes it return. Time counts if it is the load that is
  /// waited for, and not its owner.
  func waiting<T>(
    givingUpBy giveUp: @escaping () -> Void, timeCounts: Bool = false, _ operation: () async -> T
  ) async throws(URLError) -> T {
    if let interruption { throw URLError.make(interruption) }
    if !timeCounts { pauseClock() }
    self.giveUp = giveUp
    let result = await operation()
    self.giveUp = nil
    if !timeCounts { resumeClock() }
    if let interruption { throw URLError.make(interruption) }
    return result
  }

  /// Waits for what strangers' code does, or a disk. (Inlined, it would cost those who do not.)
  @inline(never)
  func doElsewhere(
    on queue: DispatchQueue = .global(qos: .utility), _ work: @escaping @Sendable () -> Void
  ) async throws(URLError) {
    let question = Question<Void>()
    queue.async {
      work()
      question.answer(())
    }
    _ = try await waiting(givingUpBy: { question.giveUp() }, { await question.wait() })
  }

  /// The same on the task of who waits for the result. What needs no waiting may be wanted again and again, while others wait
  /// for the loop.
  @inline(__always)
  func runForCaller() async {
    let turn = engine.loop.turn
    await run()
    if engine.loop.turn == turn { await Task.yield() }
  }

  override func timeIsUp() { interrupted(.timedOut) }

  @inline(__always)
  func run() async {
    var failure: URLError?
    do throws(URLError) {
      if !isUnderWay { try await start() }
      while try await load(machine.request) {
        task.read {
          $0.currentRequest = machine.request
          $0.isElsewhere = machine.isElsewhere
        }
        if isHeldUp { try await passGate() }
      }
    } catch {
      failure = interruption.map { URLError.make($0, Self.words(for: $0)) } ?? error
    }
    stopClock()
    // A protocol's own error, unless the task has been ended before. What comes from here on changes nothing.
    let ownFailure = interruption == nil ? protocolFailure : nil
    if file != nil, failure == nil { await giveFile() }
    var metrics = wantsMetrics ? makeMetrics() : nil
    switch task.output {
    // One way to the queue is enough for the last two calls.
    case .delegate, .dataHandler, .fileHandler: break
    case .dataResult, .fileResult, .bytes: if let told = metrics.take() { await tell(told) }
    }
    if lastTold != nil { await waitForTold() }
    finish(ownFailure ?? failure?.failing(at: machine.request.url).from(scope.failedPeer), metrics)
  }

  private func start() async throws(URLError) {
    countAsStarted()
    // What was done to the task before it had its performer, nobody has told it. What is done meanwhile comes by the mail.
    let state = task.state
    if state == .canceling { interruption = .cancelled }
    isSuspended.store(state == .suspended, ordering: .sequentiallyConsistent)
    startClock()
    // First of all: who cancels a download that was to go on still wants to go on from there.
    try task.prepare(self)
    if isHeldUp { try await passGate() }
  }

  private static func words(for code: URLError.Code) -> String {
    switch code {
    case .cancelled: "cancelled"
    case .timedOut: "The request timed out."
    default: "\(code)"
    }
  }

  /// Another task goes on in place of this one.
  func goOn(as other: URLSessionTask) { task = other }

  /// Loads a request. True: the machine wants another one to be loaded.
  @inline(__always)
  private func load(_ request: URLRequest) async throws(URLError) -> Bool {
    if isUnderWay { return try await goOnFromQuick() }
    guard let url = request.url else { throw URLError.make(.unsupportedURL, "unsupported URL") }
    if core.mayHaveProtocols, let load = try await protocolLoad(for: request) { return try await loadByProtocol(load) }
    let target: LoadTarget
    do throws(LoadTarget.Invalid) {
      target = try LoadTarget.of(url, after: engine.lastTarget)
      engine.lastTarget = target
    } catch {
      switch error {
      case .schemeUnsupported:
        if try await loadLocally(url) { return false }
        throw URLError.make(.unsupportedURL, "unsupported URL", url: url)
      case .hostMissing: throw URLError.make(.badURL, "HTTP URL must have a host", url: url)
      case .hostInvalid: throw URLError.make(.badURL, "the URL's host is invalid", url: url)
      case .portInvalid: throw URLError.make(.badURL, "the URL's port is invalid", url: url)
      case .portZero: throw URLError.make(.cannotConnectToHost, "no server has port 0", url: url)
      }
    }
    return try await loadFromNetwork(request, target)
  }
}
