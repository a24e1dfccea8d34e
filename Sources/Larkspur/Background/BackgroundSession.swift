import Dispatch
import Foundation
import LarkspurEngine
import LarkspurTransfers
import Synchronization

/// A program's side of a background session: its tasks, whose loads an executor carries out, and the calls of its
/// delegate.
///
/// A task is journaled when it is resumed for the first time. From then on it outlives the process. A session that is made
/// with the same identifier finds it, shows its present state, and delivers what has not been delivered.
final class BackgroundSession: FinishedAtExit, @unchecked Sendable {
  struct State {
    var link: any TransferLink
    /// Whether the executor has been lost, and another one is searched for.
    var isLost = false
    /// The executor, or `nil` while there is none.
    var liveLink: (any TransferLink)? { isLost || link is AbsentLink ? nil : link }
    /// The session, which may be released before its tasks are over.
    weak var session: URLSession?
    var tasks: [Int: URLSessionTask] = [:]
    /// How often the service has been lost, or was not found again.
    var losses = 0
    /// Whether the session has been invalidated.
    var isEnding = false
    /// Whether `close` has been called: the session gets no other executor.
    var isClosed = false
    /// Whether a connection with an executor is in flight. It takes the session's mark in `EndingSessions` along.
    var isConnecting = false
    /// The functions that wait for the first executor, or `nil` after it has come or has been given up.
    var openings: [@Sendable () -> Void]? = []
    /// Why the session has no executor and gets none.
    var refusal: URLError?
    /// The functions of `flush` that a lost executor has not confirmed.
    var flushes: [@Sendable () -> Void] = []
    /// The tasks whose last calls wait for their turn.
    var ending: Set<Int> = []
    /// The last records of the downloads in `ending` whose files the delegate has left.
    var left: [Int: TransferRecord] = [:]
    /// The tasks whose progress waits for its delegate call.
    var progressing: Set<Int> = []
    /// The tasks whose delegate has been told that they continue an earlier download.
    var resumed: Set<Int> = []
    /// The highest counts of bytes that delegates have been told, by tasks.
    var told: [Int: Int64] = [:]
  }

  /// Released with this object when the session is over.
  let core: SessionCore
  let calls: BackgroundCalls
  let directory: String
  /// The roots for challenges about servers to which the service connects.
  let tls: TLSProvider
  let state: Mutex<State>
  /// Held while the state of a task is read and sent, so that commands have the order of the program's changes.
  let order = Mutex(())

  /// - Parameter directory: The directory of the journal.
  init(_ core: SessionCore, _ link: any TransferLink, in directory: String) {
    self.core = core
    self.directory = directory
    tls = TLSProvider(core.configuration.storage)
    state = Mutex(State(link: link))
    calls = BackgroundCalls(on: core.delegateQueue)
  }

  /// The connection to the executor. Another one takes its place when the service is lost.
  var link: any TransferLink { state.withLock { $0.link } }

  /// Restores the tasks of earlier processes, and begins to listen to the executor.
  ///
  /// - Parameter late: The search for the executor, if it takes long.
  func start(_ session: URLSession, _ late: LinkOpening?) {
    ExitHook.register(self)
    state.withLock { $0.session = session }
    if let late {
      late.whenOver { [weak self] outcome in
        if let self { opened(outcome) } else if case .success(let link) = outcome { link.close {} }
      }
    } else if link is AbsentLink {
      waitForEarlierSession()
    } else {
      restore(link.records, to: session)
      listen(to: link)
      finishOpening()
    }
  }

  /// Calls a function when the tasks of earlier processes have been restored, or it is clear that they cannot be.
  func whenOpened(_ body: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      state.openings?.append(body)
      return state.openings == nil
    }
    if isOver { body() }
  }

  /// Calls the functions that wait for the first executor: it has come, or is not waited for any more.
  func finishOpening() {
    let openings = state.withLock { state in
      defer { state.openings = nil }
      return state.openings ?? []
    }
    for opening in openings { opening() }
    core.finishOpening()
  }

  func restore(_ records: [TransferRecord], to session: URLSession) {
    let link = link
    var hasEvents = false
    for record in records {
      guard let task = Self.task(of: record, core) else {
        // A URL that this version cannot parse: the task can be neither shown nor loaded.
        link.send(.cancel(task: record.task, isKeepingContent: false))
        link.send(.acknowledge(task: record.task, count: TransferRecord.eventsMax))
        continue
      }
      core.adopt(task, session)
      state.withLock { $0.tasks[record.task] = task }
      if !record.events.isEmpty { hasEvents = true }
      deliver(record, to: task)
    }
    if hasEvents { calls.add { [self] in finishEvents() } }
  }

  func listen(to link: any TransferLink) {
    // A challenge that stays in the process keeps all that it has.
    (link as? TransferExecutor)?.answerChallenges { [weak self] number, challenge, answer in
      guard let self, let task = task(number) else { return answer(.performDefaultHandling, nil) }
      answerChallenge(challenge, of: task, answer)
    }
    link.start { [weak self] in self?.receive($0) }
  }

  /// Calls a function when the journal has all tasks that have been resumed, or there will be no executor. If the executor
  /// is lost before that, the next one is asked.
  func flush(_ completion: @escaping @Sendable () -> Void) {
    let link = link
    link.flush { [weak self] isConfirmed in
      guard let self, !isConfirmed else { return completion() }
      let (isReplaced, isOver) = state.withLock { state in
        let isOver = state.isClosed || state.refusal != nil
        if state.link === link, !isOver { state.flushes.append(completion) }
        return (state.link !== link, isOver)
      }
      if isOver { completion() } else if isReplaced { flush(completion) }
    }
  }

  /// Makes a session with the same identifier wait for the end of this one.
  func willEnd() {
    state.withLock { state in
      if !state.isEnding { EndingSessions.add(directory) }
      state.isEnding = true
    }
  }

  func close(_ completion: @escaping @Sendable () -> Void) {
    willEnd()
    let (link, flushes, isConnecting) = state.withLock { state in
      state.isClosed = true
      defer { state.flushes = [] }
      return (state.link, state.flushes, state.isConnecting)
    }
    for flush in flushes { flush() }
    finishOpening()
    link.close { [directory] in
      if !isConnecting { EndingSessions.remove(directory) }
      completion()
    }
  }

  /// Waits until the journal has what the program has been given, and at most `exitSeconds`: after that the next process
  /// delivers the events once more.
  func finishAtExit() {
    // Without an executor nothing but tasks can wait for the journal.
    if state.withLock({ $0.link is AbsentLink && $0.tasks.isEmpty }) { return }
    let isDone = DispatchSemaphore(value: 0)
    flush { isDone.signal() }
    _ = isDone.wait(timeout: .now() + Self.exitSeconds)
  }

  /// Maximum time that the process's exit waits for the executor, in seconds.
  private static let exitSeconds = 5.0

  // MARK: - Tasks

  /// Begins a task that has been resumed for the first time.
  ///
  /// - Returns: `false` if tasks of this kind are loaded in the process.
  /// - Throws: The reason why the task cannot be carried out.
  func begin(_ task: URLSessionTask) throws(URLError) -> Bool {
    guard try Self.isTransfer(task) else { return false }
    // A task that was cancelled before it was resumed.
    if task.state == .canceling { throw URLError.make(.cancelled, "cancelled") }
    var record = try Self.record(of: task, in: core)
    if let link = state.withLock({ $0.liveLink }) { Self.moveContent(of: task, into: &record, link) }
    let refusal = order.withLock { _ -> URLError? in
      let (refusal, link) = state.withLock { state in
        let isCancelled = state.link is AbsentLink && task.state == .canceling
        let refusal = state.refusal ?? (isCancelled ? .make(.cancelled, "cancelled") : nil)
        if refusal == nil { state.tasks[record.task] = task }
        return (refusal, state.liveLink)
      }
      // Without an executor the next one gets all tasks.
      if refusal == nil, let link { create(task, record, by: link) }
      return refusal
    }
    if let refusal { throw refusal }
    return true
  }

  /// Sends a task with all that another thread may have changed meanwhile. Called with `order` held.
  func create(_ task: URLSessionTask, _ record: TransferRecord, by link: any TransferLink) {
    link.send(.create(record))
    sendState(of: task, by: link)
  }

  /// Sends what the program has made of a task so far. Called with `order` held.
  func sendState(of task: URLSessionTask, by link: any TransferLink) {
    let identifier = task.taskIdentifier
    link.send(.update(task: identifier, TransferProperties(task)))
    link.send(task.isSuspended ? .suspend(task: identifier) : .resume(task: identifier))
    if task.state == .canceling { link.send(.cancel(task: identifier, isKeepingContent: task.wantsResumeData)) }
  }

  /// Whether the executor carries a task out. Data tasks, and uploads of data, are loaded in the process: they end with it.
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

  /// - Returns: `false` if the task is loaded in the process.
  func suspensionChanged(of task: URLSessionTask) {
    let identifier = task.taskIdentifier
    order.withLock { _ in
      guard self.task(identifier) != nil else { return }
      link.send(task.isSuspended ? .suspend(task: identifier) : .resume(task: identifier))
    }
  }

  func cancel(_ task: URLSessionTask) {
    let identifier = task.taskIdentifier
    let isUnsent = order.withLock { _ in
      guard self.task(identifier) != nil else { return false }
      let isUnsent = state.withLock { state in
        guard state.link is AbsentLink else { return false }
        state.tasks[identifier] = nil
        return true
      }
      if !isUnsent { link.send(.cancel(task: identifier, isKeepingContent: task.wantsResumeData)) }
      return isUnsent
    }
    // A download that its delegate has left has no other end.
    if state.withLock({ $0.left[identifier] != nil }) { deliverLeft() }
    // No executor has been sent the task, and the first one may come after days.
    if isUnsent { TaskCompletion.refuse(task, .make(.cancelled, "cancelled"), core) }
  }

  /// Passes on what the program has changed.
  func propertiesChanged(of task: URLSessionTask) {
    let identifier = task.taskIdentifier
    order.withLock { _ in
      guard self.task(identifier) != nil else { return }
      link.send(.update(task: identifier, TransferProperties(task)))
    }
  }

  // MARK: - Notices

  private func receive(_ notice: TransferNotice) {
    switch notice {
    case .changed(let record):
      if let task = task(record.task) { deliver(record, to: task) }
    case .progress(let number, let counts):
      guard let task = task(number) else { return }
      show(counts, by: task)
    case .question(let question, let number, let content): answer(question, content, for: task(number))
    case .lost(let reason): lost(reason)
    }
  }

  private func task(_ identifier: Int) -> URLSessionTask? { state.withLock { $0.tasks[identifier] } }

  /// Shows the counts of a running task. Calls of the delegate that have not begun are joined.
  private func show(_ counts: TransferRecord.Counts, by task: URLSessionTask) {
    let (before, after) = Self.update(task) { $0.take(counts) }
    guard Self.bytes(before, of: task) != Self.bytes(after, of: task) else { return }
    let identifier = task.taskIdentifier
    guard state.withLock({ $0.progressing.insert(identifier).inserted }) else { return }
    let (from, core) = (before, core)
    calls.add { [weak self] in
      guard let self else { return }
      state.withLock { _ = $0.progressing.remove(identifier) }
      guard task.state != .canceling, let session = task.read({ $0.session }) else { return }
      let now = task.read { $0.shown }
      let new = newBytes(of: task, from: from, to: now)
      DelegateCalls.make(Self.progressCall(of: task, new: new, now), for: task, of: session, core)
    }
  }

  /// Changes what a task shows.
  ///
  /// - Returns: What the task showed before, and what it shows now.
  static func update(
    _ task: URLSessionTask, by change: (inout URLSessionTask.Shown) -> Void
  ) -> (before: URLSessionTask.Shown, after: URLSessionTask.Shown) {
    defer { task.updateProgress() }
    return task.show { shown in
      let before = shown
      change(&shown)
      return (before, shown)
    }
  }

  /// The count whose growth is the progress of a task.
  static func bytes(_ shown: URLSessionTask.Shown, of task: URLSessionTask) -> Int64 {
    task is URLSessionDownloadTask ? shown.bytesReceived : shown.bytesSent
  }

  /// Returns the number of bytes that no delegate has been told. The count of a task falls with a try that starts over, and
  /// with a service that has been killed.
  func newBytes(of task: URLSessionTask, from: URLSessionTask.Shown, to now: URLSessionTask.Shown) -> Int64 {
    let (before, count) = (Self.bytes(from, of: task), Self.bytes(now, of: task))
    return state.withLock { state in
      let told = state.told[task.taskIdentifier] ?? before
      state.told[task.taskIdentifier] = max(told, count)
      return max(count - told, 0)
    }
  }

  static func progressCall(
    of task: URLSessionTask, new: Int64, _ now: URLSessionTask.Shown
  ) -> DelegateCalls.Call {
    { session, delegate in
      if let download = task as? URLSessionDownloadTask {
        guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
        delegate.urlSession(
          session, downloadTask: download, didWriteData: new, totalBytesWritten: now.bytesReceived,
          totalBytesExpectedToWrite: now.bytesExpectedToReceive)
      } else {
        delegate.urlSession(
          session, task: task, didSendBodyData: new, totalBytesSent: now.bytesSent,
          totalBytesExpectedToSend: now.bytesExpectedToSend)
      }
      return true
    }
  }
}

extension URLSessionTask.Shown {
  mutating func take(_ record: TransferRecord) {
    take(record.counts)
    if let response = record.response?.response { self.response = response }
    if let request = record.currentRequest.flatMap({ URLRequest($0) }) { currentRequest = request }
  }

  mutating func take(_ counts: TransferRecord.Counts) {
    bytesSent = max(counts.sent, 0)
    bytesReceived = max(counts.received, 0)
    bytesExpectedToSend = counts.expectedToSend
    bytesExpectedToReceive = counts.expectedToReceive
  }
}
