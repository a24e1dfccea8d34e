import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport
import Synchronization

/// Carries out what a task's machine decides, on its session's loop: for tasks that wait for more than a connection and an
/// answer. It runs as one async function to the task's end: what it waits for, it awaits, and so nothing of a task happens twice
/// or out of order.
///
/// Threads. `run` and all state belong to the loop. Who wants to interrupt or suspend it tells its transfer. The delegate is
/// called on the session's delegate queue, one call at a time, and `run` waits for each call to return.
final class TaskPerformer: CrewWork, @unchecked Sendable {
  /// Another one, when a data task becomes a download.
  private(set) var task: URLSessionTask
  let transfer: Transfer
  let session: URLSession
  let core: SessionCore
  let engine: SessionEngine
  let wantsMetrics: Bool
  /// The session's delegate, if it is asked what it wants.
  let selective: (any URLSessionSelectiveDelegate)?
  let companion: Companion?
  var transactions: [URLSessionTaskTransactionMetrics] = []
  /// Of the first task: another one may go on in its place.
  let creationDate: Date
  /// When it was set running.
  let startDate: Date

  /// The last call that nobody has waited for, on a queue that makes several at once. The loop's.
  var lastTold: Task<Void, Never>?
  /// Whether a call has been on its way to the delegate queue.
  var hasTold = false
  /// Whether it is among those that `engine` counts as starting.
  private var isStarting = false

  private struct Own: ~Copyable {
    var machine: TaskMachine
    var content = TaskContent()
  }

  /// What each step of a load changes.
  private let own: Confined<Own>

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
  /// A download's delegate has had its file: from then on the task has succeeded.
  var hasGivenFile = false
  /// Of a download that goes on, or may.
  var download: DownloadState?
  /// The stream of a request that a body has come from.
  var usedStream: InputStream?
  /// Its delegate has heard that there is no network.
  var hasWaitedForConnectivity = false
  var hasTriedAgainAtOnce = false
  lazy var sentBytes = Untold<SentBytes>()
  /// What a program's protocol has failed with: the task's error is this very one.
  var protocolFailure: (any Error)?

  init(_ task: URLSessionTask, of transfer: Transfer) {
    self.task = task
    self.transfer = transfer
    session = transfer.session
    core = transfer.core
    engine = transfer.engine
    own = Confined(Own(machine: TaskMachine(transfer.request)))
    wantsMetrics = transfer.collectsMetrics
    selective = core.selectiveDelegate
    companion = Companion(of: task)
    creationDate = task.creationDate
    startDate = wantsMetrics ? Date() : .distantPast
  }

  /// It is about to run: jobs keep their order, and who comes later does not overtake them on a quicker way.
  func willStart() {
    isStarting = true
    engine.startingCount += 1
  }

  private func countAsStarted() {
    guard isStarting else { return }
    isStarting = false
    engine.startingCount -= 1
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
    _ = try await transfer.waiting(givingUpBy: { question.giveUp() }, { await question.wait() })
  }

  /// Runs on the task of who waits for the result. What needs no waiting may be wanted again and again, while others wait
  /// for the loop.
  @inline(__always)
  func runForCaller() async {
    let turn = engine.loop.tickNumber
    await run()
    if engine.loop.tickNumber == turn { await Task.yield() }
  }

  @inline(__always)
  func run() async {
    var failure: URLError?
    do throws(URLError) {
      if transfer.quick == nil { try await start() }
      while try await load(machine.request) {
        task.show {
          $0.currentRequest = machine.request
          $0.isElsewhere = machine.isElsewhere
        }
        if transfer.isHeldUp { try await transfer.passGate() }
      }
    } catch {
      failure = transfer.interruption.map { URLError.make($0, Self.words(for: $0)) } ?? error
    }
    transfer.stopClock()
    // A protocol's own error, unless the task has been ended before. What comes from here on changes nothing.
    let ownFailure = transfer.interruption == nil ? protocolFailure : nil
    failure = failure ?? cancellation
    if file != nil, failure == nil { await giveFile() }
    var metrics = wantsMetrics ? makeMetrics() : nil
    switch task.output {
    // One way to the queue is enough for the last two calls.
    case .delegate, .dataHandler, .fileHandler: break
    case .dataResult, .fileResult, .bytes: if let told = metrics.take() { await tell(told) }
    }
    if lastTold != nil, !core.isQueueStuck.load(ordering: .relaxed) { await waitForTold() }
    finish(ownFailure ?? failure?.failing(at: machine.request.url).from(transfer.failedPeer), metrics)
  }

  private func start() async throws(URLError) {
    countAsStarted()
    // What was done to the task before it had its performer, nobody has told it. What is done meanwhile comes by the mail.
    let state = task.state
    transfer.begins(isCancelled: state == .canceling, isSuspended: state == .suspended)
    transfer.startClock()
    // First of all: who cancels a download that was to go on still wants to go on from there.
    try task.prepare(self)
    if transfer.isHeldUp { try await transfer.passGate() }
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
    if let quick = transfer.quick.take() { return try await goOn(from: quick) }
    guard let url = request.url else { throw URLError.make(.unsupportedURL, "unsupported URL") }
    if core.mayHaveProtocols, let load = try await protocolLoad(for: request) { return try await loadByProtocol(load) }
    let target: LoadTarget
    do throws(LoadTarget.Invalid) {
      target = try LoadTarget.of(url, after: engine.lastTarget)
      engine.lastTarget = target
    } catch {
      if let response = machine.redirection { keepRedirection(response) }
      if case .schemeUnsupported = error, machine.mayBeLocal, try await loadLocally(url) { return false }
      throw unloadable(url, error)
    }
    return try await loadFromNetwork(request, target)
  }

  private func unloadable(_ url: URL, _ reason: LoadTarget.Invalid) -> URLError {
    let (code, words): (URLError.Code, String) =
      switch reason {
      case .schemeUnsupported: (.unsupportedURL, "unsupported URL")
      case .hostMissing: (.badURL, "HTTP URL must have a host")
      case .hostInvalid: (.badURL, "the URL's host is invalid")
      case .portInvalid: (.badURL, "the URL's port is invalid")
      case .portZero: (.cannotConnectToHost, "no server has port 0")
      }
    guard let redirecting = machine.redirection?.url else { return .make(code, words, url: url) }
    // The failing URL is the one that redirects: a server's text may hold a password.
    return .make(code, "cannot follow to \(url.absoluteString.withoutUserinfo): \(words)", url: redirecting)
  }

  /// Makes the redirecting response the task's, because the redirection cannot be followed: no other response comes.
  private func keepRedirection(_ response: HTTPURLResponse) {
    content.response = task.read { details in
      details.show { $0.response = response }
      return details.shown.response
    }
  }
}
