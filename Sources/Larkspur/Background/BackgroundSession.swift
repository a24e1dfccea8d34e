import Dispatch
import Foundation
import LarkspurTransfers
import Synchronization

/// A program's side of a background session: its tasks, whose loads an executor carries out, and the calls of its
/// delegate.
///
/// A task is journaled when it is resumed for the first time. From then on it outlives the process. A session that is made
/// with the same identifier finds it, shows its present state, and delivers what has not been delivered.
final class BackgroundSession: FinishedAtExit, @unchecked Sendable {
  private struct State {
    var link: any TransferLink
    var tasks: [Int: URLSessionTask] = [:]
    /// The tasks whose last calls wait for their turn.
    var ending: Set<Int> = []
    /// The tasks whose progress waits for its delegate call.
    var progressing: Set<Int> = []
    /// The tasks whose delegate has been told that they continue an earlier download.
    var resumed: Set<Int> = []
  }

  /// Released with this object when the session is over.
  let core: SessionCore
  let calls: BackgroundCalls
  private let state: Mutex<State>

  init(_ core: SessionCore, _ link: any TransferLink) {
    self.core = core
    state = Mutex(State(link: link))
    calls = BackgroundCalls(on: core.delegateQueue)
  }

  /// The connection to the executor. Another one takes its place when the service is lost.
  var link: any TransferLink { state.withLock { $0.link } }

  /// Restores the tasks of earlier processes, and begins to listen to the executor.
  func start(_ session: URLSession) {
    var hasEvents = false
    for record in link.records {
      guard let task = Self.task(of: record, core) else { continue }
      core.adopt(task, session)
      state.withLock { $0.tasks[record.task] = task }
      if !record.events.isEmpty { hasEvents = true }
      deliver(record, to: task)
    }
    if hasEvents {
      calls.add { [core] in
        guard let session = core.keptSession else { return }
        core.delegate?.urlSessionDidFinishEvents(forBackgroundURLSession: session)
      }
    }
    listen(to: link)
    ExitHook.register(self)
  }

  private func listen(to link: any TransferLink) {
    link.start { [weak self] in self?.receive($0) }
    // A challenge that stays in the process keeps all that it has.
    (link as? TransferExecutor)?.answerChallenges { [weak self] number, challenge, answer in
      guard let self, let task = task(number) else { return answer(.performDefaultHandling, nil) }
      answerChallenge(challenge, of: task, answer)
    }
  }

  func flush(_ completion: @escaping @Sendable () -> Void) { link.flush(completion) }

  func close(_ completion: @escaping @Sendable () -> Void) { link.close(completion) }

  /// Lets the journal know what the program has been given. A service that has been stopped does not hold the exit up: the
  /// next process delivers the events once more.
  func finishAtExit() {
    let isDone = DispatchSemaphore(value: 0)
    link.flush { isDone.signal() }
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
    let record = try Self.record(of: task, in: core, contentPath: link.contentPath)
    state.withLock { $0.tasks[task.taskIdentifier] = task }
    link.send(.create(record))
    // The task may have been suspended or cancelled meanwhile, by another thread.
    if task.isSuspended { link.send(.suspend(task: record.task)) }
    if task.state == .canceling { link.send(.cancel(task: record.task, isKeepingContent: false)) }
    return true
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
    guard state.withLock({ $0.tasks[identifier] != nil }) else { return }
    link.send(task.isSuspended ? .suspend(task: identifier) : .resume(task: identifier))
  }

  func cancel(_ task: URLSessionTask) {
    let identifier = task.taskIdentifier
    guard state.withLock({ $0.tasks[identifier] != nil }) else { return }
    link.send(.cancel(task: identifier, isKeepingContent: task.wantsResumeData))
  }

  /// Passes on what the program has changed.
  func propertiesChanged(of task: URLSessionTask) {
    let identifier = task.taskIdentifier
    guard state.withLock({ $0.tasks[identifier] != nil }) else { return }
    link.send(.update(task: identifier, TransferProperties(task)))
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
    let before = task.show { shown -> URLSessionTask.Shown in
      defer { shown.take(counts) }
      return shown
    }
    task.updateProgress()
    if task is URLSessionDownloadTask
      ? before.bytesReceived == counts.received : before.bytesSent == counts.sent
    {
      return
    }
    let identifier = task.taskIdentifier
    guard state.withLock({ $0.progressing.insert(identifier).inserted }) else { return }
    let (from, core) = (before, core)
    calls.add { [weak self] in
      guard let self else { return }
      state.withLock { _ = $0.progressing.remove(identifier) }
      guard task.state != .canceling, let session = task.read({ $0.session }) else { return }
      let now = task.read { $0.shown }
      DelegateCalls.make(Self.progressCall(of: task, from: from, to: now), for: task, of: session, core)
    }
  }

  private static func progressCall(
    of task: URLSessionTask, from: URLSessionTask.Shown, to: URLSessionTask.Shown
  ) -> DelegateCalls.Call {
    { session, delegate in
      if let download = task as? URLSessionDownloadTask {
        guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
        delegate.urlSession(
          session, downloadTask: download, didWriteData: to.bytesReceived - from.bytesReceived,
          totalBytesWritten: to.bytesReceived, totalBytesExpectedToWrite: to.bytesExpectedToReceive)
      } else {
        delegate.urlSession(
          session, task: task, didSendBodyData: to.bytesSent - from.bytesSent, totalBytesSent: to.bytesSent,
          totalBytesExpectedToSend: to.bytesExpectedToSend)
      }
      return true
    }
  }

  // MARK: - The end of a task

  /// Makes the calls for the events of a task, and acknowledges them after the last one.
  private func deliver(_ record: TransferRecord, to task: URLSessionTask) {
    let core = core
    for case .resumed(let offset, let expected) in record.events
    where state.withLock({ $0.resumed.insert(record.task).inserted }) {
      calls.add {
        guard let session = task.read({ $0.session }) else { return }
        Self.make(.resumed(offset, expected), task, session, core)
      }
    }
    guard record.state == .completed, state.withLock({ $0.ending.insert(record.task).inserted }) else { return }
    calls.add { [self] in
      guard let session = task.read({ $0.session }) else { return }
      task.show { shown in
        shown.take(record.counts)
        if let response = record.response?.response { shown.response = response }
        if let request = record.currentRequest.flatMap({ URLRequest($0) }) { shown.currentRequest = request }
      }
      let path = link.contentPath(of: record.task)
      for event in record.events {
        switch event {
        case .resumed: break
        // A process that was killed after its delegate had moved the file did not acknowledge it.
        case .downloaded where FileManager.default.fileExists(atPath: path):
          Self.make(.content(URL(fileURLWithPath: path)), task, session, core)
        case .downloaded: break
        case .completed: Self.complete(task, record, path, session, core)
        }
      }
      link.send(.acknowledge(task: record.task, count: record.events.count))
      state.withLock {
        $0.tasks[record.task] = nil
        $0.resumed.remove(record.task)
        $0.ending.remove(record.task)
      }
      core.ended(task)
    }
  }

  private enum Event {
    case resumed(Int64, Int64)
    case content(URL)
  }

  private static func make(_ event: Event, _ task: URLSessionTask, _ session: URLSession, _ core: SessionCore) {
    guard task.state != .canceling else { return }
    DelegateCalls.make(
      { session, delegate in
        if let download = task as? URLSessionDownloadTask {
          guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
          switch event {
          case .resumed(let offset, let expected):
            delegate.urlSession(
              session, downloadTask: download, didResumeAtOffset: offset, expectedTotalBytes: expected)
          case .content(let url):
            delegate.urlSession(session, downloadTask: download, didFinishDownloadingTo: url)
          }
          return true
        }
        guard case .content(let url) = event, let delegate = delegate as? any URLSessionDataDelegate,
          let data = try? Data(contentsOf: url), let upload = task as? URLSessionUploadTask
        else { return false }
        delegate.urlSession(session, dataTask: upload, didReceive: data)
        return true
      }, for: task, of: session, core)
  }

  private static func complete(
    _ task: URLSessionTask, _ record: TransferRecord, _ path: String, _ session: URLSession, _ core: SessionCore
  ) {
    var failure = record.error
    var resumeData: Data?
    if let error = failure as? URLError, error.code != .cancelled || task.wantsResumeData {
      resumeData = Self.resumeData(of: record, path)
      let key =
        record.kind == .upload ? NSURLSessionUploadTaskResumeData : URLSessionDownloadTaskResumeData
      if let resumeData { failure = error.adding(resumeData: resumeData, for: key) }
    }
    task.resumeDataCall(resumeData)?()
    let isDelivered = record.events.contains(.downloaded) && failure == nil
    let end = task.complete(failure, isDelivered: isDelivered)
    DelegateCalls.make(
      { session, delegate in
        delegate.urlSession(session, task: task, didCompleteWithError: end)
        return true
      }, for: task, of: session, core)
  }

  // MARK: - A lost service

  /// Connects with another executor in place of one that has gone: a service that was stopped or killed.
  private func lost(_ reason: String) {
    BackgroundLink.log(reason)
    DispatchQueue.global().async { [weak self] in
      guard let self else { return }
      do throws(URLError) {
        try resume(with: BackgroundLink.open(core.configuration))
      } catch {
        refuseAll(error)
      }
    }
  }

  /// Continues with the tasks where the journal has them. Commands that the lost executor had not carried out are sent
  /// again.
  private func resume(with new: any TransferLink) throws(URLError) {
    let (tasks, ending) = state.withLock { state in
      state.link = new
      return (state.tasks, state.ending)
    }
    listen(to: new)
    let records = Dictionary(new.records.map { ($0.task, $0) }) { $1 }
    for record in records.values where tasks[record.task] == nil {
      // The program has been given all events of this task.
      new.send(.acknowledge(task: record.task, count: record.events.count))
    }
    for (identifier, task) in tasks where !ending.contains(identifier) {
      if let record = records[identifier] {
        deliver(record, to: task)
      } else {
        new.send(.create(try Self.record(of: task, in: core, contentPath: new.contentPath)))
      }
      new.send(task.isSuspended ? .suspend(task: identifier) : .resume(task: identifier))
      if task.state == .canceling { new.send(.cancel(task: identifier, isKeepingContent: false)) }
    }
  }

  private func refuseAll(_ error: URLError) {
    let tasks = state.withLock { state in
      defer { state.tasks = [:] }
      return state.tasks.values.sorted { $0.taskIdentifier < $1.taskIdentifier }
    }
    for task in tasks { TaskCompletion.refuse(task, error, core) }
  }
}

extension URLSessionTask.Shown {
  mutating func take(_ counts: TransferRecord.Counts) {
    bytesSent = max(counts.sent, 0)
    bytesReceived = max(counts.received, 0)
    bytesExpectedToSend = counts.expectedToSend
    bytesExpectedToReceive = counts.expectedToReceive
  }
}
