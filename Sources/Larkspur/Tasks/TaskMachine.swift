import Foundation

/// Decides what a task does next. It knows requests and responses; it does not know connections, queues and time, nor who
/// carries out what it decides: `TaskPerformer` does.
///
/// ```
///            .--------------- redirectionAnswered(request), credentialGiven -----------------.
///            v                                                                                |
///  start -> load --responseReceived--> askRedirection / askCredential ------------------------'
///            |  `--------------------> deliver --(body)--> finish
///            |                            ^
///            '--failed--> fail            '-- redirectionAnswered(nil), credentialRefused
/// ```
///
/// Invariants: at most `Redirection.countMax` redirections and `attemptsMax` challenges are followed; what was private to an
/// origin is never sent to another one.
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

  private(set) var request: URLRequest
  private(set) var redirectCount = 0
  /// The origin is not any more what the program had asked for.
  private(set) var isElsewhere = false
  /// The response that would be delivered if its question is answered with no.
  private var pending: HTTPURLResponse?

  init(_ request: URLRequest) { self.request = request }

  mutating func responseReceived(_ response: HTTPURLResponse) -> Step {
    switch response.statusCode {
    case 401, 407:
      pending = response
      return .askCredential(response)
    default: break
    }
    switch Redirection.next(after: response, to: request) {
    case .none: return .deliver(response)
    case .refuse(let code, let words): return .fail(.make(code, words, url: request.url))
    case .follow(let next):
      guard redirectCount < Redirection.countMax else {
        return .fail(.make(.httpTooManyRedirects, "too many HTTP redirects", url: request.url))
      }
      pending = response
      return .askRedirection(response, next)
    }
  }

  /// The same from a program's protocol, which says itself where to go. Nil: it has no response that a delegate could be
  /// shown.
  mutating func protocolRedirected(by response: HTTPURLResponse?, to next: URLRequest) -> Step {
    guard redirectCount < Redirection.countMax else {
      return .fail(.make(.httpTooManyRedirects, "too many redirects", url: next.url))
    }
    guard let response else { return redirectionAnswered(next) }
    pending = response
    return .askRedirection(response, next)
  }

  /// Nil: the redirecting response itself is what the task has loaded.
  mutating func redirectionAnswered(_ next: URLRequest?) -> Step {
    guard let next else {
      guard let response = pending.take() else { return .fail(.make(.unknown)) }
      return .deliver(response)
    }
    pending = nil
    redirectCount += 1
    if let old = request.url, let new = next.url, !Redirection.isSameOrigin(old, new) { isElsewhere = true }
    request = next
    return .load
  }

  mutating func credentialGiven() -> Step {
    pending = nil
    return .load
  }

  /// Nobody has credentials: the response that asks for them is what the task has loaded.
  mutating func credentialRefused() -> Step {
    guard let response = pending.take() else { return .fail(.make(.unknown)) }
    return .deliver(response)
  }
}
