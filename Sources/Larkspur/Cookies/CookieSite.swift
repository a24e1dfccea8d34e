import Foundation
import LarkspurHTTP

/// The properties of URLs that cookie rules depend on.
enum CookieSite {
  /// Returns the cookie request for a URL, or `nil` if the URL has no host that can have cookies.
  static func request(_ url: URL) -> CookieRequest? {
    guard let host = url.asciiHost.flatMap({ CookieHost($0) }) else { return nil }
    let path = url.path(percentEncoded: true)
    // Use the path as the request sends it, without dot segments.
    let sent = path.contains("/.") ? String(URLResolution.withoutDots(path[...])) : path
    var request = CookieRequest(host: host, path: sent, isSecure: isSecure(url))
    request.port = url.port ?? (request.isSecure ? 443 : 80)
    return request
  }

  static func isSecure(_ url: URL) -> Bool {
    let scheme = url.scheme?.lowercased()
    return scheme == "https" || scheme == "wss"
  }

  /// Whether the hosts of two URLs have the same registrable domain.
  static func isSameDomain(_ one: URL, _ other: URL, _ suffixes: () -> PublicSuffixTable) -> Bool {
    guard let one = one.asciiHost.flatMap({ CookieHost($0) }), let other = other.asciiHost.flatMap({ CookieHost($0) })
    else {
      return false
    }
    if one == other { return true }
    if one.isAddress || other.isAddress { return false }
    let table = suffixes()
    guard let domain = table.registrableDomain(of: one.text) else { return false }
    return domain == table.registrableDomain(of: other.text)
  }

  /// Whether two URLs are of the same site (RFC 6265bis 5.2): their registrable domains are equal, and both or neither
  /// use TLS.
  static func isSameSite(_ one: URL, _ other: URL, _ suffixes: () -> PublicSuffixTable) -> Bool {
    one == other || isSecure(one) == isSecure(other) && isSameDomain(one, other, suffixes)
  }
}
