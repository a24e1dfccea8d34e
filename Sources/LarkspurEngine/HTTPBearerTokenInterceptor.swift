import LarkspurHTTP
import Synchronization

/// Adds a token to requests (RFC 6750), and gets a new token when a server refuses it: an interceptor of a session or
/// of a client.
///
/// The token goes to the origins that are named, and to no other: a redirection to another origin loses it. A response 401
/// has the token replaced, once for all requests that wait for it, and each of these requests is sent once more. If the
/// replacement fails, all of them end with its error, and the next refused request tries again. A request that has an
/// `Authorization` field already is sent as it is.
public final class HTTPBearerTokenInterceptor: Sendable {
  private struct State {
    var token: String
    /// The tokens before the current one, the latest last. A request that was redirected before it was refused has one.
    var replaced: [String] = []
    /// The replacement that is in progress.
    var replacement: Task<Void, any Error>?
  }

  /// Maximum number of earlier tokens that are recognized.
  private static let replacedMax = 8

  private let origins: Set<LoadTarget.Origin>
  private let refresh: @Sendable (_ refused: String) async throws -> String
  private let state: Mutex<State>

  /// - Parameters:
  ///   - token: The first token.
  ///   - origins: URLs of the origins that get the token, as text; their paths do not count. A text that is no URL of `http`
  ///     or `https` names no origin.
  ///   - refresh: Gets another token in place of a refused one. Called on Swift's thread pool, and never twice at the
  ///     same time. Cancelling a request does not cancel the call, because other requests may wait for it.
  public convenience init(
    _ token: String, for origins: [String], refresh: @escaping @Sendable (_ refused: String) async throws -> String
  ) {
    self.init(token, for: origins.compactMap { try? LoadTarget($0) { nil } }, refresh: refresh)
  }

  package init(
    _ token: String, for origins: [LoadTarget], refresh: @escaping @Sendable (_ refused: String) async throws -> String
  ) {
    self.origins = Set(origins.map(\.origin))
    self.refresh = refresh
    state = Mutex(State(token: token))
  }

  /// Returns the value of the field `Authorization` for a request, or `nil` if the request stays as it is. Waits while a
  /// replacement of the token is in progress, and throws its error.
  ///
  /// - Parameters:
  ///   - target: The request's target, or `nil` if it has no HTTP target.
  ///   - own: The value that the request has.
  package func value(for target: LoadTarget?, own: String?) async throws -> String? {
    guard let target, origins.contains(target.origin) else { return nil }
    if let own { guard state.withLock({ $0.replaced.contains { Self.scheme + $0 == own } }) else { return nil } }
    try await state.withLock { $0.replacement }?.value
    return Self.scheme + state.withLock { $0.token }
  }

  /// Has the token replaced after a 401, and returns another attempt with the new one.
  ///
  /// - Parameter target: The target of the attempt's request, or `nil` if it has no HTTP target.
  package func decision(
    after attempt: some InterceptedAttempt, of target: LoadTarget?
  ) async -> HTTPInterceptorDecision {
    guard attempt.isRepeatable, !attempt.hasFailed, attempt.statusCode == 401,
      !attempt.earlierStatusCodes.contains(401), let target, origins.contains(target.origin),
      let field = attempt.requestField("Authorization"), field.hasPrefix(Self.scheme)
    else { return .deliver }
    do {
      try await replacement(of: String(field.dropFirst(Self.scheme.count)))?.value
      return .retry(after: .zero)
    } catch {
      return .fail(error)
    }
  }

  private static let scheme = "Bearer "

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
        self.state.withLock {
          $0.token = token
          $0.replaced = $0.replaced.suffix(Self.replacedMax - 1) + [refused]
        }
      }
      state.replacement = replacement
      return replacement
    }
  }
}
