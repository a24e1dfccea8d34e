import Foundation
import Larkspur

/// The blocks that take the place of a delegate's methods. Each is called on ``operationQueue``, may be set at any
/// time, and counts from then on, also for tasks that run; nil takes it away. Without a block the session does what it
/// does by itself, and does not wait for the manager.
extension AFURLSessionManager {
  // MARK: - The session

  /// Called when the session is over. Of a session that the program has ended itself the error says `cancelled`.
  public func setSessionDidBecomeInvalidBlock(_ block: ((URLSession, any Error) -> Void)?) {
    blocks.change { $0.sessionDidBecomeInvalid = block }
  }

  /// Decides on the challenges of connections: whether a server is trusted, and which client certificate it gets.
  /// Without it the task's block or handler is asked, and then ``securityPolicy``.
  public func setSessionDidReceiveAuthenticationChallengeBlock(_ block: SessionChallengeBlock?) {
    blocks.change { $0.sessionDidReceiveAuthenticationChallenge = block }
  }

  /// Called on the main queue when all events of a background session have been delivered.
  public func setDidFinishEventsForBackgroundURLSessionBlock(_ block: ((URLSession) -> Void)?) {
    blocks.change { $0.didFinishEvents = block }
  }

  // MARK: - Tasks

  /// Gives a body's stream, when it is needed again. Without it the request's stream is copied if it can be.
  public func setTaskNeedNewBodyStreamBlock(_ block: ((URLSession, URLSessionTask) -> InputStream)?) {
    blocks.change { $0.taskNeedNewBodyStream = block }
  }

  /// Decides on a redirection: the request that follows, or nil, which makes the redirecting response the result.
  public func setTaskWillPerformHTTPRedirectionBlock(
    _ block: ((URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
  ) { blocks.change { $0.taskWillPerformHTTPRedirection = block } }

  /// Decides on a challenge by what it returns:
  ///
  /// - a `URLCredential`, which is used;
  /// - an error, which ends the task and is told to its handler;
  /// - an `NSNumber` or a value of `URLSession.AuthChallengeDisposition`, but for the one that uses a credential. The
  ///   default handling of a server's trust is to ask ``securityPolicy``;
  /// - nil, if it has called, or will call, the completion itself, on any thread.
  ///
  /// Anything else ends the task with an error.
  public func setAuthenticationChallengeHandler(_ authenticationChallengeHandler: AuthenticationChallengeHandler?) {
    blocks.change { $0.authenticationChallengeHandler = authenticationChallengeHandler }
  }

  /// Decides on a challenge, as versions 2 and 3 had it. The policy is not asked then.
  public func setTaskDidReceiveAuthenticationChallengeBlock(_ block: TaskChallengeBlock?) {
    blocks.change { $0.taskDidReceiveAuthenticationChallenge = block }
  }

  /// Called as a body leaves: bytes that have left now, in all, and that are to leave. The last is -1 if nobody knows.
  public func setTaskDidSendBodyDataBlock(_ block: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?) {
    blocks.change { $0.taskDidSendBodyData = block }
  }

  /// Called when a task is over, before its handler.
  public func setTaskDidCompleteBlock(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
    blocks.change { $0.taskDidComplete = block }
  }

  /// Called with the numbers of a task, when it is over.
  public func setTaskDidFinishCollectingMetricsBlock(
    _ block: ((URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
  ) { blocks.change { $0.taskDidFinishCollectingMetrics = block } }

  // MARK: - Data tasks

  /// Decides what becomes of a task whose response has begun.
  public func setDataTaskDidReceiveResponseBlock(_ block: ResponseBlock?) {
    blocks.change { $0.dataTaskDidReceiveResponse = block }
  }

  /// Called when a download goes on in place of a data task.
  public func setDataTaskDidBecomeDownloadTaskBlock(
    _ block: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
  ) { blocks.change { $0.dataTaskDidBecomeDownloadTask = block } }

  /// Called with each piece of the content, as it comes.
  public func setDataTaskDidReceiveDataBlock(_ block: ((URLSession, URLSessionDataTask, Data) -> Void)?) {
    blocks.change { $0.dataTaskDidReceiveData = block }
  }

  /// Decides what is put into the cache.
  public func setDataTaskWillCacheResponseBlock(
    _ block: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse)?
  ) { blocks.change { $0.dataTaskWillCacheResponse = block } }

  // MARK: - Download tasks

  /// Says where a download's file goes: called before the task's own destination, which is asked if this gives nil.
  public func setDownloadTaskDidFinishDownloadingBlock(
    _ block: ((URLSession, URLSessionDownloadTask, URL) -> URL?)?
  ) { blocks.change { $0.downloadTaskDidFinishDownloading = block } }

  /// Called as content is written: bytes written now, in all, and expected. The last is -1 if nobody knows.
  public func setDownloadTaskDidWriteDataBlock(
    _ block: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
  ) { blocks.change { $0.downloadTaskDidWriteData = block } }

  /// Called when a download goes on where an earlier one had stopped: the offset, and the bytes expected in all.
  public func setDownloadTaskDidResumeBlock(_ block: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?) {
    blocks.change { $0.downloadTaskDidResume = block }
  }
}

// The same without the word `Block`: Apple's importer leaves it away where it says no more than the parameter's type,
// which depends on the compiler's version.
extension AFURLSessionManager {
  /// ``setSessionDidBecomeInvalidBlock(_:)``.
  public func setSessionDidBecomeInvalid(_ block: ((URLSession, any Error) -> Void)?) {
    setSessionDidBecomeInvalidBlock(block)
  }

  /// ``setSessionDidReceiveAuthenticationChallengeBlock(_:)``.
  public func setSessionDidReceiveAuthenticationChallenge(_ block: SessionChallengeBlock?) {
    setSessionDidReceiveAuthenticationChallengeBlock(block)
  }

  /// ``setDidFinishEventsForBackgroundURLSessionBlock(_:)``.
  public func setDidFinishEventsForBackgroundURLSession(_ block: ((URLSession) -> Void)?) {
    setDidFinishEventsForBackgroundURLSessionBlock(block)
  }

  /// ``setTaskNeedNewBodyStreamBlock(_:)``.
  public func setTaskNeedNewBodyStream(_ block: ((URLSession, URLSessionTask) -> InputStream)?) {
    setTaskNeedNewBodyStreamBlock(block)
  }

  /// ``setTaskWillPerformHTTPRedirectionBlock(_:)``.
  public func setTaskWillPerformHTTPRedirection(
    _ block: ((URLSession, URLSessionTask, URLResponse, URLRequest) -> URLRequest?)?
  ) { setTaskWillPerformHTTPRedirectionBlock(block) }

  /// ``setTaskDidReceiveAuthenticationChallengeBlock(_:)``.
  public func setTaskDidReceiveAuthenticationChallenge(_ block: TaskChallengeBlock?) {
    setTaskDidReceiveAuthenticationChallengeBlock(block)
  }

  /// ``setTaskDidSendBodyDataBlock(_:)``.
  public func setTaskDidSendBodyData(_ block: ((URLSession, URLSessionTask, Int64, Int64, Int64) -> Void)?) {
    setTaskDidSendBodyDataBlock(block)
  }

  /// ``setTaskDidCompleteBlock(_:)``.
  public func setTaskDidComplete(_ block: ((URLSession, URLSessionTask, (any Error)?) -> Void)?) {
    setTaskDidCompleteBlock(block)
  }

  /// ``setTaskDidFinishCollectingMetricsBlock(_:)``.
  public func setTaskDidFinishCollectingMetrics(
    _ block: ((URLSession, URLSessionTask, URLSessionTaskMetrics?) -> Void)?
  ) { setTaskDidFinishCollectingMetricsBlock(block) }

  /// ``setDataTaskDidReceiveResponseBlock(_:)``.
  public func setDataTaskDidReceiveResponse(_ block: ResponseBlock?) { setDataTaskDidReceiveResponseBlock(block) }

  /// ``setDataTaskDidBecomeDownloadTaskBlock(_:)``.
  public func setDataTaskDidBecomeDownloadTask(
    _ block: ((URLSession, URLSessionDataTask, URLSessionDownloadTask) -> Void)?
  ) { setDataTaskDidBecomeDownloadTaskBlock(block) }

  /// ``setDataTaskDidReceiveDataBlock(_:)``.
  public func setDataTaskDidReceiveData(_ block: ((URLSession, URLSessionDataTask, Data) -> Void)?) {
    setDataTaskDidReceiveDataBlock(block)
  }

  /// ``setDataTaskWillCacheResponseBlock(_:)``.
  public func setDataTaskWillCacheResponse(
    _ block: ((URLSession, URLSessionDataTask, CachedURLResponse) -> CachedURLResponse)?
  ) { setDataTaskWillCacheResponseBlock(block) }

  /// ``setDownloadTaskDidFinishDownloadingBlock(_:)``.
  public func setDownloadTaskDidFinishDownloading(_ block: ((URLSession, URLSessionDownloadTask, URL) -> URL?)?) {
    setDownloadTaskDidFinishDownloadingBlock(block)
  }

  /// ``setDownloadTaskDidWriteDataBlock(_:)``.
  public func setDownloadTaskDidWriteData(
    _ block: ((URLSession, URLSessionDownloadTask, Int64, Int64, Int64) -> Void)?
  ) { setDownloadTaskDidWriteDataBlock(block) }

  /// ``setDownloadTaskDidResumeBlock(_:)``.
  public func setDownloadTaskDidResume(_ block: ((URLSession, URLSessionDownloadTask, Int64, Int64) -> Void)?) {
    setDownloadTaskDidResumeBlock(block)
  }
}
