/// Decides what a load does after each response. The machine handles status codes and answers only. Requests, responses
/// and the text of a redirection are left to the load, which carries out the decisions.
///
/// ```
///              .------ redirectionFollowed ----------- redirecting <--askRedirection--.
///              v                                            | redirectionRefused      |
///   start -> loading ------------------------------------------------------responseReceived
///              ^                                            v                          |
///              '------ credentialGiven ------------- authenticating <---askCredential--|
///                                                           | credentialRefused        |
///                                                           v                          |
///                                                         over <----- deliver, fail ---'
/// ```
///
/// Invariants: at most `redirectsMax` redirections are followed. An answer to a question that has not been asked fails the
/// load: it is an error of Larkspur's. `AuthenticationMachine` limits how often credentials are asked for.
package struct LoadMachine: Sendable {
  package enum Step: Hashable, Sendable {
    /// Load the next request.
    case load
    /// Ask whether to follow the redirection.
    case askRedirection
    /// Find credentials for the response's challenge.
    case askCredential
    /// Deliver the response's content to the load's owner.
    case deliver
    case fail(Failure)
  }

  package enum Failure: Hashable, Sendable {
    case tooManyRedirections
    /// An answer without a question.
    case nothingAsked
  }

  private enum State {
    case loading
    case redirecting
    case authenticating
    case over
  }

  package private(set) var redirectCount = 0
  /// Whether a redirection has left the origin that the program named.
  package private(set) var hasLeftOrigin = false
  private let redirectsMax: Int
  private var state = State.loading

  package init(redirectsMax: Int = RedirectPolicy.countMax) { self.redirectsMax = redirectsMax }

  /// Whether a response of this status is the load's response, whatever its fields are.
  package static func isDelivered(status: Int) -> Bool {
    !(300..<400).contains(status) && status != 401 && status != 407
  }

  /// Accepts a response in any state: a load may be repeated, for another part of a download or because a connection was
  /// stale.
  ///
  /// - Parameter redirects: Whether the response is a redirection that names a location which can be followed.
  package mutating func responseReceived(status: Int, redirects: Bool) -> Step {
    if status == 401 || status == 407 {
      state = .authenticating
      return .askCredential
    }
    return redirects ? redirected() : deliver()
  }

  /// Accepts a redirection. Beyond the limit, no question is asked.
  package mutating func redirected() -> Step {
    guard redirectCount < redirectsMax else { return fail(.tooManyRedirections) }
    state = .redirecting
    return .askRedirection
  }

  /// Accepts the answer to `askRedirection` that the redirection is followed.
  package mutating func redirectionFollowed(toOtherOrigin isElsewhere: Bool) -> Step {
    guard case .redirecting = state else { return fail(.nothingAsked) }
    redirectCount += 1
    if isElsewhere { hasLeftOrigin = true }
    state = .loading
    return .load
  }

  /// Accepts the answer to `askRedirection` that the redirecting response is the load's response.
  package mutating func redirectionRefused() -> Step {
    guard case .redirecting = state else { return fail(.nothingAsked) }
    return deliver()
  }

  package mutating func credentialGiven() -> Step {
    guard case .authenticating = state else { return fail(.nothingAsked) }
    state = .loading
    return .load
  }

  /// Ends the load with the response that asks for credentials, because there are none.
  package mutating func credentialRefused() -> Step {
    guard case .authenticating = state else { return fail(.nothingAsked) }
    return deliver()
  }

  package mutating func deliver() -> Step {
    state = .over
    return .deliver
  }

  package mutating func fail(_ failure: Failure) -> Step {
    state = .over
    return .fail(failure)
  }
}
