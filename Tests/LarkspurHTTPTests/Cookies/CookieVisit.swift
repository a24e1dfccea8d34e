import LarkspurHTTP

/// A jar with a public suffix list of the tests, and a server that sets cookies and reads the `Cookie` field.
struct CookieVisit {
  var jar: CookieJar
  var suffixes = PublicSuffixTable(list: Array("com\norg\nco.uk\n*.ck\n!www.ck\n".utf8))
  var now = CookieTime(secondsSince1970: 1_300_000_000)

  init(limits: CookieLimits = CookieLimits()) { jar = CookieJar(limits: limits) }

  /// Returns the request for `http://host:port/path?query`, which is split at its separators.
  static func request(_ url: String) -> CookieRequest? {
    let parts = url.split(separator: "://", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    let slash = parts[1].firstIndex(of: "/") ?? parts[1].endIndex
    var host = parts[1][..<slash]
    if !host.hasSuffix("]"), let colon = host.lastIndex(of: ":") { host = host[..<colon] }
    guard let host = CookieHost(host) else { return nil }
    let path = parts[1][slash...].prefix { $0 != "?" && $0 != "#" }
    return CookieRequest(host: host, path: String(path), isSecure: parts[0] == "https")
  }

  @discardableResult
  mutating func set(_ field: String, at url: String, _ change: (inout CookieRequest) -> Void = { _ in })
    -> CookieJar.Outcome?
  {
    guard let said = SetCookie(field), var request = Self.request(url) else { return nil }
    change(&request)
    return jar.receive(said, from: request, now: now, isPublicSuffix: suffixes.isPublicSuffix)
  }

  mutating func field(for url: String, _ change: (inout CookieRequest) -> Void = { _ in }) -> String? {
    guard var request = Self.request(url) else { return nil }
    change(&request)
    return jar.field(for: request, now: now)
  }
}
