import Foundation

/// A key in a cookie's dictionary of properties (see ``HTTPCookie/init(properties:)``).
public struct HTTPCookiePropertyKey: RawRepresentable, Equatable, Hashable, Sendable {
  /// The key's name in a dictionary.
  public let rawValue: String

  /// Creates a key from its name.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// Creates a key from its name.
  public init(rawValue: String) { self.rawValue = rawValue }
}

extension HTTPCookiePropertyKey {
  /// The name, a `String`. Required.
  public static let name = HTTPCookiePropertyKey("Name")
  /// The value, a `String`. Required.
  public static let value = HTTPCookiePropertyKey("Value")
  /// The URL that set the cookie, a `URL` or a `String`. Its host is the domain if there is no ``domain``.
  public static let originURL = HTTPCookiePropertyKey("OriginURL")
  /// The version: `"0"`, which is the default, or `"1"` for a cookie of RFC 2965.
  public static let version = HTTPCookiePropertyKey("Version")
  /// The host, a `String`. With a leading dot the cookie is for all hosts below it too.
  public static let domain = HTTPCookiePropertyKey("Domain")
  /// The path, a `String`. Required.
  public static let path = HTTPCookiePropertyKey("Path")
  /// Whether the cookie is sent over TLS only: a `String` that is not empty, or `true`.
  public static let secure = HTTPCookiePropertyKey("Secure")
  /// The expiry, a `Date` or a `String` in one of HTTP's date formats. For version 0.
  public static let expires = HTTPCookiePropertyKey("Expires")
  /// The purpose of the cookie, a `String`. For version 1.
  public static let comment = HTTPCookiePropertyKey("Comment")
  /// The URL of a page about the cookie's purpose, a `URL` or a `String`. For version 1.
  public static let commentURL = HTTPCookiePropertyKey("CommentURL")
  /// Whether the cookie ends with the session: `"TRUE"` or `"FALSE"`. Without this key, a cookie of version 1 without
  /// ``maximumAge`` ends with the session.
  public static let discard = HTTPCookiePropertyKey("Discard")
  /// The lifetime in seconds from now, as a `String`. For version 1.
  public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
  /// The ports that the cookie is for, a `String` with commas between them. Version 0 keeps only the first one.
  public static let port = HTTPCookiePropertyKey("Port")
  /// Which requests from other sites include the cookie: an ``HTTPCookieStringPolicy`` or its raw value.
  public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
  /// Whether a script has set the cookie: a `String` that is neither empty nor `"FALSE"`, or `true`. Only a program can know.
  /// The property has no effect, and no request and no storage carries it.
  public static let setByJavaScript = HTTPCookiePropertyKey("SetInJavaScript")
  /// Whether the cookie is hidden from scripts: a `String` that is neither empty nor `"FALSE"`, or `true`. Apple has no
  /// constant for this key, but reads this name.
  static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
}

/// Which requests that come from another site include a cookie (RFC 6265bis 5.2).
public struct HTTPCookieStringPolicy: RawRepresentable, Equatable, Hashable, Sendable {
  /// The policy's name in lower case, as in `Set-Cookie`.
  public let rawValue: String

  /// Creates a policy from its name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Requests with a safe method whose response is shown to the user as a main document.
  public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
  /// No requests from other sites.
  public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}
