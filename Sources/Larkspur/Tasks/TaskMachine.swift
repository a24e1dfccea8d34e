import Foundation
import LarkspurHTTP

/// Decides what a task does next. The machine handles requests and responses only. Connections, queues and time are
/// left to `Transfer`, which carries out the decisions.
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
/// Invariants: at most `RedirectPolicy.countMax` redirections are followed; fields that are private to an origin are
/// never sent to another one; no server can redirect a task to a file of this machine or to a `data:` URL. An answer to
/// a question that has not been asked fails the task: it is an error of Larkspur's. `AuthenticationMachine` limits how
/// often credentials are asked for.
struct TaskMachine {
  enum Step {
    /// Load the machine's request.
    case load
    /// Ask the delegate whether to follow the redirection.
    case askRedirection(HTTPURLResponse, URLRequest)
    /// Find credentials for the response's challenge.
    case askCredential(HTTPURLResponse)
    /// Deliver the response's content to the task's owner.
    case deliver(HTTPURLResponse)
    case fail(URLError)
  }

  private enum State {
    case loading
    /// Holds the response that is delivered if the redirection is refused, or `nil` if a program's protocol has
    /// redirected without one.
    case redirecting(HTTPURLResponse?, proposed: URLRequest)
    case authenticating(HTTPURLResponse)
    case over
  }

  private(set) var request: URLRequest
  private(set) var redirectCount = 0
  /// Whether a redirection has left the origin that the program named.
  private(set) var hasLeftOrigin = false
  /// The response that redirected to the present request. `nil` before the first redirection, and after a redirection
  /// by a program's protocol without a response.
  private(set) var redirection: HTTPURLResponse?
  /// Whether the present request may be loaded from this machine, as `file:` and `data:` URLs are. `false` after a
  /// redirection by a server, unless the delegate has changed the scheme of the proposed URL.
  private(set) var mayBeLocal = true
  private var state = State.loading

  init(_ request: URLRequest) { self.request = request }

  /// Replaces a WebSocket's URL by the one of its opening handshake, which is an HTTP request (RFC 6455 4.1), and which
  /// this machine cannot answer.
  mutating func replaceWebSocketURL() {
    mayBeLocal = false
    if let url = request.url?.ofHandshake { request.url = url }
  }

  /// Whether a response of this status is the task's response, whatever its fields are.
  static func isDelivered(status: Int) -> Bool { !(300..<400).contains(status) && status != 401 && status != 407 }

  /// Accepts a response in any state: `Transfer` may repeat a load, for another part of a download or because a
  /// connection was stale.
  ///
  /// - Parameter followsRedirections: `false` if the owner follows redirections itself: the response is delivered.
  mutating func responseReceived(_ response: HTTPURLResponse, followsRedirections: Bool = true) -> Step {
    if Self.isDelivered(status: response.statusCode) { return deliver(response) }
    if response.statusCode == 401 || response.statusCode == 407 {
      state = .authenticating(response)
      return .askCredential(response)
    }
    guard followsRedirections, let next = Redirection.next(after: response, to: request) else {
      return deliver(response)
    }
    return redirected(by: response, to: next)
  }

  /// Accepts a redirection by a server, or by a program's protocol, which names the next request itself. Beyond the
  /// limit, no delegate is asked.
  ///
  /// - Parameter response: The redirecting response, or `nil` if the protocol has none that a delegate can be shown.
  mutating func redirected(by response: HTTPURLResponse?, to next: URLRequest) -> Step {
    guard redirectCount < RedirectPolicy.countMax else { return fail(.httpTooManyRedirects, "too many HTTP redirects") }
    state = .redirecting(response, proposed: next)
    guard let response else { return redirectionAnswered(next) }
    return .askRedirection(response, next)
  }

  /// Accepts the answer to `askRedirection`.
  ///
  /// - Parameter next: The request to load, or `nil` if the redirecting response is the task's response.
  mutating func redirectionAnswered(_ next: URLRequest?) -> Step {
    guard case .redirecting(let response, let proposed) = state else {
      return fail(.unknown, "no redirection is waiting for an answer")
    }
    guard let next else {
      guard let response else { return fail(.unknown, "a redirection without a response was refused") }
      return deliver(response)
    }
    redirectCount += 1
    redirection = response
    // A protocol that loads HTTP passes on a server's redirection. A protocol for a scheme of its own acts for its
    // program.
    mayBeLocal =
      !Redirection.isOfHTTP(request.url)
      || next.url?.scheme?.lowercased() != proposed.url?.scheme?.lowercased()
    if let old = request.url, let new = next.url, !Redirection.isSameOrigin(old, new) { hasLeftOrigin = true }
    request = next
    state = .loading
    return .load
  }

  mutating func credentialGiven() -> Step {
    guard case .authenticating = state else { return fail(.unknown, "no challenge is waiting for an answer") }
    state = .loading
    return .load
  }

  /// Ends the task with the response that asks for credentials, because there are none.
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

  private mutating func fail(_ code: URLError.Code, _ message: String) -> Step {
    state = .over
    return .fail(.make(code, message, url: request.url))
  }
}
