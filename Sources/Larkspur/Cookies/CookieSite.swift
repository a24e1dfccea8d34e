import Foundation
import LarkspurHTTP

/// What a URL is to cookies.
enum CookieSite {
  /// Nil: the URL has no host that could have cookies.
  static func request(_ url: URL) -> CookieRequest? {
    guard let host = url.asciiHost.flatMap({ CookieHost($0) }) else { return nil }
    let path = url.path(percentEncoded: true)
    // As the request says it.
    let sent = path.contains("/.") ? String(URLResolution.withoutDots(path[...])) : path
    var request = CookieRequest(host: host, path: sent, isSecure: isSecure(url))
    request.port = url.port ?? (request.isSecure ? 443 : 80)
    return request
  }

  static func isSecure(_ url: URL) -> Bool {
    let scheme = url.scheme?.lowercased()
    return scheme == "https" || scheme == "wss"
  }

  /// Whether two URLs belong to one owner: the registrable domains of their hosts are the same.
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

  /// RFC 6265bis 5.2: of one owner, and both by TLS or both not.
  static func isSameSite(_ one: URL, _ other: URL, _ suffixes: () -> PublicSuffixTable) -> Bool {
    one == other || isSecure(one) == isSecure(other) && isSameDomain(one, other, suffixes)
  }
}
