import Foundation
import Larkspur

/// Challenges: credentials and server trust.
extension AFURLSessionManager {
  /// `(session, challenge, credential)`: the block stores a credential in the last parameter's `pointee`.
  public typealias SessionChallengeBlock = (
    URLSession, URLAuthenticationChallenge, AutoreleasingUnsafeMutablePointer<URLCredential?>?
  ) -> URLSession.AuthChallengeDisposition

  /// `(session, task, challenge, credential)`: the block stores a credential in the last parameter's `pointee`.
  public typealias TaskChallengeBlock = (
    URLSession, URLSessionTask, URLAuthenticationChallenge, AutoreleasingUnsafeMutablePointer<URLCredential?>?
  ) -> URLSession.AuthChallengeDisposition

  /// `(session, task, challenge, completion)`: see `setAuthenticationChallengeHandler(_:)`.
  public typealias AuthenticationChallengeHandler = (
    URLSession, URLSessionTask, URLAuthenticationChallenge,
    @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) -> Any?

  /// `(session, task, response)`.
  public typealias ResponseBlock = (URLSession, URLSessionDataTask, URLResponse) -> URLSession.ResponseDisposition

  typealias CompletionHandler = @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void

  /// Answers a connection's challenge. Without a block the challenge goes to the task, where the policy decides.
  func answer(_ challenge: URLAuthenticationChallenge, of session: URLSession, _ answer: @escaping CompletionHandler) {
    guard let block = blocks.current.set.sessionDidReceiveAuthenticationChallenge else {
      challenge.passOn(by: self)
      return answer(.performDefaultHandling, nil)
    }
    let credential = AutoreleasingUnsafeMutablePointer<URLCredential?>(nil)
    let disposition = block(session, challenge, credential)
    answer(disposition, credential.pointee)
  }

  func answer(
    _ challenge: URLAuthenticationChallenge, of task: URLSessionTask, _ session: URLSession,
    _ answer: @escaping CompletionHandler
  ) {
    let set = blocks.current.set
    if let handler = set.authenticationChallengeHandler {
      return settle(handler(session, task, challenge, answer), challenge, task, session, answer)
    }
    if let block = set.taskDidReceiveAuthenticationChallenge {
      let credential = AutoreleasingUnsafeMutablePointer<URLCredential?>(nil)
      let disposition = block(session, task, challenge, credential)
      return answer(disposition, credential.pointee)
    }
    if challenge.asksForTrust { return evaluate(challenge, task, session, answer) }
    answer(.performDefaultHandling, nil)
  }

  /// Interprets a handler's result.
  private func settle(
    _ result: Any?, _ challenge: URLAuthenticationChallenge, _ task: URLSessionTask, _ session: URLSession,
    _ answer: @escaping CompletionHandler
  ) {
    switch result {
    // The handler calls the completion itself.
    case nil: return
    case let credential as URLCredential: return answer(.useCredential, credential)
    default: break
    }
    let disposition =
      result as? URLSession.AuthChallengeDisposition
      ?? (result as? NSNumber).flatMap { URLSession.AuthChallengeDisposition(rawValue: $0.intValue) }
      ?? (result as? Int).flatMap { URLSession.AuthChallengeDisposition(rawValue: $0) }
    switch disposition {
    case .performDefaultHandling where challenge.asksForTrust: evaluate(challenge, task, session, answer)
    case .performDefaultHandling, .cancelAuthenticationChallenge, .rejectProtectionSpace:
      answer(disposition ?? .cancelAuthenticationChallenge, nil)
    case .useCredential, nil:
      // For other results AFNetworking raises an exception. Here the request fails with an error.
      record(of: task)?.fail(result as? any Error ?? Self.handlerError)
      answer(.cancelAuthenticationChallenge, nil)
    }
  }

  private static var handlerError: URLError {
    URLError(
      .userAuthenticationRequired,
      userInfo: NSError.entries(
        forMessage:
          "The authentication challenge handler must return nil, an error, a credential or a disposition without one."))
  }

  // MARK: - Trust

  private func evaluate(
    _ challenge: URLAuthenticationChallenge, _ task: URLSessionTask, _ session: URLSession,
    _ answer: @escaping CompletionHandler
  ) {
    let space = challenge.protectionSpace
    if let trust = space.serverTrust, securityPolicy.evaluateServerTrust(trust, forDomain: space.host) {
      return answer(.useCredential, URLCredential(trust: trust))
    }
    record(of: task)?.fail(Self.trustError(space.serverTrust, task.currentRequest?.url))
    answer(.cancelAuthenticationChallenge, nil)
  }

  /// The error for a server that is not trusted, with the text of Apple's systems.
  static func trustError(_ trust: SecTrust?, _ url: URL?) -> URLError {
    var info = NSError.entries(
      forMessage:
        "The certificate for this server is invalid. You might be connecting to a server that is pretending to be "
        + "“\(url?.host ?? "")” which could put your confidential information at risk.")
    info["NSURLErrorFailingURLPeerTrustErrorKey"] = trust
    info[NSURLErrorFailingURLErrorKey] = url
    info["NSErrorFailingURLStringKey"] = url?.absoluteString
    return URLError(.serverCertificateUntrusted, userInfo: info)
  }
}

extension URLAuthenticationChallenge {
  var asksForTrust: Bool { protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust }
}
