import LarkspurHTTP
import LarkspurIO
import Synchronization

/// Repeats requests whose attempts have failed: an interceptor of a session or of a client.
///
/// A request is sent again after an error of its connection and after the status codes of `rules`, if
/// its method allows that, its body can be sent again, and nothing has been delivered. A session's download continues from the
/// bytes received so far, if the response had a strong validator. An error of trust, of policy or of the request itself is
/// never repeated.
///
/// A budget limits the repetitions to a fifth of the requests, and ten more. Copies of a policy share it: sessions with
/// separate policies have separate budgets.
public struct HTTPRetryPolicy: Sendable, QuickInterceptor {
  /// The number of attempts, their delays, and the requests and responses that are repeated.
  public typealias Rules = RetryRules
  /// The limit of all repetitions together.
  public typealias Budget = RetryBudget

  /// The number of attempts, their delays, and the requests and responses that are repeated.
  public var rules = Rules()
  /// Maximum duration of one attempt, or `nil`, the default, for no limit.
  public var attemptTimeout: Duration?
  private let budget: SharedBudget
  /// Returns a random number from 0 to 1, which spreads the delays.
  private let fraction: @Sendable () -> Double

  /// A new policy with the default rules: three attempts, after up to 0.5 and 1 s or as long as the server asks for.
  public static var standard: HTTPRetryPolicy { HTTPRetryPolicy() }

  /// - Parameters:
  ///   - rules: The rules.
  ///   - budget: The budget of all loads of the policy.
  public init(rules: Rules = Rules(), budget: Budget = Budget()) {
    self.init(rules: rules, budget: budget) { .random(in: 0...1) }
  }

  package init(rules: Rules, budget: Budget, fraction: @escaping @Sendable () -> Double) {
    self.rules = rules
    self.budget = SharedBudget(budget)
    self.fraction = fraction
  }

  /// Counts an attempt that begins.
  package func began(attempt: Int) { if attempt == 1 { budget.state.withLock { $0.requested() } } }

  /// Returns another attempt if the rules and the budget allow it.
  package func decision(after attempt: some InterceptedAttempt) -> HTTPInterceptorDecision {
    let failure: RetryRules.Attempt.Failure
    if !attempt.hasFailed, let status = attempt.statusCode {
      let field = attempt.responseField("Retry-After")
      failure = .status(status, retryAfter: field.flatMap { RetryAfter.seconds($0, now: MachineClock.wallSeconds) })
    } else {
      failure = .error(isOfConnection: attempt.isConnectionError)
    }
    let facts = RetryRules.Attempt(
      number: attempt.number, method: attempt.method,
      hasIdempotencyKey: attempt.requestField("Idempotency-Key") != nil, failure: failure)
    guard attempt.isRepeatable, let delay = delay(after: facts) else { return .deliver }
    return .retry(after: delay)
  }

  /// Returns the delay before another attempt, or `nil` if the rules or the budget do not allow one.
  package func delay(after attempt: RetryRules.Attempt) -> Duration? {
    guard let delay = rules.delay(after: attempt, fraction: fraction()),
      budget.state.withLock({ $0.takeRepetition() })
    else { return nil }
    return delay
  }

  private final class SharedBudget: Sendable {
    let state: Mutex<RetryBudget>
    init(_ budget: RetryBudget) { state = Mutex(budget) }
  }
}
