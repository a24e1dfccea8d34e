import LarkspurBytes

/// What follows an attempt, by the decision of an interceptor.
public enum HTTPInterceptorDecision: Sendable {
  /// The next interceptor decides. After the last one, the response or the error is delivered.
  case deliver
  /// Another attempt is made after a delay, if the attempt is repeatable. Otherwise the response or the error is
  /// delivered. The delay counts for the time limits of the whole load.
  case retry(after: Duration)
  /// The load ends with this error.
  case fail(any Error)
}

/// An interceptor that neither waits nor blocks, so that a client may run it on the loop's thread.
package protocol QuickInterceptor {}

/// What the rules of interceptors read of an attempt. Each client has its own requests and responses.
package protocol InterceptedAttempt {
  /// The number of the attempt, counted from 1.
  var number: Int { get }
  var method: String { get }
  var isRepeatable: Bool { get }
  /// Whether the attempt has ended with an error, perhaps after the head of a response.
  var hasFailed: Bool { get }
  var isConnectionError: Bool { get }
  var statusCode: Int? { get }
  /// The status codes of the responses to earlier attempts.
  var earlierStatusCodes: [Int] { get }

  func requestField(_ name: String) -> String?
  func responseField(_ name: String) -> String?
}

/// The interceptors of a load, and the attempt that they see. It belongs to the loop.
package final class Interception<Interceptor, Request> {
  package let interceptors: [Interceptor]
  /// The number of the current attempt, counted from 1, or 0 before the first one.
  package private(set) var number = 0
  /// Whether the request of the current attempt has been changed by the interceptors.
  package private(set) var isAdapted = false
  /// The status codes of the responses to earlier attempts.
  package private(set) var statusCodes: [Int] = []
  /// The request of the current attempt before the interceptors changed it, and the number of redirections before it.
  private var base: (request: Request, redirectCount: Int)?
  private let timeout: Duration?
  /// The end of the current attempt, once a request of it has been prepared.
  private var deadline: Deadline?

  /// - Parameter timeouts: The interceptors' limits of an attempt. The shortest one counts.
  package init(_ interceptors: [Interceptor], timeouts: [Duration]) {
    self.interceptors = interceptors
    timeout = timeouts.min()
  }

  /// Returns the end of the current attempt. Its time begins with the first call.
  package func deadline(from now: Deadline) -> Deadline? {
    if deadline == nil { deadline = timeout.map { now.advanced(by: $0) } }
    return deadline
  }

  /// Begins an attempt.
  package func begin(_ request: Request, redirectCount: Int) {
    number += 1
    isAdapted = true
    deadline = nil
    base = (request, redirectCount)
  }

  /// Ends the attempt, because another attempt follows.
  ///
  /// - Parameters:
  ///   - statusCode: The status code of the response, if there was one.
  ///   - request: The current request, which may be that of a redirection.
  /// - Returns: The request of the next attempt, before the interceptors change it.
  package func end(_ statusCode: Int?, _ request: Request, redirectCount: Int) -> Request {
    if let statusCode { statusCodes.append(statusCode) }
    isAdapted = false
    guard let base, base.redirectCount == redirectCount else { return request }
    return base.request
  }
}
