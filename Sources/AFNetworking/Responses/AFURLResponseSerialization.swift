import Foundation
import Larkspur

/// Makes something useful of a response's bytes, and says whether they are acceptable at all.
///
/// A manager calls it on a concurrent queue of its own, once for each task: it has to stand that, and so do the objects that it
/// gives. Most serializers are subclasses of ``AFHTTPResponseSerializer``, which brings the validation, the archiving and
/// the copying.
public protocol AFURLResponseSerialization: NSObjectProtocol, NSSecureCoding, NSCopying {
  /// What the bytes mean.
  ///
  /// An error does not have to mean that there is no object, nor the other way round: a JSON document that came with status
  /// 404 gives both.
  ///
  /// - Parameters:
  ///   - response: What was said of the bytes.
  ///   - data: The bytes.
  ///   - error: Where an error is left. What stands there stays if nothing is wrong.
  /// - Returns: Nil: there is nothing, or it cannot be read.
  func responseObject(for response: URLResponse?, data: Data?, error: NSErrorPointer) -> Any?
}

extension AFURLResponseSerialization {
  /// The same for `error: &error`. The variable stays as it is if nothing is wrong.
  public func responseObject(for response: URLResponse?, data: Data?, error: inout NSError?) -> Any? {
    AutoreleasingUnsafeMutablePointer<NSError?>.copied(to: &error) {
      responseObject(for: response, data: data, error: $0)
    }
  }
}

/// The domain of the errors that say why a response is not acceptable. Their codes are those of `NSURLErrorDomain`.
public let AFURLResponseSerializationErrorDomain = "com.alamofire.error.serialization.response"

/// In an error's user info: the `URLResponse` that is not acceptable.
public let AFNetworkingOperationFailingURLResponseErrorKey = "com.alamofire.serialization.response.error.response"

/// In an error's user info: the bytes, a `Data`, that came with a response that is not acceptable.
public let AFNetworkingOperationFailingURLResponseDataErrorKey = "com.alamofire.serialization.response.error.data"

extension NSError {
  /// This error with another one beneath it, as far as there is none yet.
  package func over(_ underlying: NSError?) -> NSError {
    guard let underlying, userInfo[NSUnderlyingErrorKey] == nil else { return self }
    var info = userInfo
    info[NSUnderlyingErrorKey] = underlying
    return NSError(domain: domain, code: code, userInfo: info)
  }

  /// Whether this error, or one beneath it, says that the bytes are of another type than they should be.
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
