import Foundation
import LarkspurHTTP
import Synchronization

@_exported import struct LarkspurHTTP.RetryBudget
@_exported import struct LarkspurHTTP.RetryRules

/// Repeats requests whose attempts have failed: an interceptor for ``URLSessionConfiguration/interceptors``.
///
/// A request is sent again after an error of its connection and after the status codes of `rules`, if
/// its method allows that, its body can be sent again, and nothing has been delivered. A download continues from the bytes
/// received so far, if the response had a strong validator (<doc:Resuming>). An error of trust, of policy or of the request itself is never repeated.
///
/// A budget limits the repetitions to a fifth of the requests, and ten more. Copies of a policy share it: sessions with
/// policies of their own have budgets of their own.
public struct URLSessionRetryPolicy: URLSessionInterceptor {
  /// The number of attempts, their delays, and the requests and responses that are repeated.
  public typealias Rules = RetryRules
  /// The limit of all repetitions together.
  public typealias Budget = RetryBudget

  /// The number of attempts, their delays, and the requests and responses that are repeated.
  public var rules = Rules()
  /// Maximum duration of one attempt, or `nil`, the default, for no limit.
  public var attemptTimeout: Duration?
  private let budget: SharedBudget

  /// A new policy with the default rules: three attempts, after up to 0.5 and 1 s or as long as the server asks for.
  public static var standard: URLSessionRetryPolicy { URLSessionRetryPolicy() }

  /// - Parameters:
  ///   - rules: The rules.
  ///   - budget: The budget of all loads of the policy.
  public init(rules: Rules = Rules(), budget: Budget = Budget()) {
    self.rules = rules
    self.budget = SharedBudget(budget)
  }

  /// Counts the request for the budget, and returns it as it is.
  public func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
    if attempt == 1 { budget.state.withLock { $0.requested() } }
    return request
  }

  /// Wants another attempt if the rules and the budget allow it.
  public func decide(after attempt: URLSessionAttempt) async -> URLSessionInterceptorDecision {
    guard attempt.isRepeatable,
      let delay = rules.delay(after: RetryRules.Attempt(attempt), fraction: .random(in: 0...1)),
      budget.state.withLock({ $0.takeRepetition() })
    else { return .deliver }
    return .retry(after: delay)
  }

  private final class SharedBudget: Sendable {
    let state: Mutex<RetryBudget>
    init(_ budget: RetryBudget) { state = Mutex(budget) }
  }
}

extension RetryRules.Attempt {
  fileprivate init(_ attempt: URLSessionAttempt) {
    let failure: Failure
    if attempt.error == nil, let status = attempt.statusCode {
      let field = (attempt.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Retry-After")
      failure = .status(
        status,
        retryAfter: field.flatMap { RetryAfter.seconds($0, now: Date().timeIntervalSince1970) })
    } else {
      failure = .error(isOfConnection: attempt.isConnectionError)
    }
    self.init(
      number: attempt.number, method: attempt.request.own.method,
      hasIdempotencyKey: attempt.request.value(forHTTPHeaderField: "Idempotency-Key") != nil, failure: failure)
  }
}
