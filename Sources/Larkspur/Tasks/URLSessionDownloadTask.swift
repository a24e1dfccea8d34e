import Foundation

/// Loads a URL into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
  /// Cancels the download so that it can go on later, with ``URLSession/downloadTask(withResumeData:)``.
  ///
  /// - Parameter completionHandler: Given nil if it cannot: the server has not said which version of the resource it sends
  ///   (RFC 9110 13.1.5), or nothing has come yet. Called on the delegate queue.
  open func cancel(byProducingResumeData completionHandler: @escaping (Data?) -> Void) {
    let handler = ResumeDataHandler(completionHandler)
    guard let core else { return handler.call(nil) }
    let isOver = read { details -> Bool in
      details.resumeDataHandlers.append(handler)
      return details.state == .completed
    }
    guard !isOver else {
      for handler in takeResumeDataHandlers() { core.delegateQueue.async { handler.call(nil) } }
      return
    }
    cancel()
  }

  func takeResumeDataHandlers() -> [ResumeDataHandler] {
    read { details in
      defer { details.resumeDataHandlers = [] }
      return details.resumeDataHandlers
    }
  }
}

/// A handler that is called once, on the delegate queue.
struct ResumeDataHandler: @unchecked Sendable {
  private let handler: (Data?) -> Void

  init(_ handler: @escaping (Data?) -> Void) { self.handler = handler }

  func call(_ data: Data?) { handler(data) }
}
