import Foundation
import LarkspurHTTP

/// Decides what a task does next: a `LoadMachine` with the task's request and responses. Connections, queues and time are
/// left to `Load`, which carries out the decisions.
///
/// Invariants beside those of `LoadMachine`: fields that are private to an origin are never sent to another origin; no
/// server can redirect a task to a file of this machine or to a `data:` URL.
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

  private(set) var request: URLRequest
  private var machine = LoadMachine()
  var redirectCount: Int { machine.redirectCount }
  /// Whether a redirection has left the origin that the program named.
  var hasLeftOrigin: Bool { machine.hasLeftOrigin }
  /// The response that redirected to the current request. `nil` before the first redirection, and after a redirection
  /// by a program's protocol without a response.
  private(set) var redirection: HTTPURLResponse?
  /// Whether the current request may be loaded from this machine, as `file:` and `data:` URLs are. `false` after a
  /// redirection by a server, unless the delegate has changed the scheme of the proposed URL.
  private(set) var mayBeLocal = true
  /// The response that a question is about. `nil` if a program's protocol has redirected without one.
  private var asking: HTTPURLResponse?
  /// The request that a redirection proposes.
  private var proposed: URLRequest?

  init(_ request: URLRequest) { self.request = request }

  /// Replaces the request by one that the program's interceptors have changed, or by the one before their changes.
  mutating func replace(by request: URLRequest) { self.request = request }

  /// Replaces a WebSocket's URL by the one of its opening handshake, which is an HTTP request (RFC 6455 4.1), and which
  /// this machine cannot answer.
  mutating func replaceWebSocketURL() {
    mayBeLocal = false
    if let url = request.url?.ofHandshake { request.url = url }
  }

  /// Accepts a response in any state: `Load` may repeat a load, for another part of a download or because a
  /// connection was stale.
  ///
  /// - Parameter followsRedirections: `false` if the owner follows redirections itself: the response is delivered.
  mutating func responseReceived(_ response: HTTPURLResponse, followsRedirections: Bool = true) -> Step {
    let status = response.statusCode
    if LoadMachine.isDelivered(status: status) {
      _ = machine.deliver()
      return .deliver(response)
    }
    asking = response
    proposed = followsRedirections ? Redirection.next(after: response, to: request) : nil
    return step(machine.responseReceived(status: status, redirects: proposed != nil))
  }

  /// Accepts a redirection by a server, or by a program's protocol, which names the next request itself. Beyond the
  /// limit, no delegate is asked.
  ///
  /// - Parameter response: The redirecting response, or `nil` if the protocol has no response to show to a delegate.
  mutating func redirected(by response: HTTPURLResponse?, to next: URLRequest) -> Step {
    asking = response
    proposed = next
    let decision = machine.redirected()
    if case .askRedirection = decision, response == nil { return redirectionAnswered(next) }
    return step(decision)
  }

  /// Accepts the answer to `askRedirection`.
  ///
  /// - Parameter next: The request to load, or `nil` if the redirecting response is the task's response.
  mutating func redirectionAnswered(_ next: URLRequest?) -> Step {
    guard let next else { return step(machine.redirectionRefused()) }
    let isElsewhere =
      if let old = request.url, let new = next.url { !Redirection.isSameOrigin(old, new) } else { false }
    let decision = machine.redirectionFollowed(toOtherOrigin: isElsewhere)
    guard case .load = decision else { return step(decision) }
    redirection = asking
    // A protocol that loads HTTP passes on a server's redirection. A protocol for a custom scheme acts for its program.
    mayBeLocal =
      !Redirection.isOfHTTP(request.url)
      || next.url?.scheme?.lowercased() != proposed?.url?.scheme?.lowercased()
    request = next
    proposed = nil
    return .load
  }

  mutating func credentialGiven() -> Step { step(machine.credentialGiven()) }

  /// Ends the task with the response that asks for credentials, because there are none.
  mutating func credentialRefused() -> Step { step(machine.credentialRefused()) }

  private func step(_ decision: LoadMachine.Step) -> Step {
    switch decision {
    case .load: return .load
    case .askRedirection:
      if let asking, let proposed { return .askRedirection(asking, proposed) }
    case .askCredential:
      if let asking { return .askCredential(asking) }
    case .deliver:
      if let asking { return .deliver(asking) }
    case .fail(.tooManyRedirections): return fail(.httpTooManyRedirects, "too many HTTP redirects")
    case .fail(.nothingAsked): break
    }
    return fail(.unknown, "no question is waiting for an answer")
  }

  private func fail(_ code: URLError.Code, _ message: String) -> Step { .fail(.make(code, message, url: request.url)) }
}
