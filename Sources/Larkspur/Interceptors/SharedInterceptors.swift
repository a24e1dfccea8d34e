import Foundation
import LarkspurEngine
import LarkspurHTTP

@_exported import class LarkspurEngine.HTTPBearerTokenInterceptor
@_exported import enum LarkspurEngine.HTTPInterceptorDecision
@_exported import struct LarkspurEngine.HTTPRetryPolicy
@_exported import struct LarkspurHTTP.RetryBudget
@_exported import struct LarkspurHTTP.RetryRules

// The interceptors that sessions and `HTTPClient` share, with a session's requests and responses.

extension URLSessionAttempt: InterceptedAttempt {
  package var method: String { request.own.method }
  package var hasFailed: Bool { error != nil }
  package func requestField(_ name: String) -> String? { request.value(forHTTPHeaderField: name) }
  package func responseField(_ name: String) -> String? {
    (response as? HTTPURLResponse)?.value(forHTTPHeaderField: name)
  }
}

extension HTTPRetryPolicy: URLSessionInterceptor {
  /// Counts the request for the budget, and returns it as it is.
  public func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
    began(attempt: attempt)
    return request
  }

  /// Wants another attempt if the rules and the budget allow it.
  public func decide(after attempt: URLSessionAttempt) async -> HTTPInterceptorDecision { decision(after: attempt) }
}

extension HTTPBearerTokenInterceptor: URLSessionInterceptor {
  /// - Parameters:
  ///   - token: The first token.
  ///   - origins: URLs of the origins that get the token; their paths do not count.
  ///   - refresh: Gets another token in place of a refused one. Called on Swift's thread pool, and never twice at the
  ///     same time. Cancelling a request does not cancel the call, because other requests may wait for it.
  public convenience init(
    _ token: String, for origins: [URL], refresh: @escaping @Sendable (_ refused: String) async throws -> String
  ) {
    self.init(token, for: origins.compactMap { try? LoadTarget($0) }, refresh: refresh)
  }

  /// Adds the token to a request for one of the origins. Waits while a replacement of the token is in progress, and throws
  /// its error.
  public func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
    let own = request.value(forHTTPHeaderField: "Authorization")
    guard let value = try await value(for: Self.target(of: request), own: own) else { return request }
    var request = request
    request.setValue(value, forHTTPHeaderField: "Authorization")
    return request
  }

  /// Has the token replaced after a 401, and wants another attempt with the new one.
  public func decide(after attempt: URLSessionAttempt) async -> HTTPInterceptorDecision {
    await decision(after: attempt, of: Self.target(of: attempt.request))
  }

  private static func target(of request: URLRequest) -> LoadTarget? { request.url.flatMap { try? LoadTarget($0) } }
}
