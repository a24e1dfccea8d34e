import Foundation
import Larkspur
import Synchronization

/// One task of an operation: from its start to its end, or to a pause. Retains its operation until the task is over, as
/// a connection retained its delegate.
///
/// All methods except `stop` and those that create and start the task run on the session's delegate queue, one call
/// after another.
final class OperationLoad: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private let operation: AFURLConnectionOperation
  private let output: OperationOutput
  private let request: URLRequest
  /// Set before the task begins.
  private var task: URLSessionDataTask?
  private var ownSession: URLSession?
  /// Whether the load has been stopped, so that its results are ignored. `stop()` stores with release order, `isWanted`
  /// loads with acquire order.
  private let isStopped = Atomic(false)
  private let challengeIsRefused = Atomic(false)

  // Used on the delegate queue only.
  private var isContinuation: Bool
  /// Number of bytes of the content before those of this task.
  private var offset: Int64 = 0
  /// Number of bytes that this task has to deliver, if the response states it.
  private var expectedCount: Int64?
  /// The reason for the end, if it is not the task's own end.
  private var outcome: Outcome?

  private enum Outcome {
    case complete
    case failure(any Error)
  }

  init(
    _ operation: AFURLConnectionOperation, _ output: OperationOutput, request: URLRequest, isContinuation: Bool
  ) {
    self.operation = operation
    self.output = output
    self.request = request
    self.isContinuation = isContinuation
  }

  func makeTask(in session: OperationSessions.Lent, priority: Float) {
    let task = session.session.dataTask(with: request)
    task.delegate = self
    task.priority = priority
    self.task = task
    if session.isForOneLoad { ownSession = session.session }
  }

  func start() { task?.resume() }

  func stop() {
    isStopped.store(true, ordering: .releasing)
    task?.cancel()
  }

  private var isWanted: Bool { !isStopped.load(ordering: .acquiring) && outcome == nil }

  private func end(_ outcome: Outcome) {
    self.outcome = outcome
    task?.cancel()
  }

  // MARK: - Content

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    defer { completionHandler(.allow) }
    guard isWanted else { return }
    let answer = isContinuation ? output.continuation?.classify(response) : nil
    isContinuation = false
    switch answer ?? .whole(count: nil) {
    case .rest(let count):
      offset = output.count
      expectedCount = count
    case .complete: return end(.complete)
    case .wrong:
      return end(
        .failure(URLError.make(.badServerResponse, "the response does not continue the bytes that arrived")))
    case .whole(let count):
      expectedCount = count
      output.continuation = operation.continuation(after: response)
      do {
        try output.rewind()
      } catch {
        return end(.failure(error))
      }
    }
    operation.read { details in
      details.response = response
      details.bytesRead = output.count
    }
    output.open()
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard isWanted else { return }
    let before = output.count
    if let expectedCount, before - offset + Int64(data.count) > expectedCount {
      return end(.failure(URLError.make(.badServerResponse, "more bytes arrived than the range has")))
    }
    do {
      try output.write(data)
    } catch {
      return end(.failure(error))
    }
    let expected = operation.read { details -> Int64 in
      details.bytesRead = output.count
      guard let response = details.response, response.expectedContentLength >= 0 else { return -1 }
      return response.expectedContentLength.addingReportingOverflow(offset).partialValue
    }
    operation.reportProgress(.down, output.count - before, output.count, expected: expected)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
  ) {
    guard isWanted else { return completionHandler(nil) }
    guard let block = operation.read({ $0.cacheBlock }) else {
      return completionHandler(PassedOnResponse(proposedResponse))
    }
    completionHandler(block(NSURLConnection(dataTask), proposedResponse))
  }

  // MARK: - On the way

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    guard isWanted, let block = operation.read({ $0.redirectBlock }) else { return completionHandler(request) }
    completionHandler(block(NSURLConnection(task), request, response))
  }

  /// Answers a challenge of the task. The session's delegate passes the challenges on: see `OperationChallenges`.
  func answer(
    _ challenge: URLAuthenticationChallenge, of task: URLSessionTask,
    _ completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let reply: ChallengeAnswer.Reply = { [weak self] disposition, credential in
      if disposition == .cancelAuthenticationChallenge { self?.challengeIsRefused.store(true, ordering: .releasing) }
      completionHandler(disposition, credential)
    }
    guard let block = operation.read({ $0.challengeBlock }) else {
      let (disposition, credential) = operation.answer(to: challenge)
      return reply(disposition, credential)
    }
    block(
      NSURLConnection(task),
      URLAuthenticationChallenge(authenticationChallenge: challenge, sender: ChallengeAnswer(reply)))
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    // A stream can be read only once, but a copy of it can be read again.
    let stream = request.httpBodyStream
    completionHandler((stream as? any NSCopying)?.copy(with: nil) as? InputStream)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    guard isWanted else { return }
    operation.reportProgress(.up, bytesSent, totalBytesSent, expected: totalBytesExpectedToSend)
  }

  // MARK: - The end

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    ownSession?.finishTasksAndInvalidate()
    let result = operation.read { $0.machine.loadEnds() } ? result(of: error) : (nil, error)
    operation.loadEnded(self, data: result.0, error: result.1)
  }

  private func result(of error: (any Error)?) -> (Data?, (any Error)?) {
    switch (outcome, error) {
    case (.failure(let failure), _): return (nil, failure)
    case (nil, let error?): return (nil, challengeIsRefused.load(ordering: .acquiring) ? refusal(error) : error)
    case (nil, nil) where expectedCount.map { output.count - offset < $0 } == true:
      return (nil, URLError.make(.networkConnectionLost, "fewer bytes arrived than the range has"))
    case (.complete, _), (nil, nil):
      do {
        return (try output.finish(), nil)
      } catch {
        return (nil, error)
      }
    }
  }

  /// Returns NSURLConnection's error for a cancelled challenge, because a session only reports `cancelled`.
  private func refusal(_ error: any Error) -> any Error {
    URLError.make(
      .userCancelledAuthentication, "the challenge was cancelled", url: request.url, underlying: error,
      more: (error as NSError).userInfo)
  }
}

extension AFURLConnectionOperation {
  /// Returns the answer to a challenge for which there is no block.
  func answer(to challenge: URLAuthenticationChallenge) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
    let space = challenge.protectionSpace
    if space.authenticationMethod == NSURLAuthenticationMethodServerTrust {
      guard let trust = space.serverTrust, securityPolicy.evaluateServerTrust(trust, forDomain: space.host) else {
        return (.cancelAuthenticationChallenge, nil)
      }
      return (.useCredential, URLCredential(trust: trust))
    }
    let (credential, usesStorage, url) = read { ($0.credential, $0.usesCredentialStorage, $0.request.url) }
    let isNamedByURL = url?.user != nil && space.authenticationMethod != NSURLAuthenticationMethodClientCertificate
    // The credential is only for the request's own origin, not for proxies and the targets of redirections.
    let isOwn = url.map { BaseOrigin($0).contains(space) } == true
    if let credential, isOwn, challenge.previousFailureCount == 0, !isNamedByURL { return (.useCredential, credential) }
    return usesStorage || isNamedByURL ? (.performDefaultHandling, nil) : (.useCredential, nil)
  }
}
