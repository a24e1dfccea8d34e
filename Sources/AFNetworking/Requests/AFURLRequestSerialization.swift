import Foundation
import Larkspur

/// Adds parameters to requests: to the query, or to the body, with the header fields that describe the body.
public protocol AFURLRequestSerialization: NSObjectProtocol, NSSecureCoding, NSCopying {
  /// Returns a copy of a request with the parameters in it.
  ///
  /// - Parameters:
  ///   - request: The original request, which does not change.
  ///   - parameters: A value that the serializer can write; mostly a dictionary.
  ///   - error: Receives an error.
  /// - Returns: The request, or `nil` after an error.
  func request(bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer)
    -> URLRequest?
}

extension AFURLRequestSerialization {
  /// Returns a copy of a request with the parameters in it, like `request(bySerializingRequest:withParameters:error:)`,
  /// and throws its error.
  public func request(bySerializingRequest request: URLRequest, withParameters parameters: Any?) throws -> URLRequest {
    let result = try AutoreleasingUnsafeMutablePointer<NSError?>.thrown {
      self.request(bySerializingRequest: request, withParameters: parameters, error: $0)
    }
    guard let result else {
      throw RequestProblem.make(.unknown, "The serializer gives no request, and no reason.", request: request)
    }
    return result
  }

  /// Returns a copy of a request with the parameters in it, for callers that write `error: &error`.
  public func request(
    bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: inout NSError?
  ) -> URLRequest? {
    AutoreleasingUnsafeMutablePointer<NSError?>.copied(to: &error) {
      self.request(bySerializingRequest: request, withParameters: parameters, error: $0)
    }
  }
}

/// The domain of request serializers' errors. Their codes are those of `NSURLErrorDomain`.
public let AFURLRequestSerializationErrorDomain = "com.alamofire.error.serialization.request"

/// The user info key for the failed request (`URLRequest`), if there is one, in errors of
/// `AFURLRequestSerializationErrorDomain`.
public let AFNetworkingOperationFailingURLRequestErrorKey = "com.alamofire.serialization.request.error.response"

/// The style of a query. There is only one.
public enum AFHTTPRequestQueryStringSerializationStyle: UInt, Sendable {
  /// `a[b]=c`, `a[]=b`, with sorted keys.
  case defaultStyle = 0

  /// An alternative name of `defaultStyle`.
  public static var `default`: AFHTTPRequestQueryStringSerializationStyle { .defaultStyle }
}

/// Creates the errors of request serialization.
enum RequestProblem {
  static func make(_ code: URLError.Code, _ reason: String, request: URLRequest? = nil, underlying: (any Error)? = nil)
    -> NSError
  {
    var userInfo: [String: Any] = [NSLocalizedFailureReasonErrorKey: reason]
    userInfo[AFNetworkingOperationFailingURLRequestErrorKey] = request
    userInfo[NSUnderlyingErrorKey] = underlying
    return NSError(domain: AFURLRequestSerializationErrorDomain, code: code.rawValue, userInfo: userInfo)
  }
}
