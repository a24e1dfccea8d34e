/// A cookie in the jar (RFC 6265bis 5.7).
public struct Cookie: Hashable, Sendable {
  /// The cross-site requests that carry a cookie.
  public enum SameSite: UInt8, Hashable, Sendable, CaseIterable {
    /// The attribute is missing or unknown: requests are treated as with `none`. Browsers have begun to read it as
    /// `lax`; Apple documents that requests of other sites include such a cookie, and a program has no pages that could
    /// be tricked into requests.
    case unspecified
    case none
    case lax
    case strict
  }

  /// The attributes of RFC 2965 cookies, and of programs, that other cookies lack. Only `ports` and `isDiscarded` affect
  /// decisions.
  public struct Legacy: Hashable, Sendable {
    public var version = 0
    public var comment: String?
    public var commentURL: String?
    public var ports: [Int] = []
    /// Whether the cookie ends with the session, or at its expiry if that comes first.
    public var isDiscarded = false
    /// Whether a program says that a script of a page has set the cookie.
    public var isSetByScript = false

    public init() {}
  }

  public var name: String
  public var value: String
  /// The domain in lower case, without a leading dot.
  public var domain: String
  public var path: String
  /// Whether the cookie belongs to this host only, and not to its subdomains.
  public var isHostOnly: Bool
  public var isSecure: Bool
  public var isHTTPOnly: Bool
  public var sameSite: SameSite
  /// The time at which the cookie expires, or `nil` if it ends with the session.
  public var expiry: CookieTime?
  /// The time at which the cookie was first set: a cookie that replaces another takes over its creation time.
  public var creation: CookieTime
  /// The time at which the cookie was last set.
  public var update: CookieTime
  public var lastAccess: CookieTime
  public var legacy: Legacy?
  /// The order of cookies with one creation time.
  public internal(set) var number: UInt64 = 0

  public init(
    name: String, value: String, domain: String, path: String, isHostOnly: Bool, isSecure: Bool = false,
    isHTTPOnly: Bool = false, sameSite: SameSite = .unspecified, expiry: CookieTime? = nil, creation: CookieTime,
    legacy: Legacy? = nil
  ) {
    self.name = name
    self.value = value
    self.domain = domain
    self.path = path
    self.isHostOnly = isHostOnly
    self.isSecure = isSecure
    self.isHTTPOnly = isHTTPOnly
    self.sameSite = sameSite
    self.expiry = expiry
    self.creation = creation
    update = creation
    lastAccess = creation
    self.legacy = legacy
  }

  /// Whether the cookie outlives the session.
  public var isPersistent: Bool { expiry != nil && legacy?.isDiscarded != true }

  public func hasExpired(at now: CookieTime) -> Bool { expiry.map { $0 <= now } ?? false }

  /// The identity of the cookie in a jar, which has one cookie of each identity. Identities are compared as bytes,
  /// because Swift's `==` takes strings that are canonically equivalent for equal.
  public var identity: Identity { Identity(self) }

  public struct Identity: Hashable, Sendable {
    private let bytes: [UInt8]

    /// The domain, which ends before the byte of `isHostOnly`.
    var domain: String { String(decoding: bytes.prefix { $0 > 1 }, as: UTF8.self) }

    fileprivate init(_ cookie: Cookie) {
      bytes =
        Array(cookie.domain.utf8) + [cookie.isHostOnly ? 1 : 0] + Array(cookie.path.utf8) + [0]
        + Array(cookie.name.utf8)
    }
  }

  /// Whether another cookie of this identity has the value and the attributes of this one. The times of the two may
  /// differ.
  func isRepeated(by other: Cookie) -> Bool {
    isSecure == other.isSecure && isHTTPOnly == other.isHTTPOnly && sameSite == other.sameSite
      && isPersistent == other.isPersistent && legacy == other.legacy && value.utf8.elementsEqual(other.value.utf8)
  }

  func hasIdentity(of other: Cookie) -> Bool {
    isHostOnly == other.isHostOnly && name.utf8.elementsEqual(other.name.utf8)
      && path.utf8.elementsEqual(other.path.utf8) && domain.utf8.elementsEqual(other.domain.utf8)
  }

  /// The cookie as it stands in a Cookie field (RFC 6265bis 5.8.3): a cookie without a name is its value alone.
  public var pair: String { name.isEmpty ? value : "\(name)=\(value)" }
}
