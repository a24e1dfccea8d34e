import Larkspur
import LarkspurEngine
import LarkspurHTTP
import Synchronization

/// The session of a transfer. The transfers of the next URLs can use it and its connections as well.
///
/// Transfers use it one after another. Each gets the events of the session, and decides on retries, until the next one
/// begins.
final class KeptSession: HTTPEventObserver, URLSessionInterceptor {
  private struct State {
    var session: URLSession?
    var progress: TransferProgress?
    var transfer: SessionTransfer?
  }

  private let state = Mutex(State())

  /// Begins a transfer.
  ///
  /// - Returns: The receiver of the events from now on.
  func progress(isLogged: Bool) -> TransferProgress {
    state.withLock { state in
      let progress = TransferProgress(isLogged: isLogged, after: state.session == nil ? nil : state.progress)
      state.progress = progress
      return progress
    }
  }

  /// Returns the session, which is made if there is none.
  ///
  /// - Parameter transfer: The transfer that decides on retries from now on.
  func session(for transfer: SessionTransfer, _ configuration: () -> URLSessionConfiguration) -> URLSession {
    state.withLock { state in
      state.transfer = transfer
      let session = state.session ?? URLSession(configuration: configuration())
      state.session = session
      return session
    }
  }

  /// Cancels the session, if there is one. The next transfer gets a new session.
  func end() {
    let session = state.withLock { state in
      state.transfer = nil
      return state.session.take()
    }
    session?.invalidateAndCancel()
  }

  func observe(_ event: HTTPEvent) { state.withLock { $0.progress }?.observe(event) }

  func decide(after attempt: URLSessionAttempt) async -> URLSession.InterceptorDecision {
    await state.withLock { $0.transfer }?.decide(after: attempt) ?? .deliver
  }
}

extension GetOptions {
  /// Whether the session of this request can make the next one as well. A connection that is used again may turn out to be
  /// closed, and only requests that can be repeated are sent once more. Cookies and records are of one URL.
  func sharesSession(with next: GetOptions) -> Bool {
    guard !downloads.isInUse, !session.cookieJar.isInUse, harFile == nil, !printsCurl, !sendsContent,
      ["GET", "HEAD"].contains(method ?? "GET"), let target = try? RequestURL.parse(url),
      let following = try? RequestURL.parse(next.url)
    else { return false }
    return target.isSecure == following.isSecure && target.authority == following.authority
      && target.credentials == following.credentials
  }
}
