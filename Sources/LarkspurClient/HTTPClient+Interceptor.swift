import LarkspurEngine
import LarkspurHTTP

extension HTTPClient {
  /// A part of a program that sees each attempt of a client's requests: changes requests before they are sent, and decides
  /// after a response's head or an error whether another attempt follows. For ``HTTPClient/Options/interceptors``. `RetryPolicy` and
  /// `BearerTokenInterceptor` are interceptors.
  ///
  /// The functions run in the task of the request, on Swift's thread pool. Their time counts for the limit of the whole
  /// request.
  public protocol Interceptor: Sendable {
    /// Returns the request to send. Called before each attempt, with the request as it was before earlier attempts
    /// changed it, and not for requests that follow a redirection or a challenge. An error becomes the request's error.
    ///
    /// - Parameters:
    ///   - request: The request, as the interceptors before this one have changed it.
    ///   - attempt: The number of the attempt, counted from 1.
    func adapt(_ request: Request, attempt: Int) async throws -> Request

    /// Decides what follows an attempt, before its response is handed to the closure of the request.
    func decide(after attempt: InterceptedAttempt) async -> InterceptorDecision

    /// Maximum duration of one attempt, from the wait for a connection to the last byte of the response, or `nil`, the
    /// default, for no limit. An attempt that takes longer ends with ``HTTPClientError/Code/timedOut``.
    var attemptTimeout: Duration? { get }
  }

  /// The decision of an interceptor after an attempt.
  public typealias InterceptorDecision = HTTPInterceptorDecision
  /// Repeats requests whose attempts have failed.
  public typealias RetryPolicy = HTTPRetryPolicy
  /// Adds a token to requests, and gets a new token when a server refuses it.
  public typealias BearerTokenInterceptor = HTTPBearerTokenInterceptor

  /// An attempt to load a request, with its response's head or its error.
  public struct InterceptedAttempt: Sendable {
    /// The number of the attempt, counted from 1.
    public var number: Int
    /// The request, as interceptors and redirections have made it.
    public var request: Request
    /// The status code of the response, or `nil` if the attempt has failed before it.
    public var statusCode: Int?
    /// The fields of the response, in the order in which they came.
    public var fields: FieldList
    /// The reason why the attempt has failed, or `nil` if it has not.
    public var error: HTTPClientError?
    /// The status codes of the responses to earlier attempts.
    public var earlierStatusCodes: [Int]
    /// Number of bytes of the body that were sent.
    public var bytesSent: Int
    /// Whether another attempt can be made: the body can be sent once more. A sequence is iterated once.
    public var isRepeatable: Bool
    /// Whether the connection or the server's absence is the reason of ``error``, so that another attempt may succeed.
    public var isConnectionError: Bool { error?.cause?.isOfConnection ?? false }
  }
}

extension HTTPClient.Interceptor {
  /// Returns the request as it is.
  public func adapt(_ request: HTTPClient.Request, attempt: Int) async throws -> HTTPClient.Request { request }

  /// Returns `.deliver`.
  public func decide(after attempt: HTTPClient.InterceptedAttempt) async -> HTTPClient.InterceptorDecision { .deliver }

  /// No limit.
  public var attemptTimeout: Duration? { nil }
}

extension HTTPClient.InterceptedAttempt: InterceptedAttempt {
  package var method: String { request.method }
  package var hasFailed: Bool { error != nil }
  package func requestField(_ name: String) -> String? { request.fields.firstValue(named: name) }
  package func responseField(_ name: String) -> String? { fields.firstValue(named: name) }
}

extension HTTPRetryPolicy: HTTPClient.Interceptor {
  /// Counts the request for the budget, and returns it as it is.
  public func adapt(_ request: HTTPClient.Request, attempt: Int) async throws -> HTTPClient.Request {
    began(attempt: attempt)
    return request
  }

  /// Wants another attempt if the rules and the budget allow it.
  public func decide(after attempt: HTTPClient.InterceptedAttempt) async -> HTTPClient.InterceptorDecision {
    decision(after: attempt)
  }
}

extension HTTPBearerTokenInterceptor: HTTPClient.Interceptor {
  /// Adds the token to a request for one of the origins. Waits while a replacement of the token is in progress, and throws
  /// its error.
  public func adapt(_ request: HTTPClient.Request, attempt: Int) async throws -> HTTPClient.Request {
    let own = request.fields.firstValue(named: "Authorization")
    guard let value = try await value(for: Self.target(of: request), own: own) else { return request }
    var request = request
    request.fields.replace("Authorization", with: value)
    return request
  }

  /// Has the token replaced after a 401, and wants another attempt with the new one.
  public func decide(after attempt: HTTPClient.InterceptedAttempt) async -> HTTPClient.InterceptorDecision {
    await decision(after: attempt, of: Self.target(of: attempt.request))
  }

  private static func target(of request: HTTPClient.Request) -> LoadTarget? { try? LoadTarget(request.url) { nil } }
}
