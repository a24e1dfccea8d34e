import Foundation
import LarkspurHTTP

extension AuthenticationTarget {
  /// The origin of a URL. Nil: it is not of HTTP, or has no host.
  init?(origin url: URL) {
    guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https", let host = url.host,
      !host.isEmpty
    else { return nil }
    self.init(.origin, scheme: scheme, host: host, port: url.port ?? (scheme == "https" ? 443 : 80))
  }

  init(proxy: Proxy) {
    self.init(.proxy, scheme: proxy.kind.rawValue, host: proxy.host, port: Int(proxy.port))
  }
}

extension URLProtectionSpace {
  /// The space of a challenge.
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
      // Darwin's types say what the proxy is for. Whether the credential goes out over TLS is what a user has to know.
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

  /// The space that a handshake asks about: whether the server is to be trusted.
  convenience init(trust: ServerTrust, port: Int) {
    self.init(host: trust.host, port: port, trust: trust, issuers: nil)
  }

  /// The space that a handshake asks about: a client certificate. `issuers`: distinguished names, DER; none: any will do.
  convenience init(clientCertificateFor host: String, port: Int, issuers: [Data]) {
    self.init(host: host, port: port, trust: nil, issuers: issuers)
  }
}
