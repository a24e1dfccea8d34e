import Foundation
import Larkspur
import Synchronization

/// One task of a session of its own, as a stream of events.
///
/// The delegate's calls come one after another on the session's queue. All but the pieces go into the stream at once;
/// the call of a piece returns when the piece has been taken.
final class SessionTransfer: NSObject, URLSessionDataDelegate, Sendable {
  enum Event: Sendable {
    case response(HTTPURLResponse)
    case piece(Data)
    case metrics(URLSessionTaskMetrics)
    case completed(CommandFailure?)
  }

  private let settings: SessionSetUp
  private let form: FormBody?
  private let events: AsyncStream<Event>
  private let continuation: AsyncStream<Event>.Continuation
  private let taken = DispatchSemaphore(value: 0)
  private let state = Mutex(State())

  private struct State {
    var session: URLSession?
    var origin: URL?
    var hasResponse = false
    var isOver = false
  }

  init(_ settings: SessionSetUp, form: FormBody?) {
    self.settings = settings
    self.form = form
    (events, continuation) = AsyncStream.makeStream()
  }

  func begin(_ request: URLRequest) -> AsyncStream<Event> {
    let session = URLSession(configuration: settings.configuration, delegate: self, delegateQueue: nil)
    state.withLock {
      $0.session = session
      $0.origin = request.url
    }
    session.dataTask(with: request).resume()
    return events
  }

  /// The receiver wants no more, or everything has come.
  func end() {
    let session = state.withLock { state in
      state.isOver = true
      return state.session.take()
    }
    taken.signal()
    session?.invalidateAndCancel()
  }

  func pieceIsTaken() { taken.signal() }

  // MARK: - The session's calls

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse {
      state.withLock { $0.hasResponse = true }
      continuation.yield(.response(response))
    }
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
    completionHandler(settings.followsRedirects ? request : nil)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let space = challenge.protectionSpace
    switch space.authenticationMethod {
    case NSURLAuthenticationMethodHTTPDigest where isOurs(space) && challenge.previousFailureCount == 0:
      completionHandler(.useCredential, settings.credential)
    // The next scheme of the response may be Digest.
    case NSURLAuthenticationMethodHTTPBasic where settings.credential != nil:
      completionHandler(.rejectProtectionSpace, nil)
    default: completionHandler(.performDefaultHandling, nil)
    }
  }

  /// A password is meant for the server that the command line names, not for one that it redirects to.
  private func isOurs(_ space: URLProtectionSpace) -> Bool {
    guard let origin = state.withLock({ $0.origin }), !space.isProxy() else { return false }
    let scheme = origin.scheme?.lowercased()
    return settings.credential != nil && space.host.lowercased() == origin.host()?.lowercased()
      && space.port == origin.port ?? (scheme == "https" ? 443 : 80) && space.protocol?.lowercased() == scheme
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    completionHandler(form?.stream())
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    continuation.yield(.metrics(metrics))
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let hasResponse = state.withLock { $0.hasResponse }
    let failure = error.map { error in
      SessionFailure(error, url: task.currentRequest?.url, hasResponse: hasResponse, settings).failure
    }
    continuation.yield(.completed(failure))
    continuation.finish()
  }
}
