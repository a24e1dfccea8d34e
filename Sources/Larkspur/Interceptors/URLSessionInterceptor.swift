import Foundation
import LarkspurEngine

/// A part of a program that sees each attempt of a session's loads: changes requests before they are sent, and decides after
/// a response's head or an error whether another attempt follows. An addition of Larkspur's, for
/// ``URLSessionConfiguration/interceptors``. `URLSession.RetryPolicy` and `URLSession.BearerTokenInterceptor` are interceptors.
///
/// The functions run on Swift's thread pool. Cancelling the load cancels the task in which they run. While they run, the load's
/// time limits stand still, as they do for questions to a delegate.
public protocol URLSessionInterceptor: Sendable {
  /// Returns the request to send. Called before each attempt, with the request as it was before earlier attempts
  /// changed it, and not for requests that follow a redirection or a challenge. An error becomes the task's error.
  ///
  /// - Parameters:
  ///   - request: The request, as the interceptors before this one have changed it.
  ///   - attempt: The number of the attempt, counted from 1.
  func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest

  /// Decides what follows an attempt, before any of its response is delivered.
  func decide(after attempt: URLSessionAttempt) async -> HTTPInterceptorDecision

  /// Maximum duration of one attempt, from the wait for a connection to the last byte of the response, or `nil`, the
  /// default, for no limit. An attempt that takes longer ends with `URLError.timedOut`.
  var attemptTimeout: Duration? { get }
}

extension URLSessionInterceptor {
  /// Returns the request as it is.
  public func adapt(_ request: URLRequest, attempt: Int) async throws -> URLRequest { request }

  /// Returns `.deliver`.
  public func decide(after attempt: URLSessionAttempt) async -> HTTPInterceptorDecision { .deliver }

  /// No limit.
  public var attemptTimeout: Duration? { nil }
}

/// An attempt to load a request, with its response's head or its error.
public struct URLSessionAttempt: Sendable {
  /// The number of the attempt, counted from 1.
  public var number: Int
  /// The request, as interceptors and redirections have made it.
  public var request: URLRequest
  /// The response's head, or `nil` if the attempt has failed before it.
  public var response: URLResponse?
  /// The reason why the attempt has failed, or `nil` if it has not.
  public var error: URLError?
  /// The status codes of the responses to earlier attempts.
  public var earlierStatusCodes: [Int]
  /// Number of bytes of the body that were sent.
  public var bytesSent: Int64
  /// Whether another attempt can be made: the body can be sent once more, and nothing has been delivered to the task's
  /// owner.
  public var isRepeatable: Bool
  /// The status code of the response, or `nil` without a response of HTTP.
  public var statusCode: Int? { (response as? HTTPURLResponse)?.statusCode }
  /// Whether the connection or the server's absence is the reason of ``error``, so that another attempt may succeed.
  public var isConnectionError: Bool { error?.isOfConnection ?? false }
}

extension URLSessionConfiguration {
  /// The parts of the program that see each attempt of the session's loads, in the order in which they are called. Empty by
  /// default, and then without any cost. <doc:Retrying> describes them.
  ///
  /// WebSocket tasks and event sources ask for changes to their requests only, stream tasks for nothing. Tasks of background sessions
  /// fail with `URLError.resourceUnavailable` if there are interceptors: another process carries these tasks out. A program's
  /// `URLProtocol` gets the changed request, and its responses are not decided about.
  public var interceptors: [any URLSessionInterceptor] {
    get { storage.interceptors }
    set { storage.interceptors = newValue }
  }
}
