/// A cookie in the jar (RFC 6265bis 5.7).
package struct Cookie: Hashable, Sendable {
  /// Which requests of other sites a cookie goes with.
  package enum SameSite: UInt8, Hashable, Sendable, CaseIterable {
    /// Nothing was said, or something unknown: as `none`. Browsers have begun to read it as `lax`; Apple documents that
    /// requests of other sites include such a cookie, and a program has no pages that could be tricked into requests.
    case unspecified
    case none
    case lax
    case strict
  }

  /// What the cookies of RFC 2965 say beyond others. Nothing is decided by it but by the ports, and
  /// whether it is discarded.
  package struct Legacy: Hashable, Sendable {
    package var version = 0
    package var comment: String?
    package var commentURL: String?
    package var ports: [Int] = []
    /// It goes with the session, if its end does not come before.
    package var isDiscarded = false

    package init() {}
  }

  package var name: String
  package var value: String
  /// In lower case, without a dot before it.
  package var domain: String
  package var path: String
  /// Only this host, none below it.
  package var isHostOnly: Bool
  package var isSecure: Bool
  package var isHTTPOnly: Bool
  package var sameSite: SameSite
  /// Nil: when the session ends.
  package var expiry: CookieTime?
  /// The first time: a cookie that takes the place of another has the other's.
  package var creation: CookieTime
  /// The last time that it was set.
  package var update: CookieTime
  package var lastAccess: CookieTime
  package var legacy: Legacy?
  /// Orders what was created at the same time.
  package internal(set) var number: UInt64 = 0

  package init(
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
  package var isPersistent: Bool { expiry != nil && legacy?.isDiscarded != true }

  package func hasExpired(at now: CookieTime) -> Bool { expiry.map { $0 <= now } ?? false }

  /// A jar has one cookie of each identity. Bytes are compared: to Swift, strings that look the same are.
  package var identity: Identity { Identity(self) }

  package struct Identity: Hashable, Sendable {
    private let bytes: [UInt8]

    fileprivate init(_ cookie: Cookie) {
      bytes =
        Array(cookie.domain.utf8) + [cookie.isHostOnly ? 1 : 0] + Array(cookie.path.utf8) + [0]
        + Array(cookie.name.utf8)
    }
  }

  func hasIdentity(of other: Cookie) -> Bool {
    isHostOnly == other.isHostOnly && name.utf8.elementsEqual(other.name.utf8)
      && path.utf8.elementsEqual(other.path.utf8) && domain.utf8.elementsEqual(other.domain.utf8)
  }

  /// As it stands in a Cookie field (RFC 6265bis 5.8.3): one without a name is its value alone.
  package var pair: String { name.isEmpty ? value : "\(name)=\(value)" }
}
