import Foundation
import Larkspur
import Synchronization

/// Blocks in place of a delegate's methods. They are called on ``operationQueue``, unless the comment names another
/// queue. A block may be set at any time, and also counts for running tasks; `nil` removes it. Without a block the
/// session uses its default, and does not wait for the manager.
extension AFURLSessionManager {
  // MARK: - The session

  /// Sets the block that is called when the session is over. If the program has invalidated the session, the error is
  /// `cancelled`.
  public func setSessionDidBecomeInvalidBlock(_ block: ((URLSession, any Error) -> Void)?) {
    blocks.change { $0.sessionDidBecomeInvalid = block }
  }

  /// Sets the block that decides on the challenges of connections: whether a server is trusted, and which client
  /// certificate it receives. Without this block the task's block or handler decides, or else ``securityPolicy``.
  public func setSessionDidReceiveAuthenticationChallengeBlock(_ block: SessionChallengeBlock?) {
    blocks.change { $0.sessionDidReceiveAuthenticationChallenge = block }
  }

  /// Sets the block that is called on the main queue when all events of a background session have been delivered.
  public func setDidFinishEventsForBackgroundURLSessionBlock(_ block: ((URLSession) -> Void)?) {
    blocks.change { $0.didFinishEvents = block }
  }

  // MARK: - Tasks

  /// Sets the block that returns a body's stream, if it is needed again. Without this block the request's stream is
  /// copied if possible.
  public func setTaskNeedNewBodyStreamBlock(_ block: ((URLSession, URLSessionTask) -> InputStream)?) {
    blocks.change { $0.taskNeedNewBodyStream = block }
  }

  /// Sets the block that decides on a redirection. It returns the next request, or `nil` to make the redirecting
  /// response the result.
  public func setTaskWillPerformHTTPRedirectionBlock(
    _ block: ((URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
  ) { blocks.change { $0.taskWillPerformHTTPRedirection = block } }

  /// Sets the handler that decides on a challenge. Its result is one of:
  ///
  /// - a `URLCredential`, which is used;
  /// - an error, which ends the task and is passed to the task's handler;
  /// - a `URLSession.AuthChallengeDisposition` other than `useCredential`, or its raw value as an `NSNumber`. For
  ///   server trust, `performDefaultHandling` evaluates ``securityPolicy``;
  /// - `nil`, if the handler calls the completion itself, now or later, on any thread.
  ///
  /// Any other result ends the task with an error.
  public func setAuthenticationChallengeHandler(_ authenticationChallengeHandler: AuthenticationChallengeHandler?) {
    blocks.change { $0.authenticationChallengeHandler = authenticationChallengeHandler }
  }

  /// Sets the block that decides on a challenge, as in versions 2 and 3. It replaces the security policy.
  public func setTaskDidReceiveAuthenticationChallengeBlock(_ block: TaskChallengeBlock?) {
    blocks.change { $0.taskDidReceiveAuthenticationChallenge = block }
  }

  /// Sets the block that is called while a body is sent: bytes sent now, bytes sent in total, and bytes expected in
  /// total, which is -1 if unknown.
  public func setTaskDidSendBodyDataBlock(_ block: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?) {
    blocks.change { $0.taskDidSendBodyData = block }
  }

  /// Sets the block that is called when a task is over, before the task's handler.
  public func setTaskDidCompleteBlock(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
    blocks.change { $0.taskDidComplete = block }
  }

  /// Sets the block that is called with the metrics of a task when it is over.
  public func setTaskDidFinishCollectingMetricsBlock(
    _ block: ((URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
  ) { blocks.change { $0.taskDidFinishCollectingMetrics = block } }

  // MARK: - Data tasks

  /// Sets the block that decides how a task continues after its response's head.
  public func setDataTaskDidReceiveResponseBlock(_ block: ResponseBlock?) {
    blocks.change { $0.dataTaskDidReceiveResponse = block }
  }

  /// Sets the block that is called when a data task becomes a download task.
  public func setDataTaskDidBecomeDownloadTaskBlock(
    _ block: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
  ) { blocks.change { $0.dataTaskDidBecomeDownloadTask = block } }

  /// Sets the block that is called with each piece of the content as it arrives.
  public func setDataTaskDidReceiveDataBlock(_ block: ((URLSession, URLSessionDataTask, Data) -> Void)?) {
    blocks.change { $0.dataTaskDidReceiveData = block }
  }

  /// Sets the block that decides which response is stored in the cache.
  public func setDataTaskWillCacheResponseBlock(
    _ block: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse)?
  ) { blocks.change { $0.dataTaskWillCacheResponse = block } }

  // MARK: - Download tasks

  /// Sets the block that returns the location for a download's file. It is called before the task's own destination,
  /// which is called if this block returns `nil`.
  ///
  /// A complete download of a background session waits for the block if it has neither a destination nor a handler, such
  /// as one of an earlier process. Its file stays, also until a later process, and the task is not over.
  public func setDownloadTaskDidFinishDownloadingBlock(
    _ block: ((URLSession, URLSessionDownloadTask, URL) -> URL?)?
  ) {
    blocks.change { $0.downloadTaskDidFinishDownloading = block }
    if block != nil { state.withLock { $0.session }?.deliverLeftFiles() }
  }

  /// Sets the block that is called while content is written: bytes written now, bytes written in total, and bytes
  /// expected in total, which is -1 if unknown.
  public func setDownloadTaskDidWriteDataBlock(
    _ block: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
  ) { blocks.change { $0.downloadTaskDidWriteData = block } }

  /// Sets the block that is called when a download is resumed: the offset, and the bytes expected in total.
  public func setDownloadTaskDidResumeBlock(_ block: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?) {
    blocks.change { $0.downloadTaskDidResume = block }
  }
}

// Alternative names without the word `Block`: Apple's importer drops it where it only repeats the parameter's type,
// depending on the compiler's version.
extension AFURLSessionManager {
  /// See ``setSessionDidBecomeInvalidBlock(_:)``.
  public func setSessionDidBecomeInvalid(_ block: ((URLSession, any Error) -> Void)?) {
    setSessionDidBecomeInvalidBlock(block)
  }

  /// See ``setSessionDidReceiveAuthenticationChallengeBlock(_:)``.
  public func setSessionDidReceiveAuthenticationChallenge(_ block: SessionChallengeBlock?) {
    setSessionDidReceiveAuthenticationChallengeBlock(block)
  }

  /// See ``setDidFinishEventsForBackgroundURLSessionBlock(_:)``.
  public func setDidFinishEventsForBackgroundURLSession(_ block: ((URLSession) -> Void)?) {
    setDidFinishEventsForBackgroundURLSessionBlock(block)
  }

  /// See ``setTaskNeedNewBodyStreamBlock(_:)``.
  public func setTaskNeedNewBodyStream(_ block: ((URLSession, URLSessionTask) -> InputStream)?) {
    setTaskNeedNewBodyStreamBlock(block)
  }

  /// See ``setTaskWillPerformHTTPRedirectionBlock(_:)``.
  public func setTaskWillPerformHTTPRedirection(
    _ block: ((URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
  ) { setTaskWillPerformHTTPRedirectionBlock(block) }

  /// See ``setTaskDidReceiveAuthenticationChallengeBlock(_:)``.
  public func setTaskDidReceiveAuthenticationChallenge(_ block: TaskChallengeBlock?) {
    setTaskDidReceiveAuthenticationChallengeBlock(block)
  }

  /// See ``setTaskDidSendBodyDataBlock(_:)``.
  public func setTaskDidSendBodyData(_ block: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?) {
    setTaskDidSendBodyDataBlock(block)
  }

  /// See ``setTaskDidCompleteBlock(_:)``.
  public func setTaskDidComplete(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
    setTaskDidCompleteBlock(block)
  }

  /// See ``setTaskDidFinishCollectingMetricsBlock(_:)``.
  public func setTaskDidFinishCollectingMetrics(
    _ block: ((URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
  ) { setTaskDidFinishCollectingMetricsBlock(block) }

  /// See ``setDataTaskDidReceiveResponseBlock(_:)``.
  public func setDataTaskDidReceiveResponse(_ block: ResponseBlock?) { setDataTaskDidReceiveResponseBlock(block) }

  /// See ``setDataTaskDidBecomeDownloadTaskBlock(_:)``.
  public func setDataTaskDidBecomeDownloadTask(
    _ block: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
  ) { setDataTaskDidBecomeDownloadTaskBlock(block) }

  /// See ``setDataTaskDidReceiveDataBlock(_:)``.
  public func setDataTaskDidReceiveData(_ block: ((URLSession, URLSessionDataTask, Data) -> Void)?) {
    setDataTaskDidReceiveDataBlock(block)
  }

  /// See ``setDataTaskWillCacheResponseBlock(_:)``.
  public func setDataTaskWillCacheResponse(
    _ block: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse)?
  ) { setDataTaskWillCacheResponseBlock(block) }

  /// See ``setDownloadTaskDidFinishDownloadingBlock(_:)``.
  public func setDownloadTaskDidFinishDownloading(_ block: ((URLSession, URLSessionDownloadTask, URL) -> URL?)?) {
    setDownloadTaskDidFinishDownloadingBlock(block)
  }

  /// See ``setDownloadTaskDidWriteDataBlock(_:)``.
  public func setDownloadTaskDidWriteData(
    _ block: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
  ) { setDownloadTaskDidWriteDataBlock(block) }

  /// See ``setDownloadTaskDidResumeBlock(_:)``.
  public func setDownloadTaskDidResume(_ block: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?) {
    setDownloadTaskDidResumeBlock(block)
  }
}
