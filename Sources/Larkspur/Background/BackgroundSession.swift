import Dispatch
import Foundation
import LarkspurEngine
import LarkspurTransfers
import Synchronization

/// A program's side of a background session: carries out the decisions of `SessionLinkMachine`.
///
/// Each change of the program, each notice of the runner and each delegate call is a fact for the machine. One thread at
/// a time carries out its actions, in their order.
final class BackgroundSession: FinishedAtExit, @unchecked Sendable {
  struct State {
    var machine = SessionLinkMachine()
    /// The actions that have not been carried out.
    var actions: SessionLinkMachine.Actions = []
    /// Whether a thread carries actions out.
    var isPerforming = false
    /// The runner, or `nil` while there is none.
    var link: (any TransferLink)?
    /// The runner that was found last, until the action `attach`.
    var found: (any TransferLink)?
    /// The session, which may be released before its tasks are over.
    weak var session: URLSession?
    var tasks: [Int: URLSessionTask] = [:]
    /// The functions that wait for the tasks of earlier processes, or `nil` after the action `finishOpening`.
    var openings: [@Sendable () -> Void]? = []
    /// The functions of `flush` that have not been called.
    var flushes: [Int: @Sendable () -> Void] = [:]
    var lastFlush = 0
    /// The function of `close`.
    var closing: (@Sendable () -> Void)?
  }

  /// Released with this object when the session is over.
  let core: SessionCore
  let calls: BackgroundCalls
  let directory: String
  /// The roots for challenges about servers to which the service connects.
  let tls: TLSProvider
  let state = Mutex(State())

  /// - Parameter directory: The directory of the journal.
  init(_ core: SessionCore, in directory: String) {
    self.core = core
    self.directory = directory
    tls = TLSProvider(core.configuration.storage)
    calls = BackgroundCalls(on: core.delegateQueue)
  }

  private var link: (any TransferLink)? { state.withLock { $0.link } }

  /// Whether the runner is the user's transfer service, also while the service is lost.
  var isServed: Bool {
    state.withLock { state in
      if case .lost = state.machine.state { true } else { state.link is TransferClient }
    }
  }

  func task(_ number: Int) -> URLSessionTask? { state.withLock { $0.tasks[number] } }

  /// The path of the file with a task's received bytes.
  func contentPath(of task: Int) -> String { "\(directory)/\(TransferFileName.content(of: task))" }

  // MARK: - Facts and actions

  /// Passes a fact to the machine, and carries out the actions unless another thread does so.
  ///
  /// - Parameter fact: Called with the lock held, so that facts have the order of the program's changes that they read.
  @discardableResult func report<T: Sendable>(_ fact: (inout State) -> T) -> T {
    let (result, isFirst) = state.withLock { state in
      let result = fact(&state)
      let isFirst = !state.isPerforming && !state.actions.isEmpty
      if isFirst { state.isPerforming = true }
      return (result, isFirst)
    }
    if isFirst { perform() }
    return result
  }

  private func perform() {
    while true {
      let actions = state.withLock { state in
        defer { state.actions = [] }
        state.isPerforming = !state.actions.isEmpty
        return state.actions
      }
      if actions.isEmpty { return }
      for action in actions { perform(action) }
    }
  }

  private func perform(_ action: SessionLinkMachine.Action) {
    switch action {
    case .pause(let time): report(after: time) { $0.machine.pauseOver(into: &$0.actions) }
    case .watch(let time, let number): report(after: time) { $0.machine.held(number) }
    // Connecting may block for seconds.
    case .connect: DispatchQueue.global().async { [self] in connect() }
    case .attach: state.withLock { $0.link = $0.found.take() }
    case .detach:
      let lost = state.withLock { $0.link.take() }
      withExtendedLifetime(lost) {}
    case .listen(let number): listen(number)
    case .closeLink: link?.close { [self] in report { $0.machine.linkClosed(into: &$0.actions) } }
    case .send(let command): link?.send(command)
    case .create(var record):
      if let task = task(record.task) { Self.moveContent(of: task, into: &record, to: contentPath(of: record.task)) }
      link?.send(.create(record))
    case .flush(let number):
      link?.flush { [self] isConfirmed in
        report { $0.machine.flushed(number, isConfirmed: isConfirmed, into: &$0.actions) }
      }
    case .adopt(let record): adopt(record)
    case .show(let number): show(number)
    case .call(let call): calls.add { [self] in make(call) }
    case .ask(let question, let task, let content, let number):
      ask(content, for: task) { [self] answer in
        report { $0.machine.answered(question, answer, to: number, into: &$0.actions) }
      }
    case .refuse(let number, let refusal): refuse(number, refusal)
    case .finishOpening:
      for opening in state.withLock({ $0.openings.take() }) ?? [] { opening() }
      core.finishOpening()
    case .confirmFlush(let number): state.withLock { $0.flushes.removeValue(forKey: number) }?()
    case .releaseIdentifier: EndingSessions.remove(directory)
    case .finishClosing: state.withLock { $0.closing.take() }?()
    }
  }

  private func listen(_ number: Int) {
    guard let link else { return }
    // A challenge that stays in the process keeps all that it has.
    (link as? TransferRunner)?.answerChallenges { [weak self] task, challenge, answer in
      guard let self, let task = self.task(task) else { return answer(.performDefaultHandling, nil) }
      answerChallenge(challenge, of: task, answer)
    }
    link.start { [weak self] notice in
      if case .lost(let reason) = notice { BackgroundLink.log(reason) }
      self?.report { $0.machine.received(notice, from: number, into: &$0.actions) }
    }
  }

  /// Ends a task that no runner carries out.
  private func refuse(_ number: Int, _ refusal: SessionLinkMachine.Refusal) {
    guard let task = state.withLock({ $0.tasks.removeValue(forKey: number) }) else { return }
    TaskCompletion.refuse(task, task.state == .canceling ? error(.cancelled) : error(refusal), core)
  }

  private func error(_ refusal: SessionLinkMachine.Refusal) -> URLError {
    switch refusal {
    case .cancelled: .make(.cancelled, "cancelled")
    case .link(let error): BackgroundLink.error(error, core.configuration.identifier ?? "")
    }
  }

  // MARK: - The session

  /// Calls a function when the tasks of earlier processes have been restored, or it is clear that they cannot be.
  func whenOpened(_ body: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      state.openings?.append(body)
      return state.openings == nil
    }
    if isOver { body() }
  }

  /// Calls a function when the journal has all tasks that have been resumed, or there will be no runner. If the runner
  /// is lost before that, the next one is asked.
  func flush(_ completion: @escaping @Sendable () -> Void) {
    report { state in
      state.lastFlush += 1
      state.flushes[state.lastFlush] = completion
      state.machine.flush(state.lastFlush, into: &state.actions)
    }
  }

  /// Makes a session with the same identifier wait for the end of this one.
  func willEnd() { report { if $0.machine.willEnd() { EndingSessions.add(directory) } } }

  func close(_ completion: @escaping @Sendable () -> Void) {
    willEnd()
    report { state in
      state.closing = completion
      state.machine.close(into: &state.actions)
    }
  }

  /// Waits until the journal has recorded the events delivered to the program, and at most `exitSeconds`. After a
  /// time-out the next process delivers these events again.
  func finishAtExit() {
    if state.withLock({ $0.machine.hasNothingToFlush }) { return }
    let isDone = DispatchSemaphore(value: 0)
    flush { isDone.signal() }
    _ = isDone.wait(timeout: .now() + Self.exitSeconds)
  }

  /// Maximum time that the process's exit waits for the runner, in seconds.
  private static let exitSeconds = 5.0

  // MARK: - Tasks

  /// Begins a task that has been resumed for the first time.
  ///
  /// - Returns: `false` if tasks of this kind are loaded in the process.
  /// - Throws: The reason why the task cannot be carried out.
  func begin(_ task: URLSessionTask) throws(URLError) -> Bool {
    if case .refused(let error) = state.withLock({ $0.machine.state }) { throw self.error(.link(error)) }
    guard try Self.isTransfer(task) else { return false }
    // A task that was cancelled before it was resumed.
    if task.state == .canceling { throw error(.cancelled) }
    let record = try Self.record(of: task, in: core)
    let refusal = report { state in
      // Another thread may have changed the task meanwhile.
      var record = record
      record.take(TransferProperties(task))
      record.state = task.state == .canceling ? .canceling : task.isSuspended ? .suspended : .running
      let refusal = state.machine.begin(record, isKeepingContent: task.needsResumeData, into: &state.actions)
      if refusal == nil { state.tasks[record.task] = task }
      return refusal
    }
    if let refusal { throw error(refusal) }
    return true
  }

  /// Whether the runner carries a task out. Data tasks, and uploads of data, are loaded in the process: they end with it.
  private static func isTransfer(_ task: URLSessionTask) throws(URLError) -> Bool {
    switch task.output {
    case .dataHandler, .fileHandler:
      throw URLError.make(
        .unsupportedURL, "background sessions call no completion handlers, which end with the process: use a delegate")
    case .dataResult, .fileResult, .bytes:
      throw URLError.make(
        .unsupportedURL, "no caller awaits a background session's loads, which outlive the process: use a delegate")
    case .delegate: break
    }
    if case .file = task.source, task is URLSessionUploadTask { return true }
    return task is URLSessionDownloadTask
  }

  func suspensionChanged(of task: URLSessionTask) {
    report {
      $0.machine.suspensionChanged(of: task.taskIdentifier, isSuspended: task.isSuspended, into: &$0.actions)
    }
  }

  func cancel(_ task: URLSessionTask) {
    report { $0.machine.cancel(task.taskIdentifier, isKeepingContent: task.needsResumeData, into: &$0.actions) }
  }

  /// Passes on the program's changes.
  func propertiesChanged(of task: URLSessionTask) {
    report { $0.machine.update(task.taskIdentifier, TransferProperties(task), into: &$0.actions) }
  }
}
