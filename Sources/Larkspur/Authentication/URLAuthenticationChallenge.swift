import Foundation

/// The receiver of the answer to a challenge that a program has made, for instance in a `URLProtocol`. A session's
/// delegate answers by its completion handler and does not need a sender.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
  /// Continues with a credential.
  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
  /// Continues without a credential.
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
  /// Cancels the request.
  func cancel(_ challenge: URLAuthenticationChallenge)
  /// Handles the challenge as if there were no delegate.
  func performDefaultHandling(for challenge: URLAuthenticationChallenge)
  /// Continues with the response's next protection space, if there is one.
  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

extension URLAuthenticationChallengeSender {
  /// Continues without a credential.
  public func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
    continueWithoutCredential(for: challenge)
  }

  /// Continues without a credential.
  public func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
    continueWithoutCredential(for: challenge)
  }
}

/// The sender of a session's challenges. Its methods do nothing.
private final class UnusedSender: NSObject, URLAuthenticationChallengeSender {
  static let shared = UnusedSender()

  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
  func cancel(_ challenge: URLAuthenticationChallenge) {}
}

/// A request for authentication by a server or a proxy, or, for server trust, a request to decide whether a server is
/// trusted. Immutable, and safe to use from any thread.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
  private let space: URLProtectionSpace
  private let proposed: URLCredential?
  private let failures: Int
  private let response: URLResponse?
  private let cause: (any Error)?
  private let storedSender: (any URLAuthenticationChallengeSender)?
  /// Records whether the delegate that is called implements the method.
  let methodProbe = DelegateMethodProbe()

  /// Creates a challenge, as a `URLProtocol` does.
  public init(
    protectionSpace space: URLProtectionSpace, proposedCredential credential: URLCredential?,
    previousFailureCount: Int, failureResponse response: URLResponse?, error: (any Error)?,
    sender: any URLAuthenticationChallengeSender
  ) {
    self.space = space
    proposed = credential
    failures = previousFailureCount
    self.response = response
    cause = error
    storedSender = sender
  }

  /// Creates a copy of a challenge with another sender.
  public init(
    authenticationChallenge challenge: URLAuthenticationChallenge, sender: any URLAuthenticationChallengeSender
  ) {
    space = challenge.protectionSpace
    proposed = challenge.proposedCredential
    failures = challenge.previousFailureCount
    response = challenge.failureResponse
    cause = challenge.error
    storedSender = sender
  }

  /// Creates a challenge. If `sender` is `nil`, the challenge gets a sender that does nothing: its answer comes by a
  /// completion handler.
  init(
    space: URLProtectionSpace, proposed: URLCredential?, failures: Int, response: URLResponse?,
    error: (any Error)? = nil, sender: (any URLAuthenticationChallengeSender)? = nil
  ) {
    self.space = space
    self.proposed = proposed
    self.failures = failures
    self.response = response
    cause = error
    storedSender = sender ?? UnusedSender.shared
  }

  /// The server or proxy that asks, and the method of authentication.
  open var protectionSpace: URLProtectionSpace { space }

  /// The credential that default handling would use: from the URL, from this session, or from the storage. If
  /// ``previousFailureCount`` is not 0, this credential has been refused before.
  open var proposedCredential: URLCredential? { proposed }

  /// The number of credentials that were refused in this space for this request.
  open var previousFailureCount: Int { failures }

  /// The response that carries the challenge, or `nil` if the challenge comes from a TLS handshake.
  open var failureResponse: URLResponse? { response }

  /// The error of the last attempt, if the attempt failed with an error and not with a response.
  open var error: (any Error)? { cause }

  /// The receiver of the answer to a challenge that a program has made. A session's challenges have a sender as well,
  /// so that they can be passed on; that sender does nothing, because the delegate's completion handler takes the
  /// answer.
  open var sender: (any URLAuthenticationChallengeSender)? { storedSender }

  /// Leaves the answer to the next delegate, as if `delegate` did not implement the method: a session's challenge then
  /// goes to the task's delegate. Call this within the delegate's method. The method still has to call its completion
  /// handler; the values passed there do not count.
  ///
  /// This member is Larkspur's own. It replaces `responds(to:)`, which Linux does not have.
  public final func passOn(by delegate: any URLSessionDelegate) { methodProbe.isMissing(in: delegate) }
}
