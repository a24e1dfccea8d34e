import Foundation

/// A data task that sends a body.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
  /// Cancels the upload. Nothing to go on from comes of it: an upload can go on only at a server that speaks the draft of
  /// resumable uploads (`draft-ietf-httpbis-resumable-upload`), which this version does not.
  ///
  /// - Parameter completionHandler: Given nil, as Apple documents it for servers without the draft. Called once, on the
  ///   delegate queue.
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

/// An upload that was to go on from resume data: no session has made any.
final class ResumedUploadTask: URLSessionUploadTask, @unchecked Sendable {
  override func prepare(_ transfer: Transfer) throws(URLError) {
    throw .make(.unsupportedURL, "this is no resume data of an upload: uploads cannot go on in this version")
  }
}
