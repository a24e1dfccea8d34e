import Foundation
import LarkspurTransport

/// The end of a task: its state, and the last call to its owner.
final class TaskEnding: LoopCompletion, @unchecked Sendable {
  private let task: URLSessionTask
  private let session: URLSession?
  /// Nil: the task could not begin.
  private let transfer: Transfer?
  private let core: SessionCore
  private let failure: (any Error)?
  private let content: TaskContent
  var file: DownloadFile?
  /// What a download that has failed can go on from.
  var resumeData: Data?
  /// For a delegate that has not heard of them yet.
  var metrics: URLSessionTaskMetrics?
  /// The delegate does not mind where it is told.
  var isForAnyThread = false

  init(
    _ task: URLSessionTask, _ transfer: Transfer?, _ core: SessionCore, _ failure: (any Error)?, _ content: TaskContent
  ) {
    self.task = task
    self.transfer = transfer
    session = transfer?.session ?? task.read { $0.session }
    self.core = core
    self.failure = failure
    self.content = content
  }

  /// For a task that cannot begin.
  static func refuse(_ task: URLSessionTask, _ error: URLError, _ core: SessionCore) {
    let error = error.failing(at: task.originalRequest?.url)
    let ending = TaskEnding(task, nil, core, error, TaskContent())
    switch task.output {
    case .delegate, .dataHandler, .fileHandler:
      ending.metrics = URLSessionTaskMetrics(transactions: [], start: task.creationDate, end: Date(), redirectCount: 0)
    case .dataResult, .fileResult, .bytes: break
    }
    task.complete(error)
    ending.complete()
  }

  /// Who cancels the last call does without it. The task is over all the same.
  private func tellLater() {
    core.delegateQueue.async { [self] in
      tell()
    } otherwise: { [self] in
      if let telling = tellingOfResumeData() { core.delegateQueue.insist(telling) }
      core.ended(task)
    }
  }

  func complete() {
    switch task.output {
    // Nobody is called: it is the caller who waits.
    case .dataResult, .fileResult, .bytes: tell()
    case .delegate where isForAnyThread: tell()
    case .delegate, .dataHandler, .fileHandler: tellLater()
    }
  }

  private func tell() {
    tellRest()
    tellMetrics()
    tellResumeData()
    switch task.output {
    // The performer has given it what it waits for.
    case .dataResult: break
    case .fileResult:
      if failure == nil { file?.giveAway() }
      transfer?.failure = failure
      transfer?.resultFile = file?.url
    case .bytes(let channel): channel.finish(failure.map { .failure($0) } ?? .success(()))
    case .dataHandler(let handler):
      if let failure { handler(nil, content.response, failure) } else { handler(content.data, content.response, nil) }
    case .fileHandler(let handler):
      if let failure { handler(nil, content.response, failure) } else { handler(file?.url, content.response, nil) }
    case .delegate: tellDelegate()
    }
    file = nil
    core.ended(task)
    if case .fileResult = task.output { transfer?.complete() }
  }

  private func tellResumeData() {
    guard let telling = tellingOfResumeData() else { return }
    // This runs on the queue already, unless it is an async function that waits.
    if case .fileResult = task.output { core.delegateQueue.insist(telling) } else { telling() }
  }

  /// The calls of those who wait for what the download can go on from. Nil: nobody does.
  private func tellingOfResumeData() -> (@Sendable () -> Void)? {
    let handlers = (task as? URLSessionDownloadTask)?.takeResumeDataHandlers() ?? []
    guard !handlers.isEmpty else { return nil }
    return { [resumeData] in for handler in handlers { handler.call(resumeData) } }
  }

  /// What a delegate that gets all of the content at once has not got yet.
  private func tellRest() {
    // Who has cancelled the task gets none of it.
    guard content.isHeldBack, !content.data.isEmpty, (failure as? URLError)?.code != .cancelled,
      let dataTask = task as? URLSessionDataTask, let session
    else { return }
    let (data, core) = (content.data, core)
    DelegateCalls.make(
      { session, delegate in
        guard let delegate = core.dataDelegate(delegate) else { return false }
        delegate.urlSession(session, dataTask: dataTask, didReceive: data)
        return true
      }, for: task, of: session, core)
  }

  private func tellMetrics() {
    guard let metrics, let session else { return }
    let task = task
    DelegateCalls.make(
      { session, delegate in
        delegate.urlSession(session, task: task, didFinishCollecting: metrics)
        return true
      }, for: task, of: session, core)
  }

  private func tellDelegate() {
    guard let session else { return }
    let (task, failure) = (task, failure)
    DelegateCalls.make(
      { session, delegate in
        delegate.urlSession(session, task: task, didCompleteWithError: failure)
        return true
      }, for: task, of: session, core)
  }
}
