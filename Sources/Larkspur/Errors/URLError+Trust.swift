import Foundation

extension URLError {
  /// The server's certificates with which the handshake failed, and the result of their verification; or `nil` if the
  /// error has another cause or the server had not sent certificates.
  ///
  /// The value of `NSURLErrorFailingURLPeerTrustErrorKey` in `userInfo`. `SecTrustEvaluateWithError` can evaluate it
  /// again with other settings, which does not change the failed load.
  public var failureURLPeerTrust: SecTrust? { userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? SecTrust }
}
