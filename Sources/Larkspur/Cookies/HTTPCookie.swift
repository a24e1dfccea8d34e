import Foundation
import LarkspurHTTP

/// An HTTP cookie: immutable, and of version 0 (as browsers have them, RFC 6265bis) or 1 (RFC 2965).
///
/// It may be used on any thread.
open class HTTPCookie: NSObject, @unchecked Sendable {
  /// What a cookie storage keeps of what servers set.
  public enum AcceptPolicy: UInt, Sendable {
    /// Everything.
    case always
    /// Nothing.
    case never
    /// What comes from the site of the main document (see `URLRequest.mainDocumentURL`): of the same registrable
    /// domain. A request without a main document is one itself.
    case onlyFromMainDocumentDomain
  }

  struct Content: Hashable, Sendable {
    var version = 0
    var name: String
    var value: String
    var expires: Date?
    var isSessionOnly = true
    /// In lower case; a dot before it says that hosts below it are meant as well.
    var domain: String
    var path: String
    var isSecure = false
    var isHTTPOnly = false
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

  /// A cookie with these properties.
  ///
  /// Required are ``HTTPCookiePropertyKey/name``, ``HTTPCookiePropertyKey/value`` and ``HTTPCookiePropertyKey/path``,
  /// and either ``HTTPCookiePropertyKey/domain`` or ``HTTPCookiePropertyKey/originURL``.
  /// - Returns: Nil if one of them is missing or of another type, if name and value are both empty, or if there is a
  ///   control character in what is sent: it would be the end of a request's field.
  public init?(properties: [HTTPCookiePropertyKey: Any]) {
    guard let content = Content(properties, now: Date()) else { return nil }
    self.content = content
    super.init()
  }

  /// What makes a cookie like this one. A value is a `String` but for the expiry's `Date`, and the URL of a comment.
  open var properties: [HTTPCookiePropertyKey: Any]? {
    var properties: [HTTPCookiePropertyKey: Any] = [
      .name: name, .value: value, .domain: domain, .path: path, .version: "\(version)",
      .discard: isSessionOnly ? "TRUE" : "FALSE",
    ]
    properties[.expires] = expiresDate
    if isSecure { properties[.secure] = "TRUE" }
    if isHTTPOnly { properties[.httpOnly] = "TRUE" }
    properties[.sameSitePolicy] = content.sameSite == .none ? "none" : sameSitePolicy?.rawValue
    properties[.comment] = comment
    properties[.commentURL] = commentURL
    if !content.ports.isEmpty { properties[.port] = content.ports.map(String.init).joined(separator: ",") }
    return properties
  }

  /// 0 or 1.
  open var version: Int { content.version }
  /// As the server spells it: names are compared with regard to case.
  open var name: String { content.name }
  /// As the server spells it.
  open var value: String { content.value }
  /// When the cookie expires. Nil: when the session ends.
  open var expiresDate: Date? { content.expires }
  /// The cookie ends with the session, whatever ``expiresDate`` says, and is not kept in a file.
  open var isSessionOnly: Bool { content.isSessionOnly }
  /// The host; with a dot before it the cookie is for all hosts below it too.
  open var domain: String { content.domain }
  /// The cookie is for this path and those below it.
  open var path: String { content.path }
  /// The cookie is sent by TLS only.
  open var isSecure: Bool { content.isSecure }
  /// No script is to see the cookie.
  open var isHTTPOnly: Bool { content.isHTTPOnly }
  /// What the cookie is for, in words for its user (RFC 2965).
  open var comment: String? { content.comment }
  /// Where it is said what the cookie is for (RFC 2965).
  open var commentURL: URL? { content.commentURL }
  /// The ports that the cookie is for (RFC 2965). Nil: all.
  open var portList: [NSNumber]? { content.ports.isEmpty ? nil : content.ports.map { NSNumber(value: $0) } }
  /// Which requests that come from another site include the cookie. Nil: all of them.
  open var sameSitePolicy: HTTPCookieStringPolicy? {
    switch content.sameSite {
    case .unspecified, .none: nil
    case .lax: .sameSiteLax
    case .strict: .sameSiteStrict
    }
  }

  // MARK: - Fields

  /// The cookies that a response's fields set; other fields are passed over.
  ///
  /// Dictionaries have one value for each name: several Set-Cookie fields are one, with commas between them. A comma is
  /// taken to be such a one if a cookie's name and an equals sign follow it, so that those of dates are not. A session
  /// does not depend on that; its cookies come from the fields themselves.
  ///
  /// - Parameters:
  ///   - headerFields: Those of the response, Set-Cookie among them.
  ///   - URL: Where the response is from. Its host is the domain of cookies that name none. Whether the host may set
  ///     cookies for the domain that a cookie does name is asked when the cookie is stored.
  /// - Returns: The cookies in their order. The path of one that names none is `/`.
  open class func cookies(withResponseHeaderFields headerFields: [String: String], for URL: URL) -> [HTTPCookie] {
    guard let host = URL.asciiHost.flatMap({ CookieHost($0) }) else { return [] }
    let now = Date()
    return headerFields.filter { $0.key.lowercased() == "set-cookie" }.flatMap { FoldedCookies.split($0.value) }
      .compactMap { SetCookie($0) }.compactMap { Content($0, host: host.text, now: now) }.map { HTTPCookie($0) }
  }

  /// The field with which a request sends cookies: `Cookie`, or nothing if there are none. All of them are in it, in
  /// their order; whether they go with the request is the caller's to know.
  open class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
    let pairs = cookies.map { $0.name.isEmpty ? $0.value : "\($0.name)=\($0.value)" }
    return pairs.isEmpty ? [:] : ["Cookie": pairs.joined(separator: "; ")]
  }

  // MARK: - Objects

  /// For people to read, in the form that FoundationNetworking has. The value, often a secret, is in it.
  open override var description: String {
    var words = "<HTTPCookie version:\(version) name:\"\(name)\" value:\"\(value)\""
    words += " expiresDate:\(expiresDate?.description ?? "nil") sessionOnly:\(isSessionOnly) domain:\"\(domain)\""
    words += " path:\"\(path)\" isSecure:\(isSecure) comment:\(comment ?? "nil")"
    // Any port is 0.
    return words + " ports:{ \(portList?.map(\.stringValue).joined(separator: ",") ?? "0") }>"
  }

  /// Whether the other is a cookie with the same properties.
  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? HTTPCookie else { return false }
    return self === other || content == other.content
  }

  open override var hash: Int { content.hashValue }
}
