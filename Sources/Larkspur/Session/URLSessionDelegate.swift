import Foundation

/// The calls that a session makes to its delegate.
///
/// The session makes every call on its delegate queue, one after another for each task, unless the method says
/// otherwise. The session keeps its delegate until it has been invalidated and the delegate has been called for that.
/// Each method of this protocol has a default implementation, which acts like a session without a delegate.
public protocol URLSessionDelegate: NSObjectProtocol, Sendable {
  /// The session has been invalidated, and all its tasks are over. This is the last call: the session releases its
  /// delegate when the call has returned. The error is `nil` if the program has invalidated the session, which is the
  /// only case in this version.
  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?)

  /// A connection asks whether to trust its server, or asks for a client certificate. Challenges in responses go to the
  /// delegate method of the task, and so do those of connections if the delegate does not implement this method.
  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

  /// The async form of the method with a completion handler. Implement one of the two: the method with a completion
  /// handler has precedence.
  func urlSession(
    _ session: URLSession, didReceive challenge: URLAuthenticationChallenge
  ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

  /// All events of a background session that an earlier process had not been given have been delivered. Called once,
  /// behind them, and only if there were some.
  func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession)
}

extension URLSessionDelegate {
  public func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {}

  public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}

/// The calls that a session makes about its tasks. The session calls the task's own delegate first, and its own
/// delegate for each method that the task's delegate does not implement.
public protocol URLSessionTaskDelegate: URLSessionDelegate {
  /// A task has been created. Called on the thread that creates it.
  func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask)

  /// The `earliestBeginDate` of a background session's task has been reached. Not called while no process has the
  /// session: the task starts then with its own request.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void)

  /// The async form of the method with a completion handler. Implement one of the two: the method with a completion
  /// handler has precedence.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
  ) async -> (URLSession.DelayedRequestDisposition, URLRequest?)

  /// There is no route to the server, and the session waits for one (`waitsForConnectivity`). Called at most once for a
  /// task.
  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask)

  /// The server redirects the task. Answer with the next request: `request`, another request, or `nil` to get the
  /// redirecting response itself as the task's result. Background sessions follow redirections without this call.
  ///
  /// Also called before a resumable upload uses an upload resource of another origin that a server has named: with the
  /// response that names the resource, such as a 104, and with the request that sends the rest of the
  /// file, without its content. With `nil`, or without an implementation of the method, the resource is not used. See
  /// <doc:Resuming>.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void)

  /// The async form of the method with a completion handler. Implement one of the two: the method with a completion
  /// handler has precedence.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest
  ) async -> URLRequest?

  /// The server or a proxy asks for credentials. Called for the challenges of a connection, too, if the session's
  /// delegate does not implement ``URLSessionDelegate/urlSession(_:didReceive:completionHandler:)``.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)

  /// The async form of the method with a completion handler. Implement one of the two: the method with a completion
  /// handler has precedence.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
  ) async -> (URLSession.AuthChallengeDisposition, URLCredential?)

  /// The request's body comes from a stream, and has to be sent or sent again. Answer with a stream that has not been
  /// read.
  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void)

  /// The async form of the method with a completion handler. Implement one of the two: the method with a completion
  /// handler has precedence.
  func urlSession(_ session: URLSession, needNewBodyStreamForTask task: URLSessionTask) async -> InputStream?

  /// The form of the method above with the place in the body where the stream has to begin, in bytes. Called if the delegate
  /// implements neither of the others. The offset is always 0: a body that comes from a stream is sent from its start, and
  /// only uploads of files continue where they broke off.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
    completionHandler: @escaping @Sendable (InputStream?) -> Void)

  /// The async form of the method with an offset. Implement one of the two: the method with a completion handler has
  /// precedence.
  func urlSession(
    _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
  ) async -> InputStream?

  /// A part of the request's body has been sent. All three numbers are bytes. The expected total of a stream is the
  /// request's `Content-Length`, or `NSURLSessionTransferSizeUnknown` if the request has none.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64)

  /// An interim response (1xx) has arrived.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

  /// The task's metrics are complete. Called before the last call of the task.
  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)

  /// The task is over. This is the last call for the task. A status such as 404 is not an error.
  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?)
}

extension URLSessionTaskDelegate {
  public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
    task.methodProbe.isMissing(in: self)
  }

  public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    task.methodProbe.isMissing(in: self)
  }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) { task.methodProbe.isMissing(in: self) }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
  ) { task.methodProbe.isMissing(in: self) }

  public func urlSession(
    _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
  ) { task.methodProbe.isMissing(in: self) }

  public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    task.methodProbe.isMissing(in: self)
  }
}

/// The calls that a session makes about data and upload tasks without a completion handler.
///
/// The delegate that is passed to an async function, such as ``URLSession/data(for:delegate:)``, gets both `didReceive`
/// calls, too. The load continues without waiting for these calls, and ignores the answer about the response.
public protocol URLSessionDataDelegate: URLSessionTaskDelegate {
  /// The head of the response has arrived. The task takes nothing of the body until the completion handler has been
  /// called.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void)

  /// The async form of the method with a completion handler. Implement one of the two: the method with a completion
  /// handler has precedence.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
  ) async -> URLSession.ResponseDisposition

  /// The task has become a download task, which continues the load in its place.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask)

  /// The task has become a stream task, which continues in its place.
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask)

  /// A piece of the body has arrived. The task takes the next piece when the call has returned.
  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data)

  /// The response is about to be stored in the cache. Answer with the response to store, or `nil` to store no response.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void)

  /// The async form of the method with a completion handler. Implement one of the two: the method with a completion
  /// handler has precedence.
  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
  ) async -> CachedURLResponse?
}

extension URLSessionDataDelegate {
  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
  ) { dataTask.methodProbe.isMissing(in: self) }

  public func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask
  ) { dataTask.methodProbe.isMissing(in: self) }

  public func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    dataTask.methodProbe.isMissing(in: self)
  }
}

/// The calls that a session makes about download tasks without a completion handler.
///
/// The delegate that is passed to an async function, such as ``URLSession/download(for:delegate:)``, gets the calls for
/// content that has been written, too. The load continues without waiting for these calls.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
  /// The content is complete. The session removes the file after the call has returned: move or read the file within
  /// the call.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

  /// A part of the content has been written to the file. All three numbers are bytes. The expected total is
  /// `NSURLSessionTransferSizeUnknown` if the server does not state the length.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

  /// The download continues at the offset, in bytes, at which an earlier download stopped.
  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64)
}

extension URLSessionDownloadDelegate {
  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) { downloadTask.methodProbe.isMissing(in: self) }

  public func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) { downloadTask.methodProbe.isMissing(in: self) }
}

/// The calls that a session makes about stream tasks.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
  /// The server sends no more bytes.
  func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)
  /// No more bytes can be sent to the server.
  func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)
  /// A better route to the server is available. Never called on Linux.
  func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)
  /// The task is over, and the program has its two directions as streams.
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

/// The calls that a session makes about WebSocket tasks.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
  /// The server speaks the WebSocket protocol. The subprotocol is the server's choice, or `nil` if the server has
  /// chosen no subprotocol.
  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?)
  /// The server has sent its Close, with a code and perhaps a reason. The task is complete after this call.
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
