import Foundation

/// Handlers of resume data, for the kinds of tasks that can be resumed.
extension URLSessionTask {
  /// Cancels the task, and calls the handler once with its resume data, on the delegate queue. A task that belongs to no
  /// session calls it at once, with `nil`.
  func cancel(thenCalling handler: ResumeDataHandler) {
    guard let core else { return handler.call(nil) }
    let isOver = read { details -> Bool in
      // Handlers that are stored before the end are called at the end.
      if details.state != .completed { details.resumeDataHandlers.append(handler) }
      return details.state == .completed
    }
    if isOver { core.delegateQueue.insist { handler.call(nil) } } else { cancel() }
  }

  var needsResumeData: Bool { read { !$0.resumeDataHandlers.isEmpty } }

  /// Takes the handlers that wait for resume data.
  ///
  /// - Returns: A function that calls the handlers, or `nil` if there are none.
  func resumeDataCall(_ data: Data?) -> (@Sendable () -> Void)? {
    let handlers = read { details in
      defer { details.resumeDataHandlers = [] }
      return details.resumeDataHandlers
    }
    guard !handlers.isEmpty else { return nil }
    return { for handler in handlers { handler.call(data) } }
  }
}
