import Foundation
import Larkspur

// What AFNetworking 1 calls otherwise, and blocks whose arguments are all optional, as its importer gives them: its
// headers do not say what may be nil.

extension AFURLConnectionOperation {
  /// What is compared with the certificates in the main bundle. Setting it sets a new ``securityPolicy``.
  public var sslPinningMode: AFSSLPinningMode {
    get { securityPolicy.sslPinningMode }
    set {
      let allowsInvalid = allowsInvalidSSLCertificate
      securityPolicy = newValue == .none ? AFSecurityPolicy.default() : AFSecurityPolicy(pinningMode: newValue)
      if allowsInvalid { allowsInvalidSSLCertificate = true }
    }
  }

  /// Whether certificates are taken that are not valid, or for another host. False at first. Dangerous: whoever sits on
  /// the way can be the server. Setting it sets a new ``securityPolicy``.
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
