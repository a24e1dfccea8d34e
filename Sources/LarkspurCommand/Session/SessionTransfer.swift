import Foundation
import Larkspur
import Synchronization

/// One task of a session, as a stream of events.
///
/// The delegate's methods run one after another on the session's queue. Each puts an event into the stream and returns
/// at once, except for a piece of the body: that call returns when the piece has been taken.
final class SessionTransfer: NSObject, URLSessionDataDelegate, Sendable {
  enum Event: Sendable {
    /// So many bytes of the request's content have been sent, of so many, or of an unknown number.
    case sent(Int, of: Int?)
    /// Another attempt follows, after a delay.
    case retrying(URLSessionAttempt, after: Duration)
    case response(HTTPURLResponse)
    case piece(Data)
    case metrics(URLSessionTaskMetrics)
    case completed(URLError?)
  }

  private let settings: SessionSetUp
  private let form: FormBody?
  private let retries: URLSession.RetryPolicy?
  private let events: AsyncStream<Event>
  private let continuation: AsyncStream<Event>.Continuation
  private let taken = DispatchSemaphore(value: 0)
  private let state = Mutex(State())

  private struct State {
    var session: URLSession?
    var task: URLSessionDataTask?
    /// The origin of the first request. User and password are sent to this origin alone.
    var origin: String?
    /// The user and the password for Digest.
    var credential: URLCredential?
    var redirectCount = 0
    var isOver = false
    var metrics: URLSessionTaskMetrics?
  }

  init(_ settings: SessionSetUp, form: FormBody?, retries: URLSession.RetryPolicy?) {
    self.settings = settings
    self.retries = retries
    self.form = form
    (events, continuation) = AsyncStream.makeStream()
  }

  func start(_ request: URLRequest, by session: URLSession) -> AsyncStream<Event> {
    let task = session.dataTask(with: request)
    task.delegate = self
    state.withLock {
      $0.session = session
      $0.task = task
      $0.origin = request.url?.origin
      $0.credential = settings.credential
    }
    task.resume()
    return events
  }

  /// Asks the retry policy, and reports a retry before its delay.
  func decide(after attempt: URLSessionAttempt) async -> URLSession.InterceptorDecision {
    guard let retries else { return .deliver }
    let decision = await retries.decide(after: attempt)
    if case .retry(let delay) = decision { continuation.yield(.retrying(attempt, after: delay)) }
    return decision
  }

  /// Ends the transfer: everything has arrived, or the receiver takes no more. The session must be
  /// invalidated then.
  ///
  /// - Parameter closesConnections: Whether to wait until the session's connections are closed.
  func end(closingConnections closesConnections: Bool) async {
    let (session, task) = state.withLock { state in
      state.isOver = true
      return (state.session.take(), state.task.take())
    }
    taken.signal()
    if closesConnections {
      task?.cancel()
      for await _ in events {}
      await session?.flush()
    }
  }

  /// The metrics of the task, or `nil` while it runs.
  var metrics: URLSessionTaskMetrics? { state.withLock { $0.metrics } }

  func pieceIsTaken() { taken.signal() }

  // MARK: - Delegate methods

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse { continuation.yield(.response(response)) }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard !state.withLock({ $0.isOver }) else { return }
    continuation.yield(.piece(data))
    taken.wait()
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    guard settings.options.session.followsRedirects else { return completionHandler(nil) }
    let count = state.withLock { state in
      state.redirectCount += 1
      return state.redirectCount
    }
    guard count <= settings.options.session.redirectsMax else {
      let message = "more redirections than --max-redirs allows (\(settings.options.session.redirectsMax))"
      continuation.yield(
        .completed(URLError(.httpTooManyRedirects, userInfo: [NSLocalizedDescriptionKey: message])))
      return completionHandler(nil)
    }
    var request = withOwnCredentials(request)
    if settings.options.session.setsReferer {
      request.setValue(referer(response.url, request.url), forHTTPHeaderField: "Referer")
    }
    completionHandler(request)
  }

  /// Returns a URL for the `Referer` of a request: without user, password and fragment, and `nil` for a request that,
  /// unlike the one before it, is not encrypted (RFC 9110, section 10.1.3).
  private func referer(_ url: URL?, _ next: URL?) -> String? {
    guard let url, url.scheme != "https" || next?.scheme == "https" else { return nil }
    return (try? RequestURL(url.absoluteString))?.uri
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) {
    let total = totalBytesExpectedToSend >= 0 ? Int(clamping: totalBytesExpectedToSend) : nil
    continuation.yield(.sent(Int(clamping: totalBytesSent), of: total))
  }

  /// Returns a redirection's request with the user and the password of its URL, if it has them. As in curl, they
  /// replace the earlier ones, but only for the first request's origin, and unless `--user` or `-H` gives others.
  private func withOwnCredentials(_ request: URLRequest) -> URLRequest {
    guard let url = request.url, let own = settings.credentials(in: url),
      url.origin == state.withLock({ $0.origin })
    else { return request }
    var request = request
    if settings.options.session.usesDigest {
      let credential = URLCredential(own)
      state.withLock { $0.credential = credential }
    } else {
      request.setValue(GetRequest.authorization(own), forHTTPHeaderField: "Authorization")
    }
    return request
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let space = challenge.protectionSpace
    switch space.authenticationMethod {
    case NSURLAuthenticationMethodHTTPDigest where isOurs(space) && challenge.previousFailureCount == 0:
      completionHandler(.useCredential, state.withLock { $0.credential })
    // The next scheme of the response may be Digest.
    case NSURLAuthenticationMethodHTTPBasic where settings.options.session.usesDigest:
      completionHandler(.rejectProtectionSpace, nil)
    default: completionHandler(.performDefaultHandling, nil)
    }
  }

  /// Whether the space belongs to the server of the command line. Servers of redirections do not get the password.
  private func isOurs(_ space: URLProtectionSpace) -> Bool {
    settings.options.session.usesDigest && !space.isProxy() && space.origin == state.withLock { $0.origin }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler(form?.stream())
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    state.withLock { $0.metrics = metrics }
    continuation.yield(.metrics(metrics))
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    continuation.yield(.completed(error.map { $0 as? URLError ?? URLError(.unknown) }))
    continuation.finish()
  }
}

extension URL {
  /// Scheme, host and port (RFC 6454, section 4), or `nil` without a scheme or a host.
  fileprivate var origin: String? {
    guard let scheme = scheme?.lowercased(), let host = host()?.lowercased() else { return nil }
    return "\(scheme)://\(host):\(port ?? (scheme == "https" ? 443 : 80))"
  }
}

extension URLProtectionSpace {
  fileprivate var origin: String { "\(self.protocol?.lowercased() ?? "")://\(host.lowercased()):\(port)" }
}
