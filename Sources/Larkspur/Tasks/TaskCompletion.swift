import Foundation
import LarkspurTransport

/// The end of a task: the last calls to its owner, and its removal from the session.
final class TaskCompletion: LoopCompletion, @unchecked Sendable {
  private let task: URLSessionTask
  private let session: URLSession?
  /// `nil` if the task could not be started.
  private let load: Load?
  private let core: SessionCore
  private let failure: (any Error)?
  private let content: TaskContent
  var file: DownloadFile?
  /// The data from which a failed download can continue.
  var resumeData: Data?
  /// The metrics, if the delegate has not received them yet.
  var metrics: URLSessionTaskMetrics?
  /// Whether the delegate accepts these calls on any thread (`URLSessionDelegateCall.completionOnQueue`).
  var isForAnyThread = false

  init(
    _ task: URLSessionTask, _ load: Load?, _ core: SessionCore, _ failure: (any Error)?, _ content: TaskContent
  ) {
    self.task = task
    self.load = load
    session = load?.session ?? task.read { $0.session }
    self.core = core
    self.failure = failure
    self.content = content
  }

  /// Completes a task that cannot be started.
  static func refuse(_ task: URLSessionTask, _ error: URLError, _ core: SessionCore) {
    let error = error.failing(at: task.originalRequest?.url)
    let completion = TaskCompletion(task, nil, core, error, TaskContent())
    switch task.output {
    case .delegate, .dataHandler, .fileHandler:
      completion.metrics = URLSessionTaskMetrics(
        transactions: [], start: task.creationDate, end: Date(), redirectCount: 0)
    case .dataResult, .fileResult, .bytes: break
    }
    task.complete(error)
    completion.complete()
  }

  /// Makes the last calls on the delegate queue. If the program cancels the operation that carries them, these calls
  /// are dropped, except those of handlers of resume data. The task completes anyway.
  private func notifyOnQueue() {
    core.delegateQueue.async { [self] in
      notify()
    } otherwise: { [self] in
      if let callHandlers = resumeDataCall() { core.delegateQueue.insist(callHandlers) }
      core.ended(task)
    }
  }

  func complete() {
    switch task.output {
    // A caller awaits the result: it resumes without the delegate queue.
    case .dataResult, .fileResult, .bytes: notify()
    case .delegate where isForAnyThread: notify()
    case .delegate, .dataHandler, .fileHandler: notifyOnQueue()
    }
  }

  private func notify() {
    deliverBufferedContent()
    deliverMetrics()
    deliverResumeData()
    switch task.output {
    // Only a task that could not be started comes here. `SessionCore.load(of:)` throws the error to the caller.
    case .dataResult: break
    case .fileResult:
      if failure == nil { file?.giveAway() }
      load?.failure = failure
      load?.resultFile = file?.url
    case .bytes(let channel): channel.finish(failure.map { .failure($0) } ?? .success(()))
    case .dataHandler(let handler):
      if let failure { handler(nil, content.response, failure) } else { handler(content.data, content.response, nil) }
    case .fileHandler(let handler):
      if let failure { handler(nil, content.response, failure) } else { handler(file?.url, content.response, nil) }
    case .delegate: notifyOfCompletion()
    }
    file = nil
    core.ended(task)
    if case .fileResult = task.output { load?.complete() }
  }

  private func deliverResumeData() {
    guard let callHandlers = resumeDataCall() else { return }
    // An awaited download completes on another thread than the delegate queue's, as does the task of a delegate that
    // accepts its last calls on any thread.
    if case .fileResult = task.output { return core.delegateQueue.insist(callHandlers) }
    if isForAnyThread { core.delegateQueue.insist(callHandlers) } else { callHandlers() }
  }

  /// Returns a function that calls the handlers which wait for resume data, or `nil` if there are none.
  private func resumeDataCall() -> (@Sendable () -> Void)? {
    task.resumeDataCall(resumeData)
  }

  /// Gives the delegate the content that was held back for one call.
  private func deliverBufferedContent() {
    // The delegate of a cancelled task gets no content.
    guard content.isBuffered, !content.data.isEmpty, (failure as? URLError)?.code != .cancelled,
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

  private func deliverMetrics() {
    guard let metrics, let session else { return }
    let task = task
    DelegateCalls.make(
      { session, delegate in
        delegate.urlSession(session, task: task, didFinishCollecting: metrics)
        return true
      }, for: task, of: session, core)
  }

  private func notifyOfCompletion() {
    guard let session else { return }
    let (task, failure) = (task, failure)
    DelegateCalls.make(
      { session, delegate in
        delegate.urlSession(session, task: task, didCompleteWithError: failure)
        return true
      }, for: task, of: session, core)
  }
}
