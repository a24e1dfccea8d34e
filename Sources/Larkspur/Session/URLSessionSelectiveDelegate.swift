/// The calls that a selective delegate may do without. Each call costs a dispatch to the delegate queue, and for some
/// calls the task waits for the answer.
public enum URLSessionDelegateCall: Sendable {
  /// `urlSession(_:dataTask:didReceive:completionHandler:)`. Without this call the response is allowed.
  case response
  /// `urlSession(_:dataTask:didReceive:)`, for each piece of the content as it arrives. Without this call the session
  /// keeps the content in memory, and delivers it in one call before the last calls.
  case didReceiveData
  /// `urlSession(_:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:)`.
  case sentBody
  /// `urlSession(_:task:didReceiveInformationalResponse:)`.
  case informationalResponse
  /// `urlSession(_:downloadTask:didWriteData:totalBytesWritten:totalBytesExpectedToWrite:)`.
  case writtenData
  /// `urlSession(_:dataTask:willCacheResponse:completionHandler:)`. Without this call the response is stored unchanged.
  case cachedResponse
  /// `urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)`. Without this call the redirection
  /// is followed, and no upload resource of another origin is used (<doc:Resuming>).
  case redirection
  /// The dispatch of a task's last calls to the delegate queue, which is not itself a call. The last calls are the
  /// content that was kept, the metrics and the end. Without the dispatch the session makes these calls at once, on the
  /// thread on which the task has ended, and they must not block that thread. If the session has called the task's
  /// delegate on the queue before, it makes the last calls there in any case.
  case completionOnQueue
}

/// A session's delegate that chooses, each time anew, the calls that it gets, and that is notified of the events of its
/// tasks.
///
/// An addition of Larkspur's. With an Objective-C runtime, a session finds out by `responds(to:)` which methods a
/// delegate implements, and a library finds out by the runtime that a task has been resumed. Swift offers neither, so
/// the session calls the methods of this protocol.
public protocol URLSessionSelectiveDelegate: URLSessionTaskDelegate {
  /// Returns whether the session makes a call. Called on any thread, often, and anew for each call: the method has to
  /// return at once. The call may come within `resume()`, so code that resumes a task must not hold a lock that this
  /// method needs. For a task with a task delegate the session makes all calls.
  func urlSession(_ session: URLSession, wants call: URLSessionDelegateCall, for task: URLSessionTask) -> Bool

  /// A suspended task is about to start or to resume. Called at once on the thread that resumes the task: the task's
  /// other calls follow when this one has returned. The method may suspend or cancel the task, which then does not run.
  func urlSession(_ session: URLSession, didResume task: URLSessionTask)

  /// A running task has been suspended. Called at once on the thread that has suspended the task.
  func urlSession(_ session: URLSession, didSuspend task: URLSessionTask)

  /// A task is over, and nothing more happens to it. Called for each task of the session, also for a task whose result
  /// goes to a completion handler or to an async function. Called on the thread on which the task has ended; the method
  /// must not block that thread.
  func urlSession(_ session: URLSession, didEnd task: URLSessionTask)
}

extension URLSessionSelectiveDelegate {
  /// Does nothing.
  public func urlSession(_ session: URLSession, didEnd task: URLSessionTask) {}
}
