import Foundation

extension URLError {
  /// The certificates of the server that the handshake failed with, and what their verification came to; or `nil` if the
  /// error is another one, or the server had not shown any.
  ///
  /// The value of `NSURLErrorFailingURLPeerTrustErrorKey` in `userInfo`. It can be evaluated again by other settings, with
  /// `SecTrustEvaluateWithError`; that changes nothing about the failed load.
  public var failureURLPeerTrust: SecTrust? { userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? SecTrust }
}
