/// A cookie in the jar (RFC 6265bis 5.7).
public struct Cookie: Hashable, Sendable {
  /// Which requests of other sites a cookie goes with.
  public enum SameSite: UInt8, Hashable, Sendable, CaseIterable {
    /// Nothing was said, or something unknown: as `none`. Browsers have begun to read it as `lax`; Apple documents that
    /// requests of other sites include such a cookie, and a program has no pages that could be tricked into requests.
    case unspecified
    case none
    case lax
    case strict
  }

  /// What the cookies of RFC 2965 say beyond others. Nothing is decided by it but by the ports, and
  /// whether it is discarded.
  public struct Legacy: Hashable, Sendable {
    public var version = 0
    public var comment: String?
    public var commentURL: String?
    public var ports: [Int] = []
    /// It goes with the session, if its end does not come before.
    public var isDiscarded = false

    public init() {}
  }

  public var name: String
  public var value: String
  /// In lower case, without a dot before it.
  public var domain: String
  public var path: String
  /// Only this host, none below it.
  public var isHostOnly: Bool
  public var isSecure: Bool
  public var isHTTPOnly: Bool
  public var sameSite: SameSite
  /// Nil: when the session ends.
  public var expiry: CookieTime?
  /// The first time: a cookie that takes the place of another has the other's.
  public var creation: CookieTime
  /// The last time that it was set.
  public var update: CookieTime
  public var lastAccess: CookieTime
  public var legacy: Legacy?
  /// Orders what was created at the same time.
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

  /// Whether it outlives the session.
  public var isPersistent: Bool { expiry != nil && legacy?.isDiscarded != true }

  public func hasExpired(at now: CookieTime) -> Bool { expiry.map { $0 <= now } ?? false }

  /// A jar has one cookie of each identity. Bytes are compared: to Swift, strings that look the same are.
  public var identity: Identity { Identity(self) }

  public struct Identity: Hashable, Sendable {
    private let bytes: [UInt8]

    /// The domain, which stands before the byte that says whether it is one host.
    var domain: String { String(decoding: bytes.prefix { $0 > 1 }, as: UTF8.self) }

    fileprivate init(_ cookie: Cookie) {
      bytes =
        Array(cookie.domain.utf8) + [cookie.isHostOnly ? 1 : 0] + Array(cookie.path.utf8) + [0]
        + Array(cookie.name.utf8)
    }
  }

  /// Whether another cookie of this identity says nothing new, except perhaps when it expires.
  func isRepeated(by other: Cookie) -> Bool {
    isSecure == other.isSecure && isHTTPOnly == other.isHTTPOnly && sameSite == other.sameSite
      && isPersistent == other.isPersistent && legacy == other.legacy && value.utf8.elementsEqual(other.value.utf8)
  }

  func hasIdentity(of other: Cookie) -> Bool {
    isHostOnly == other.isHostOnly && name.utf8.elementsEqual(other.name.utf8)
      && path.utf8.elementsEqual(other.path.utf8) && domain.utf8.elementsEqual(other.domain.utf8)
  }

  /// As it stands in a Cookie field (RFC 6265bis 5.8.3): one without a name is its value alone.
  public var pair: String { name.isEmpty ? value : "\(name)=\(value)" }
}
