import Foundation
import LarkspurTransport

/// The end of a load.
extension Load {
  /// Completes the task, and notifies its owner: the last step of a load.
  func complete(failure: (any Error)?, _ metrics: URLSessionTaskMetrics?) {
    // Breaks a cycle of references: the observer of the current request refers to this load.
    networkLoad = nil
    note(.ended(error: (failure ?? cancellation)?.localizedDescription))
    guard let task = currentTask ?? core.end(self) else {
      self.failure = failure
      return resultHasCome()
    }
    if currentTask == nil { showContent(by: task) }
    let hasGivenFile = download?.hasGivenFile ?? false
    var failure = failure ?? (hasGivenFile ? nil : cancellation)
    var resumeData: Data?
    if let error = failure as? URLError, let data = download?.resumeData(of: task, after: error) {
      resumeData = data
      failure = error.adding(resumeData: data, for: URLSessionDownloadTaskResumeData)
    }
    if let error = failure as? URLError, let data = resumable?.resumeData(after: error) {
      resumeData = data
      failure = error.adding(resumeData: data, for: NSURLSessionUploadTaskResumeData)
    }
    if live?.beginsWithRequest == true, let error = failure as? URLError {
      failure = error.moved(to: error.failingURL?.ofWebSocket)
    }
    challenges?.detach(task)
    failure = task.complete(failure, isDelivered: hasGivenFile)
    live?.ended(failure)
    live = nil
    if case .dataResult = output {
      self.failure = failure
      if let callHandlers = task.resumeDataCall(resumeData) { core.delegateQueue.insist(callHandlers) }
      core.ended(task)
      return resultHasCome()
    }
    let ending = TaskCompletion(task, self, core, failure, content)
    ending.resumeData = resumeData
    ending.metrics = metrics
    // The file of a download that has failed goes before its owner gets the error.
    if failure == nil { ending.file = download?.takeFile() } else { download?.takeFile() }
    if case .delegate = output, callsIfAny?.hasDispatched != true, !needsCall(.completionOnQueue) {
      ending.isForAnyThread = true
    }
    if case .fileResult = output, case .onLoop = caller { return ending.complete() }
    engine.loop.completeAfterTick(ending)
  }

  /// Why the task is to end, if it has been cancelled and the load has not been interrupted yet.
  var cancellation: URLError? {
    currentTask?.state == .canceling ? .make(.cancelled, "cancelled").failing(at: machine.request.url) : nil
  }
}
