import Foundation

/// A data task that sends a body.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
  /// Cancels the upload. No resume data results: an upload can continue only at a server that supports the draft of
  /// resumable uploads (`draft-ietf-httpbis-resumable-upload`), which this version does not support.
  ///
  /// - Parameter completionHandler: Called once, with `nil`, as Apple documents it for servers without the draft.
  ///   Called on the delegate queue, or at once if the task belongs to no session.
  open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
    guard let core else { return completionHandler(nil) }
    cancel()
    core.delegateQueue.insist { completionHandler(nil) }
  }

  /// See ``cancel(byProducingResumeData:)``.
  public final func cancelByProducingResumeData() async -> Data? {
    await withCheckedContinuation { continuation in
      cancel(byProducingResumeData: { continuation.resume(returning: $0) })
    }
  }
}

/// An upload from resume data. Fails, because no session makes resume data of uploads.
final class ResumedUploadTask: URLSessionUploadTask, @unchecked Sendable {
  override func prepare(_ transfer: Transfer) throws(URLError) {
    throw .make(.unsupportedURL, "this is no resume data of an upload: uploads cannot go on in this version")
  }
}
