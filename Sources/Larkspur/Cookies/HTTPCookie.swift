import Foundation
import LarkspurHTTP

/// An HTTP cookie of version 0 (as browsers have them, RFC 6265bis) or 1 (RFC 2965).
///
/// A cookie is immutable and may be used on any thread.
open class HTTPCookie: NSObject, @unchecked Sendable {
  /// Which of the cookies that servers set a storage keeps.
  public enum AcceptPolicy: UInt, Sendable {
    /// All cookies.
    case always
    /// No cookies.
    case never
    /// Cookies from the site of the main document (see `URLRequest.mainDocumentURL`), which means from the same
    /// registrable domain. A request without a main document counts as its own main document.
    case onlyFromMainDocumentDomain
  }

  struct Content: Hashable, Sendable {
    var version = 0
    var name: String
    var value: String
    var expires: Date?
    var isSessionOnly = true
    /// The domain in lower case. With a leading dot the cookie is for the hosts below it too.
    var domain: String
    var path: String
    var isSecure = false
    var isHTTPOnly = false
    var isSetByJavaScript = false
    var sameSite = Cookie.SameSite.unspecified
    var comment: String?
    var commentURL: URL?
    var ports: [Int] = []
  }

  let content: Content

  init(_ content: Content) {
    self.content = content
    super.init()
  }

  /// Creates a cookie with these properties.
  ///
  /// Required are ``HTTPCookiePropertyKey/name``, ``HTTPCookiePropertyKey/value`` and ``HTTPCookiePropertyKey/path``,
  /// and either ``HTTPCookiePropertyKey/domain`` or ``HTTPCookiePropertyKey/originURL``.
  /// - Returns: `nil` if one of them is missing or of another type, if name and value are both empty, or if name,
  ///   value, path or domain contains a control character, which could end the request's field early.
  public init?(properties: [HTTPCookiePropertyKey: Any]) {
    guard let content = Content(properties, now: Date()) else { return nil }
    self.content = content
    super.init()
  }

  /// The properties of an equal cookie. Each value is a `String`, except the expiry, a `Date`, and the comment's URL, a
  /// `URL`.
  open var properties: [HTTPCookiePropertyKey: Any]? {
    var properties: [HTTPCookiePropertyKey: Any] = [
      .name: name, .value: value, .domain: domain, .path: path, .version: "\(version)",
      .discard: isSessionOnly ? "TRUE" : "FALSE",
    ]
    properties[.expires] = expiresDate
    if isSecure { properties[.secure] = "TRUE" }
    if isHTTPOnly { properties[.httpOnly] = "TRUE" }
    if content.isSetByJavaScript { properties[.setByJavaScript] = "TRUE" }
    properties[.sameSitePolicy] = content.sameSite == .none ? "none" : sameSitePolicy?.rawValue
    properties[.comment] = comment
    properties[.commentURL] = commentURL
    if !content.ports.isEmpty { properties[.port] = content.ports.map(String.init).joined(separator: ",") }
    return properties
  }

  /// The version, 0 or 1.
  open var version: Int { content.version }
  /// The name, as the server spells it. Names are case-sensitive.
  open var name: String { content.name }
  /// The value, as the server spells it.
  open var value: String { content.value }
  /// The date at which the cookie expires, or `nil` if it ends with the session.
  open var expiresDate: Date? { content.expires }
  /// Whether the cookie ends with the session, whatever ``expiresDate`` says. Such a cookie is not written to a file.
  open var isSessionOnly: Bool { content.isSessionOnly }
  /// The host. With a leading dot the cookie is for all hosts below it too.
  open var domain: String { content.domain }
  /// The path. The cookie is for this path and those below it.
  open var path: String { content.path }
  /// Whether the cookie is sent over TLS only.
  open var isSecure: Bool { content.isSecure }
  /// Whether the cookie is hidden from scripts.
  open var isHTTPOnly: Bool { content.isHTTPOnly }
  /// The purpose of the cookie, in words for the user (RFC 2965).
  open var comment: String? { content.comment }
  /// The URL of a page about the cookie's purpose (RFC 2965).
  open var commentURL: URL? { content.commentURL }
  /// The ports that the cookie is for (RFC 2965), or `nil` for all ports.
  open var portList: [NSNumber]? { content.ports.isEmpty ? nil : content.ports.map { NSNumber(value: $0) } }
  /// Which requests from other sites include the cookie, or `nil` if all of them do.
  open var sameSitePolicy: HTTPCookieStringPolicy? {
    switch content.sameSite {
    case .unspecified, .none: nil
    case .lax: .sameSiteLax
    case .strict: .sameSiteStrict
    }
  }

  // MARK: - Fields

  /// Returns the cookies that a response's fields set. Other fields are ignored.
  ///
  /// A dictionary has one value for each name, so several Set-Cookie fields are joined by commas. A comma counts as a
  /// separator if a cookie's name and an equals sign follow it, so that commas in dates do not. A session does not
  /// depend on this rule; its cookies come from the fields themselves.
  ///
  /// - Parameters:
  ///   - headerFields: The response's fields, including Set-Cookie.
  ///   - URL: The URL of the response. Its host is the domain of cookies without a `Domain`. Whether the host may set
  ///     cookies for another domain that a cookie names is checked when the cookie is stored.
  /// - Returns: The cookies in their order. The path of a cookie without a `Path` is `/`.
  open class func cookies(withResponseHeaderFields headerFields: [String: String], for URL: URL) -> [HTTPCookie] {
    guard let host = URL.asciiHost.flatMap({ CookieHost($0) }) else { return [] }
    let now = Date()
    return headerFields.filter { $0.key.lowercased() == "set-cookie" }.flatMap { FoldedCookies.split($0.value) }
      .compactMap { SetCookie($0) }.compactMap { Content($0, host: host.text, now: now) }.map { HTTPCookie($0) }
  }

  /// Returns the `Cookie` field of a request, or an empty dictionary if there are no cookies. The field contains all of
  /// them, in their order; the caller decides which cookies go with the request.
  open class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
    let pairs = cookies.map { $0.name.isEmpty ? $0.value : "\($0.name)=\($0.value)" }
    return pairs.isEmpty ? [:] : ["Cookie": pairs.joined(separator: "; ")]
  }

  // MARK: - Objects

  /// A human-readable description, in FoundationNetworking's form. It contains the value, which is often a secret.
  open override var description: String {
    var text = "<HTTPCookie version:\(version) name:\"\(name)\" value:\"\(value)\""
    text += " expiresDate:\(expiresDate?.description ?? "nil") sessionOnly:\(isSessionOnly) domain:\"\(domain)\""
    text += " path:\"\(path)\" isSecure:\(isSecure) comment:\(comment ?? "nil")"
    // 0 stands for any port.
    return text + " ports:{ \(portList?.map(\.stringValue).joined(separator: ",") ?? "0") }>"
  }

  /// Whether the other object is a cookie with the same properties.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? HTTPCookie else { return false }
    return self === other || content == other.content
  }

  open override var hash: Int { content.hashValue }
}
