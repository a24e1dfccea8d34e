import Foundation
import Synchronization

/// Adds a token to requests (RFC 6750), and gets another one when a server refuses it: an interceptor for
/// ``URLSessionConfiguration/interceptors``.
///
/// The token goes to the origins that are named, and to no other: a redirection to another origin loses it. A response 401
/// has the token replaced, once for all requests that wait for it, and each of these requests is sent once more. If the
/// replacement fails, all of them end with its error, and the next refused request tries again. A request that has an
/// `Authorization` field already is sent as it is.
public final class URLSessionBearerTokenInterceptor: URLSessionInterceptor {
  private struct State {
    var token: String
    /// The token before the current one. A request that was redirected before it was refused still has it.
    var replaced: String?
    /// The replacement that is in progress.
    var replacement: Task<Void, any Error>?
  }

  private let origins: [URL]
  private let refresh: @Sendable (_ refused: String) async throws -> String
  private let state: Mutex<State>

  /// - Parameters:
  ///   - token: The first token.
  ///   - origins: URLs of the origins that get the token; their paths do not count.
  ///   - refresh: Gets another token in place of a refused one. Called on Swift's thread pool, and never twice at the
  ///     same time. Cancelling a request does not cancel the call, because other requests may wait for it.
  public init(
    _ token: String, for origins: [URL], refresh: @escaping @Sendable (_ refused: String) async throws -> String
  ) {
    self.origins = origins
    self.refresh = refresh
    state = Mutex(State(token: token))
  }

  /// Adds the token to a request for one of the origins. Waits while a replacement of the token is in progress, and throws
  /// its error.
  public func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest {
    guard isForOrigin(of: request) else { return request }
    if let own = request.value(forHTTPHeaderField: "Authorization") {
      guard own == state.withLock({ $0.replaced.map { Self.scheme + $0 } }) else { return request }
    }
    try await state.withLock { $0.replacement }?.value
    var request = request
    request.setValue(Self.scheme + state.withLock { $0.token }, forHTTPHeaderField: "Authorization")
    return request
  }

  /// Has the token replaced after a 401, and wants another attempt with the new one.
  public func decide(after attempt: URLSessionAttempt) async -> URLSessionInterceptorDecision {
    guard attempt.isRepeatable, attempt.statusCode == 401, !attempt.earlierStatusCodes.contains(401),
      isForOrigin(of: attempt.request),
      let field = attempt.request.value(forHTTPHeaderField: "Authorization"), field.hasPrefix(Self.scheme)
    else { return .deliver }
    do {
      try await replacement(of: String(field.dropFirst(Self.scheme.count)))?.value
      return .retry(after: .zero)
    } catch {
      return .fail(error)
    }
  }

  private static let scheme = "Bearer "

  private func isForOrigin(of request: URLRequest) -> Bool {
    guard let url = request.url else { return false }
    return origins.contains { Redirection.isSameOrigin($0, url) }
  }

  /// Returns the replacement of a refused token, which begins here if it is not in progress.
  ///
  /// - Returns: `nil` if the token has been replaced already.
  private func replacement(of refused: String) -> Task<Void, any Error>? {
    state.withLock { state in
      if let replacement = state.replacement { return replacement }
      guard state.token == refused else { return nil }
      let replacement = Task.detached { [self] in
        defer { self.state.withLock { $0.replacement = nil } }
        let token = try await refresh(refused)
        self.state.withLock { ($0.token, $0.replaced) = (token, refused) }
      }
      state.replacement = replacement
      return replacement
    }
  }
}
