import Foundation
import Larkspur

/// The domain of the errors of AFNetworking 1's operations: ``AFJSONRequestOperation``,
/// ``AFPropertyListRequestOperation``, ``AFImageRequestOperation`` and the XML ones. Their codes are those of
/// `NSURLErrorDomain`.
public let AFNetworkingErrorDomain = "AFNetworkingErrorDomain"

extension AFHTTPRequestOperation {
  /// Switches the serializer's errors to those of AFNetworking 1.
  package func usesAFNetworkingErrorDomain() { read { $0.usesOldDomain = true } }

  /// Converts a serializer's error about status or content type to AFNetworking 1's error. Errors of parsing stay
  /// unchanged.
  func inAFNetworkingErrorDomain(_ error: NSError) -> any Error {
    guard error.domain == AFURLResponseSerializationErrorDomain else { return error }
    var info = error.userInfo
    info[AFNetworkingOperationFailingURLRequestErrorKey] = request
    if let text = responseString { info[NSLocalizedRecoverySuggestionErrorKey] = text }
    return NSError(domain: AFNetworkingErrorDomain, code: error.code, userInfo: info)
  }
}
