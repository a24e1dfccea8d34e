import Foundation
import Larkspur

/// What puts parameters into requests: into the query, or into the body with the header fields that say what it is.
public protocol AFURLRequestSerialization: NSObjectProtocol, NSSecureCoding, NSCopying {
  /// A copy of a request with the parameters in it.
  ///
  /// - Parameters:
  ///   - request: Stays as it is.
  ///   - parameters: What the serializer can write; mostly a dictionary.
  ///   - error: Takes what went wrong.
  /// - Returns: Nil if something went wrong.
  func request(bySerializingRequest request: URLRequest, withParameters parameters: Any?, error: NSErrorPointer)
    -> URLRequest?
}

extension AFURLRequestSerialization {
  /// As `request(bySerializingRequest:withParameters:error:)`, and throws its error.
  public func request(bySerializingRequest request: URLRequest, withParameters parameters: Any?) throws -> URLRequest {
    let result = try AutoreleasingUnsafeMutablePointer<NSError?>.thrown {
      self.request(bySerializingRequest: request, withParameters: parameters, error: $0)
    }
    guard let result else {
      throw RequestProblem.make(.unknown, "The serializer gives no request, and no reason.", request: request)
    }
    return result
  }

  /// For `error: &error`.
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

/// In the user info of an error in `AFURLRequestSerializationErrorDomain`: the request (`URLRequest`) that it is about, if
/// there is one.
public let AFNetworkingOperationFailingURLRequestErrorKey = "com.alamofire.serialization.request.error.response"

/// How a query is written. There is one style.
public enum AFHTTPRequestQueryStringSerializationStyle: UInt, Sendable {
  /// `a[b]=c`, `a[]=b`, keys in their order.
  case defaultStyle = 0

  /// The other spelling of `defaultStyle`.
  public static var `default`: AFHTTPRequestQueryStringSerializationStyle { .defaultStyle }
}

/// What goes wrong in this room, as errors.
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
