import LarkspurHTTP
import Synchronization

/// Uploads that outlive their process. The caller keeps the resume data itself, and guards it: the data has no
/// authentication code.
extension URLSession {
  /// Creates a task that continues an upload, for the delegate, as ``uploadTask(withResumeData:)`` does.
  package func uploadTask(resuming data: UploadResumeData) -> URLSessionUploadTask {
    let task = ResumedUploadTask(core, data, output: .delegate)
    core.register(task, self)
    return task
  }
}

extension URLSessionTask {
  /// Returns the answer to `willPerformHTTPRedirection` of a delegate that makes no choice itself: `request` for a
  /// redirection, and `nil` for an upload resource of another origin, which needs an agreement. On the delegate queue,
  /// before the method returns.
  package func indifferentAnswer(to request: URLRequest) -> URLRequest? {
    let upload = self as? URLSessionUploadTask
    return upload?.isAskedForResource.load(ordering: .sequentiallyConsistent) == true ? nil : request
  }
}

extension URLSessionUploadTask {
  /// The handler of upload points. Set it before the task is first resumed.
  ///
  /// Called on the thread of the session's loop, which it must not block for long: when the server has named the upload
  /// resource, then for each further MiB that the server has acknowledged, and at the end. The data always continues
  /// the upload, also if the process is killed right after the call. `nil` means that the earlier data is of no use any
  /// more: the upload is complete, or its upload resource is gone.
  package var uploadPointHandler: (@Sendable (UploadResumeData?) -> Void)? {
    get { pointHandler.withLock { $0 } }
    set { pointHandler.withLock { $0 = newValue } }
  }
}
