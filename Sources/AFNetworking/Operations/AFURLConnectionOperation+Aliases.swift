import Foundation
import Larkspur

// AFNetworking 1's names, and overloads for blocks with all-optional arguments: its importer gives blocks this form,
// because AFNetworking 1's headers have no nullability annotations.

extension AFURLConnectionOperation {
  /// The pinning mode: the pins are the certificates of the main bundle. Setting this property sets a new
  /// ``securityPolicy``.
  public var sslPinningMode: AFSSLPinningMode {
    get { securityPolicy.sslPinningMode }
    set {
      let allowsInvalid = allowsInvalidSSLCertificate
      securityPolicy = newValue == .none ? AFSecurityPolicy.default() : AFSecurityPolicy(pinningMode: newValue)
      if allowsInvalid { allowsInvalidSSLCertificate = true }
    }
  }

  /// Whether certificates are accepted that are not valid, or are for another host. `false` by default. Dangerous: an
  /// attacker on the network path can impersonate the server. Setting this property sets a new ``securityPolicy``.
  public var allowsInvalidSSLCertificate: Bool {
    get { securityPolicy.allowInvalidCertificates && !securityPolicy.validatesDomainName }
    set {
      let policy = securityPolicy.copy() as? AFSecurityPolicy ?? AFSecurityPolicy.default()
      policy.allowInvalidCertificates = newValue
      policy.validatesDomainName = !newValue
      securityPolicy = policy
    }
  }

  /// See ``setRedirectResponseBlock(_:)``.
  @_disfavoredOverload
  public func setRedirectResponseBlock(_ block: @escaping (NSURLConnection?, URLRequest?, URLResponse?) -> URLRequest?)
  {
    let strict: (NSURLConnection, URLRequest, URLResponse) -> URLRequest? = { block($0, $1, $2) }
    setRedirectResponseBlock(strict)
  }

  /// See ``setCacheResponseBlock(_:)``.
  @_disfavoredOverload
  public func setCacheResponseBlock(_ block: @escaping (NSURLConnection?, CachedURLResponse?) -> CachedURLResponse?) {
    let strict: (NSURLConnection, CachedURLResponse) -> CachedURLResponse? = { block($0, $1) }
    setCacheResponseBlock(strict)
  }

  /// See ``setWillSendRequestForAuthenticationChallengeBlock(_:)``.
  @_disfavoredOverload
  public func setWillSendRequestForAuthenticationChallengeBlock(
    _ block: @escaping (NSURLConnection?, URLAuthenticationChallenge?) -> Void
  ) {
    let strict: (NSURLConnection, URLAuthenticationChallenge) -> Void = { block($0, $1) }
    setWillSendRequestForAuthenticationChallengeBlock(strict)
  }
}
