import Foundation
import Larkspur

/// Validates a response, and makes an object of its bytes.
///
/// A manager calls the serializer on a private concurrent queue, once for each task: the serializer and the
/// objects that it returns must be safe to use there. Most serializers are subclasses of ``AFHTTPResponseSerializer``,
/// which implements validation, archiving and copying.
public protocol AFURLResponseSerialization: NSObjectProtocol, NSSecureCoding, NSCopying {
  /// Makes an object of a response's bytes.
  ///
  /// An object and an error do not exclude each other: a JSON document of a response with status 404 gives both.
  ///
  /// - Parameters:
  ///   - response: The response that the bytes belong to.
  ///   - data: The bytes.
  ///   - error: Receives an error. Without a problem the value there stays unchanged.
  /// - Returns: The object, or `nil` if there is none, or the bytes cannot be read.
  func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any?
}

extension AFURLResponseSerialization {
  /// Makes an object of a response's bytes, for callers that write `error: &error`. Without a problem the variable
  /// stays unchanged.
  public func responseObject(for response: URLResponse?, data: Data?, error: inout NSError?) -> Any? {
    AutoreleasingUnsafeMutablePointer<NSError?>.copied(to: &error) {
      responseObject(for: response, data: data, error: $0)
    }
  }
}

/// The domain of errors about responses that are not acceptable. Their codes are those of `NSURLErrorDomain`.
public let AFURLResponseSerializationErrorDomain = "com.alamofire.error.serialization.response"

/// The user info key for the `URLResponse` that is not acceptable.
public let AFNetworkingOperationFailingURLResponseErrorKey = "com.alamofire.serialization.response.error.response"

/// The user info key for the bytes, a `Data`, of a response that is not acceptable.
public let AFNetworkingOperationFailingURLResponseDataErrorKey = "com.alamofire.serialization.response.error.data"

extension NSError {
  /// Returns this error with `underlying` as its underlying error, unless this error has one already.
  package func over(_ underlying: NSError?) -> NSError {
    guard let underlying, userInfo[NSUnderlyingErrorKey] == nil else { return self }
    var info = userInfo
    info[NSUnderlyingErrorKey] = underlying
    return NSError(domain: domain, code: code, userInfo: info)
  }

  /// Whether this error, or one of its underlying errors, reports an unacceptable content type.
  package var saysContentIsUnreadable: Bool {
    var next: NSError? = self
    while let error = next {
      if error.domain == AFURLResponseSerializationErrorDomain,
        error.code == URLError.Code.cannotDecodeContentData.rawValue
      {
        return true
      }
      next = error.userInfo[NSUnderlyingErrorKey] as? NSError
    }
    return false
  }
}
