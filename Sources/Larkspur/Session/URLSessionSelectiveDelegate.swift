/// The calls that a delegate may do without. Each of them costs a way to the delegate queue, and some keep the task
/// waiting for the answer.
public enum URLSessionDelegateCall: Sendable {
  /// `urlSession(_:dataTask:didReceive:completionHandler:)`. Without it the response is allowed.
  case response
  /// `urlSession(_:dataTask:didReceive:)`, for each piece of the content as it comes. Without it the content is kept in
  /// memory, and is given in one call before the last ones.
  case pieces
  /// `urlSession(_:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:)`.
  case sentBody
  /// `urlSession(_:task:didReceiveInformationalResponse:)`.
  case informationalResponse
  /// `urlSession(_:downloadTask:didWriteData:totalBytesWritten:totalBytesExpectedToWrite:)`.
  case writtenData
  /// `urlSession(_:dataTask:willCacheResponse:completionHandler:)`. Without it the response is stored as it is.
  case cachedResponse
  /// `urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)`. Without it the redirection is
  /// followed.
  case redirection
  /// No call of its own, but the way to the delegate queue for a task's last calls: the content that was kept, the
  /// metrics, the end. Without it they are made at once, where the task has ended, and must not keep that thread. A
  /// task whose delegate has been called on the queue before makes them there in any case.
  case endOnQueue
}

/// A session's delegate whose wishes change: it is asked before a call is made, and hears of what happens to its tasks.
///
/// An addition of Larkspur's. Where there is an Objective-C runtime, a session asks a delegate by `responds(to:)` which
/// calls it wants, and a library can learn by the runtime that a task has been resumed. Swift has neither: a delegate
/// of this protocol is asked, and told.
public protocol URLSessionSelectiveDelegate: URLSessionTaskDelegate {
  /// Whether the session is to make a call. Asked on any thread, often, for each call anew: the answer has to come at
  /// once. That may be within `resume()`, so whoever resumes a task holds no lock that the answer needs. A task that has
  /// a delegate of its own makes all calls.
  func urlSession(_ session: URLSession, wants call: URLSessionDelegateCall, for task: URLSessionTask) -> Bool

  /// A suspended task is about to run, or to go on. Called on the thread that resumes it, at once: the task's other calls
  /// follow when this one has returned. It may suspend or cancel the task, which then does not run.
  func urlSession(_ session: URLSession, didResume task: URLSessionTask)

  /// A task that ran stands still. Called on the thread that has suspended it, at once.
  func urlSession(_ session: URLSession, didSuspend task: URLSessionTask)

  /// A task is over, and nothing more happens to it: also one whose end somebody else was told, as a completion handler, or
  /// who awaited it. Called on the thread where that has happened, and not to be kept.
  func urlSession(_ session: URLSession, didEnd task: URLSessionTask)
}

extension URLSessionSelectiveDelegate {
  /// Does nothing.
  public func urlSession(_ session: URLSession, didEnd task: URLSessionTask) {}
}
