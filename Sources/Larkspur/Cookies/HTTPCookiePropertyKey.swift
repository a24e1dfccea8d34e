import Foundation

/// A key in a cookie's dictionary of properties (see ``HTTPCookie/init(properties:)``).
public struct HTTPCookiePropertyKey: RawRepresentable, Equatable, Hashable, Sendable {
  /// What the key is called in a dictionary.
  public let rawValue: String

  /// A key by its name.
  public init(_ rawValue: String) { self.rawValue = rawValue }

  /// A key by its name.
  public init(rawValue: String) { self.rawValue = rawValue }
}

extension HTTPCookiePropertyKey {
  /// The name, a `String`. Required.
  public static let name = HTTPCookiePropertyKey("Name")
  /// The value, a `String`. Required.
  public static let value = HTTPCookiePropertyKey("Value")
  /// The URL that set the cookie, a `URL` or a `String`. Its host is the domain if there is no ``domain``.
  public static let originURL = HTTPCookiePropertyKey("OriginURL")
  /// `"0"`, which is what is meant when nothing is said, or `"1"` for a cookie of RFC 2965.
  public static let version = HTTPCookiePropertyKey("Version")
  /// The host, a `String`. With a dot before it the cookie is for all hosts below it too.
  public static let domain = HTTPCookiePropertyKey("Domain")
  /// The path, a `String`. Required.
  public static let path = HTTPCookiePropertyKey("Path")
  /// Any text that is not empty, or true: the cookie is sent by TLS only.
  public static let secure = HTTPCookiePropertyKey("Secure")
  /// When the cookie expires, a `Date` or a `String` in one of the forms of HTTP. For version 0.
  public static let expires = HTTPCookiePropertyKey("Expires")
  /// What the cookie is for, a `String`.
  public static let comment = HTTPCookiePropertyKey("Comment")
  /// Where it is said what the cookie is for, a `URL` or a `String`.
  public static let commentURL = HTTPCookiePropertyKey("CommentURL")
  /// `"TRUE"`: the cookie ends with the session. Without it a cookie of version 1 that has no ``maximumAge`` does.
  public static let discard = HTTPCookiePropertyKey("Discard")
  /// How many seconds from now the cookie lives, as a `String`. For version 1.
  public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
  /// The ports that the cookie is for, a `String` with commas between them. Version 0 keeps the first one only.
  public static let port = HTTPCookiePropertyKey("Port")
  /// Which requests of other sites include the cookie, an ``HTTPCookieStringPolicy`` or its raw value.
  public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
  /// No script may see the cookie: any text that is not empty, or true. Not among Apple's constants, but understood there by
  /// this name.
  static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
}

/// Which requests that come from another site include a cookie (RFC 6265bis 5.2).
public struct HTTPCookieStringPolicy: RawRepresentable, Equatable, Hashable, Sendable {
  /// As `Set-Cookie` says it, in lower case.
  public let rawValue: String

  /// A policy by its name.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Those that change nothing, and whose answer the user will see.
  public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
  /// None.
  public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}
