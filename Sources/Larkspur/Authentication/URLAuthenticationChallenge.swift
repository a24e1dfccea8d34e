import Foundation

/// Takes the answer to a challenge that somebody made: a `URLProtocol`, say. Delegates of a session answer by their
/// completion handlers, and have no need of it.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
  /// Goes on with a credential.
  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
  /// Goes on without one.
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
  /// Gives the request up.
  func cancel(_ challenge: URLAuthenticationChallenge)
  /// Does what is done when nobody is asked.
  func performDefaultHandling(for challenge: URLAuthenticationChallenge)
  /// Goes on to the next protection space of the response, if there is one.
  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

extension URLAuthenticationChallengeSender {
  /// Goes on without a credential.
  public func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
    continueWithoutCredential(for: challenge)
  }

  /// Goes on without a credential.
  public func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
    continueWithoutCredential(for: challenge)
  }
}

/// That of a session's challenges.
private final class UnusedSender: NSObject, URLAuthenticationChallengeSender {
  static let shared = UnusedSender()

  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
  func cancel(_ challenge: URLAuthenticationChallenge) {}
}

/// A question of a server or a proxy: who are you? Or, for server trust, of this machine: do you trust it? Immutable, and
/// for any thread.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
  private let space: URLProtectionSpace
  private let proposed: URLCredential?
  private let failures: Int
  private let response: URLResponse?
  private let cause: (any Error)?
  private let storedSender: (any URLAuthenticationChallengeSender)?
  /// Whether the delegate that is asked has the method.
  let delegateWord = DelegateWord()

  /// Makes a challenge, as a `URLProtocol` does.
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

  /// The same challenge with another sender.
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

  /// Without a sender of its own: the answer comes by a completion handler.
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

  /// Who asks, and for what.
  open var protectionSpace: URLProtectionSpace { space }

  /// What default handling would answer: from the URL, of this session, or from the storage. It is what was refused before
  /// if ``previousFailureCount`` is not 0.
  open var proposedCredential: URLCredential? { proposed }

  /// How many credentials were refused in this space, for this request.
  open var previousFailureCount: Int { failures }

  /// The response that asks. Nil: it was a TLS handshake.
  open var failureResponse: URLResponse? { response }

  /// Why the last try failed, where it was an error and not a response.
  open var error: (any Error)? { cause }

  /// Who takes the answer to a challenge that a program has made. A session's challenges have one as well, which is there to
  /// be handed on and does nothing: the delegate's completion handler takes the answer.
  open var sender: (any URLAuthenticationChallengeSender)? { storedSender }

  /// The delegate that is asked leaves the answer to the one that is asked next, as if it had no method for it: a session's
  /// challenge is then the task's. Called within the delegate's method, which gives an answer all the same, one that does
  /// not count.
  ///
  /// An addition of Larkspur's, in place of `responds(to:)`, which Linux has not.
  public final func passOn(by delegate: any URLSessionDelegate) { delegateWord.isMissing(in: delegate) }
}
