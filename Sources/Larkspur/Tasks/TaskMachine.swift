import Foundation

/// Decides what a task does next. It knows requests and responses; it does not know connections, queues and time, nor who
/// carries out what it decides: `Transfer` does.
///
/// ```
///              .------ redirectionAnswered(request) ------ redirecting <--askRedirection--.
///              v                                               | (nil)                    |
///   start -> loading -----------------------------------------------------responseReceived
///              ^                                               v                          |
///              '------ credentialGiven ------------------- authenticating <--askCredential|
///                                                              | credentialRefused        |
///                                                              v                          |
///                                                            over <---- deliver, fail ----'
/// ```
///
/// Invariants: at most `Redirection.countMax` redirections are followed; what was private to an origin is never sent to
/// another one; no server leads a task to a file of this machine or to a `data:` URL. An answer to a question that has not
/// been asked fails the task: it is a mistake of ours. How often credentials are asked for is limited by
/// `AuthenticationMachine`.
struct TaskMachine {
  enum Step {
    /// Load the present request.
    case load
    /// Ask the delegate whether to go where the response says.
    case askRedirection(HTTPURLResponse, URLRequest)
    /// Find credentials for what the response demands.
    case askCredential(HTTPURLResponse)
    /// Give the response's content to the task's owner.
    case deliver(HTTPURLResponse)
    case fail(URLError)
  }

  private enum State {
    case loading
    /// With the response that is delivered if the answer is no. A program's protocol may have none.
    case redirecting(HTTPURLResponse?, proposed: URLRequest)
    case authenticating(HTTPURLResponse)
    case over
  }

  private(set) var request: URLRequest
  private(set) var redirectCount = 0
  /// The origin is not any more what the program had asked for.
  private(set) var isElsewhere = false
  /// The response that has led to the present request, or `nil` if there is none: before the first redirection, and behind
  /// one of a program's protocol that has no response.
  private(set) var redirection: HTTPURLResponse?
  /// Whether the present request may be answered by this machine itself, as `file:` and `data:` URLs are. A URL that a server
  /// has redirected to may not, nor may one with such a URL's scheme that a delegate has made of it.
  private(set) var mayBeLocal = true
  private var state = State.loading

  init(_ request: URLRequest) { self.request = request }

  /// Whether a response of this status is what the task has loaded, whatever else it says.
  static func isDelivered(status: Int) -> Bool { !(300..<400).contains(status) && status != 401 && status != 407 }

  /// In any state: a load may be made once more by those who carry it out, for a part of it or for a stale connection.
  mutating func responseReceived(_ response: HTTPURLResponse) -> Step {
    if Self.isDelivered(status: response.statusCode) { return deliver(response) }
    if response.statusCode == 401 || response.statusCode == 407 {
      state = .authenticating(response)
      return .askCredential(response)
    }
    guard let next = Redirection.next(after: response, to: request) else { return deliver(response) }
    state = .redirecting(response, proposed: next)
    return .askRedirection(response, next)
  }

  /// The same from a program's protocol, which says itself where to go. Nil: it has no response that a delegate could be
  /// shown.
  mutating func protocolRedirected(by response: HTTPURLResponse?, to next: URLRequest) -> Step {
    state = .redirecting(response, proposed: next)
    guard let response else { return redirectionAnswered(next) }
    return .askRedirection(response, next)
  }

  /// Nil: the redirecting response itself is what the task has loaded.
  mutating func redirectionAnswered(_ next: URLRequest?) -> Step {
    guard case .redirecting(let response, let proposed) = state else {
      return fail(.unknown, "no redirection is waiting for an answer")
    }
    guard let next else {
      guard let response else { return fail(.unknown, "a redirection without a response was refused") }
      return deliver(response)
    }
    guard redirectCount < Redirection.countMax else { return fail(.httpTooManyRedirects, "too many HTTP redirects") }
    redirectCount += 1
    redirection = response
    // A protocol for HTTP passes on what a server has said; one for a scheme of its own speaks for its program.
    mayBeLocal =
      !Redirection.isOfHTTP(request.url)
      || next.url?.scheme?.lowercased() != proposed.url?.scheme?.lowercased()
    if let old = request.url, let new = next.url, !Redirection.isSameOrigin(old, new) { isElsewhere = true }
    request = next
    state = .loading
    return .load
  }

  mutating func credentialGiven() -> Step {
    guard case .authenticating = state else { return fail(.unknown, "no challenge is waiting for an answer") }
    state = .loading
    return .load
  }

  /// Nobody has credentials: the response that asks for them is what the task has loaded.
  mutating func credentialRefused() -> Step {
    guard case .authenticating(let response) = state else {
      return fail(.unknown, "no challenge is waiting for an answer")
    }
    return deliver(response)
  }

  private mutating func deliver(_ response: HTTPURLResponse) -> Step {
    state = .over
    return .deliver(response)
  }

  private mutating func fail(_ code: URLError.Code, _ words: String) -> Step {
    state = .over
    return .fail(.make(code, words, url: request.url))
  }
}
