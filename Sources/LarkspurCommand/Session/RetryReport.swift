import Foundation
import Larkspur

/// A retry policy that reports each retry before its delay.
struct RetryReport: URLSessionInterceptor {
  let policy: URLSession.RetryPolicy
  let report: @Sendable (URLSessionAttempt, Duration) -> Void

  func decide(after attempt: URLSessionAttempt) async -> URLSession.InterceptorDecision {
    let decision = await policy.decide(after: attempt)
    if case .retry(let delay) = decision { report(attempt, delay) }
    return decision
  }
}
