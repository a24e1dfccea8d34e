import Foundation
import LarkspurCoding
import LarkspurEngine
import LarkspurTransport

@_exported import enum LarkspurCoding.BodyCompression

// Types that Larkspur adds to types of FoundationNetworking and Foundation. Each is declared at the top level and gets
// its nested name as a type alias in an extension of a protocol. A package that declares a nested type of one of these
// names then gets its own type, also in modules that import both: the compiler prefers the member of a type to that of
// a protocol. Between a nested type of Larkspur and one of a package the name would be ambiguous.

/// Nested types of `URL`.
public protocol _URLTypes {}

extension URL: _URLTypes {}

extension _URLTypes {
  /// The bytes behind a URL.
  public typealias AsyncBytes = URLAsyncBytes
}

/// Nested types of `URLError`.
public protocol _URLErrorTypes {}

extension URLError: _URLErrorTypes {}

extension _URLErrorTypes {
  /// The property of a network because of which the load may not use it.
  public typealias NetworkUnavailableReason = URLErrorNetworkUnavailableReason
  /// The reason for which the system ended a task of a background session.
  public typealias BackgroundTaskCancelledReason = URLErrorBackgroundTaskCancelledReason
}

/// Nested types of `URLRequest` and `NSURLRequest`.
public protocol _URLRequestTypes {}

extension URLRequest: _URLRequestTypes {}

extension NSURLRequest: _URLRequestTypes {}

extension _URLRequestTypes {
  /// The origin of a URL.
  public typealias Attribution = URLRequestAttribution
  /// The coding that compresses a request's body.
  public typealias BodyCompression = LarkspurCoding.BodyCompression
}

/// Nested types of `URLSession`.
public protocol _URLSessionTypes {}

extension URLSession: _URLSessionTypes {}

extension _URLSessionTypes {
  /// The bytes of a body as they arrive.
  public typealias AsyncBytes = URLSessionAsyncBytes
  /// The decision of an interceptor after an attempt.
  public typealias InterceptorDecision = HTTPInterceptorDecision
  /// Repeats requests whose attempts have failed.
  public typealias RetryPolicy = HTTPRetryPolicy
  /// Adds a token to requests, and gets a new token when a server refuses it.
  public typealias BearerTokenInterceptor = HTTPBearerTokenInterceptor
}

/// Nested types of `URLSessionConfiguration`.
public protocol _URLSessionConfigurationTypes {}

extension URLSessionConfiguration: _URLSessionConfigurationTypes {}

extension _URLSessionConfigurationTypes {
  /// The ways in which several interfaces would share a connection's traffic.
  public typealias MultipathServiceType = URLSessionMultipathServiceType
  /// Upper limits on the rates of a session's connections.
  public typealias RateLimits = LarkspurTransport.RateLimits
  /// How download tasks load their files in segments.
  public typealias SegmentedDownloads = URLSessionSegmentedDownloads
  /// The time limits of the parts of connections and exchanges.
  public typealias Timeouts = LarkspurTransport.Timeouts
  /// The version of the protocol of resumable uploads.
  public typealias ResumableUploadDraft = URLSessionResumableUploadDraft
}

/// Nested types of `URLSessionWebSocketTask`.
public protocol _URLSessionWebSocketTaskTypes {}

extension URLSessionWebSocketTask: _URLSessionWebSocketTaskTypes {}

extension _URLSessionWebSocketTaskTypes {
  /// The messages of the server.
  public typealias Messages = URLSessionWebSocketMessages
}
