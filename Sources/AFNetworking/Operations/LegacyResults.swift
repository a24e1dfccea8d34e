import Foundation
import Larkspur

/// The domain of the errors of AFNetworking 1's operations: ``AFJSONRequestOperation``,
/// ``AFPropertyListRequestOperation``, ``AFImageRequestOperation`` and the XML ones. Their codes are those of
/// `NSURLErrorDomain`.
public let AFNetworkingErrorDomain = "AFNetworkingErrorDomain"

extension AFHTTPRequestOperation {
  /// From now on the serializer's errors are those of AFNetworking 1.
  package func usesAFNetworkingErrorDomain() { read { $0.usesOldDomain = true } }

  /// A serializer's word on status or content type, as AFNetworking 1 says it. Errors of the reading stay as they are.
  func inAFNetworkingErrorDomain(_ error: NSError) -> any Error {
    guard error.domain == AFURLResponseSerializationErrorDomain else { return error }
    var info = error.userInfo
    info[AFNetworkingOperationFailingURLRequestErrorKey] = request
    if let text = responseString { info[NSLocalizedRecoverySuggestionErrorKey] = text }
    return NSError(domain: AFNetworkingErrorDomain, code: error.code, userInfo: info)
  }
}
