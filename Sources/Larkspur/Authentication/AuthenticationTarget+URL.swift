import Foundation
import LarkspurHTTP

extension AuthenticationTarget {
  /// Creates the target of a URL's origin, or returns `nil` if the URL is not of HTTP or has no host.
  init?(origin url: URL) {
    guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https", let host = url.host,
      !host.isEmpty
    else { return nil }
    self.init(.origin, scheme: scheme, host: host, port: url.port ?? (scheme == "https" ? 443 : 80))
  }
}

extension URLProtectionSpace {
  /// Creates the space of an HTTP challenge.
  convenience init(_ target: AuthenticationTarget, _ space: AuthenticationOffer.Space) {
    let method =
      switch space.method {
      case .basic: NSURLAuthenticationMethodHTTPBasic
      case .digest: NSURLAuthenticationMethodHTTPDigest
      }
    switch target.role {
    case .origin:
      self.init(
        host: target.host, port: target.port, protocol: target.scheme, realm: space.realm, authenticationMethod: method)
    case .proxy:
      // On Darwin the type says which protocol the proxy is for. Here it says whether the credential is sent over TLS,
      // which the user has to know.
      let type =
        switch target.scheme {
        case "https": NSURLProtectionSpaceHTTPSProxy
        case "http": NSURLProtectionSpaceHTTPProxy
        default: NSURLProtectionSpaceSOCKSProxy
        }
      self.init(
        proxyHost: target.host, port: target.port, type: type, realm: space.realm, authenticationMethod: method)
    }
  }

  /// Creates the space of a handshake's challenge to decide whether the server is trusted.
  convenience init(trust: ServerTrust, port: Int) {
    self.init(host: trust.host, port: port, trust: trust, issuers: nil)
  }

  /// Creates the space of a handshake's challenge for a client certificate.
  ///
  /// - Parameter issuers: Distinguished names in DER. If it is empty, a certificate of any issuer will do.
  convenience init(clientCertificateFor host: String, port: Int, issuers: [Data]) {
    self.init(host: host, port: port, trust: nil, issuers: issuers)
  }
}
