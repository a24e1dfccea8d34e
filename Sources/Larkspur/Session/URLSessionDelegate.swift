import Foundation

/// What a session tells its owner.
///
/// Every call is made on the session's delegate queue, one after another for each task. The session keeps its delegate until
/// it is invalidated. Each method has an implementation that does what a session without a delegate would do.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
  /// The last call: all tasks are over, and the session lets its delegate go. Without an error the session's owner has
  /// invalidated it.
  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

  /// A connection wants to be trusted, or wants a client certificate. Other challenges are for a task.
  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

  /// The same as an async function. Implement one of the two: the one with a completion handler goes first.
  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
  ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

  /// All events of a background session have been delivered.
  func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

extension URLSessionDelegate {
  public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}

  public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}

/// What a task tells. A task's own delegate is asked first, and the session's for what that one does not implement.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
  /// A task has been made. Called on the thread that makes it.
  func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

  /// A task of a background session with an `earliestBeginDate` is about to begin. Never called in this version: background
  /// sessions end with their process, and their tasks begin when they are resumed.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

  /// The same as an async function. Implement one of the two: the one with a completion handler goes first.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
  ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

  /// There is no way to the server, and the session waits for one (`waitsForConnectivity`). At most once for a task.
  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

  /// The server sends the task elsewhere. Answer with the request that is to be made next: `request`, another one, or nil
  /// to have the redirecting response itself as the task's result. Background sessions follow without a question.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

  /// The same as an async function. Implement one of the two: the one with a completion handler goes first.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) async -> URLRequest?

  /// The server or a proxy wants credentials.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

  /// The same as an async function. Implement one of the two: the one with a completion handler goes first.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

  /// The body has to be sent, or sent again, and comes from a stream.
  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

  /// The same as an async function. Implement one of the two: the one with a completion handler goes first.
  func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream?

  /// Some of the body has been sent. Bytes; the expected total is `NSURLSessionTransferSizeUnknown` for a stream.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64)

  /// An interim response (1xx) has come.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

  /// The task's numbers are complete. The call before the last.
  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

  /// The task is over: the last call for it. A status such as 404 is no error.
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

extension URLSessionTaskDelegate {
  public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
    task.delegateWord.isMissing(in: self)
  }

  public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    task.delegateWord.isMissing(in: self)
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) { task.delegateWord.isMissing(in: self) }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
  ) { task.delegateWord.isMissing(in: self) }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) { task.delegateWord.isMissing(in: self) }

  public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    task.delegateWord.isMissing(in: self)
  }
}

/// What a data or upload task without a completion handler tells.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
  /// The head of the response is there. Nothing of the body is read before the answer.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

  /// The same as an async function. Implement one of the two: the one with a completion handler goes first.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
  ) async -> URLSession.ResponseDisposition

  /// The task has become a download task, which goes on in its place.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

  /// The task has become a stream task, which goes on in its place.
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

  /// A piece of the body. The next one is not read before the call has returned.
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

  /// The response is about to be stored. Answer with what is to be stored; nil is nothing.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

  /// The same as an async function. Implement one of the two: the one with a completion handler goes first.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) async -> CachedURLResponse?
}

extension URLSessionDataDelegate {
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
  ) { dataTask.delegateWord.isMissing(in: self) }

  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask
  ) { dataTask.delegateWord.isMissing(in: self) }

  public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    dataTask.delegateWord.isMissing(in: self)
  }
}

/// What a download task without a completion handler tells.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
  /// The content is complete. The file is removed when the call has returned: move it, or read it.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

  /// Some of the content has been written. Bytes; the expected total is `NSURLSessionTransferSizeUnknown` if the server
  /// does not say it.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

  /// The download goes on where an earlier one had stopped.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64)
}

extension URLSessionDownloadDelegate {
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) { downloadTask.delegateWord.isMissing(in: self) }

  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) { downloadTask.delegateWord.isMissing(in: self) }
}

/// What a stream task tells. Not called in this version: see ``URLSessionStreamTask``.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
  /// The server sends no more.
  func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)
  /// Nothing more can be sent.
  func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)
  /// Another way to the server would be better.
  func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)
  /// The task is over, and its two directions are streams of the program's.
  func urlSession(
    _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
    outputStream: OutputStream)
}

extension URLSessionStreamDelegate {
  public func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {}
  public func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {}
  public func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {}
  public func urlSession(
    _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
    outputStream: OutputStream
  ) {}
}

/// What a WebSocket task tells. Not called in this version: see ``URLSessionWebSocketTask``.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
  /// The server speaks the protocol, and has chosen a subprotocol, or none.
  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)
  /// The server has closed it, and said why.
  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
    didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?)
}

extension URLSessionWebSocketDelegate {
  public func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
  ) {}
  public func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
    didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
  ) {}
}
