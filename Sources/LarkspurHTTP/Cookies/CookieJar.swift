/// The cookies of a session (RFC 6265bis 5.7), as a value.
///
/// Theory of operation. The jar owns the cookies, by domain, and the limits on them. The jar decides which cookies of
/// servers are stored, which cookies a request carries and in which order, and which cookies are evicted when there are
/// too many.
///
/// ```
///           received, put                  received, put (an equal identity)
/// unknown --------------> stored ------------------------------> stored, with the first creation time
///                           |--expired, evicted, removed--> unknown
/// ```
///
/// The jar does not depend on clocks, files, accept policies or URLs, or on what a public suffix is (the caller passes
/// a function).
///
/// Invariants. No two cookies have one identity. No domain has more than `perDomainMax` cookies, and all domains
/// together have no more than `totalMax`. The jar never returns a cookie that has expired for a request. If changes are
/// recorded, each change since the last `takeChanges()` is.
public struct CookieJar: Sendable {
  public typealias Identity = Cookie.Identity

  /// The result of setting a cookie.
  public enum Outcome: Hashable, Sendable {
    /// The jar has accepted the cookie. When the jar is full, the cookie may be evicted at once.
    case stored
    /// The cookie had expired; the stored cookie of its identity is removed.
    case removed
    case refused(Refusal)
  }

  public enum Refusal: Hashable, Sendable, CaseIterable {
    /// The Domain attribute is not a host, does not contain the host, or is a public suffix other than the host itself.
    case domain
    /// A Secure cookie that came over a connection without TLS.
    case insecure
    /// The cookie would shadow a Secure cookie, and came over a connection without TLS.
    case shadowsSecure
    /// A cookie with SameSite Lax or Strict from another site.
    case crossSite
    /// A cookie with `SameSite=None` and without `Secure`.
    case crossSiteInsecure
    /// The name has the prefix `__Host-` or `__Secure-`, and the attributes do not meet its conditions.
    case prefix
  }

  public let limits: CookieLimits
  private(set) var buckets: [String: [Cookie]] = [:]
  /// Number of domains with each hash. Performance: most hosts without cookies are recognized before a string is made.
  private var hashes: [UInt64: Int] = [:]
  /// Number of Secure cookies in subdomains of the domains with each hash.
  private var secureBelow: [UInt64: Int] = [:]
  public private(set) var count = 0
  private var secureCount = 0
  private var nextNumber: UInt64 = 0
  /// The time of the last change of each persistent cookie, by identity, or `nil` if changes are not recorded.
  private var changes: [Identity: CookieTime]?

  /// A cookie that was set again with too small a change of its expiry to be written.
  private struct Renewal: Sendable {
    var time: CookieTime
    /// The expiry in the file.
    var stored: CookieTime
  }

  private var renewals: [Identity: Renewal] = [:]
  /// Incremented by each change that a reader of the jar can see, except for times of access and for ``adopt(_:)``.
  public private(set) var revision: UInt64 = 0

  public init(limits: CookieLimits = CookieLimits(), keepsChanges: Bool = false) {
    self.limits = limits
    changes = keepsChanges ? [:] : nil
  }

  public var isEmpty: Bool { count == 0 }

  /// Returns all cookies that have not expired, in the order of their creation.
  public func all(at now: CookieTime) -> [Cookie] {
    buckets.values.joined().filter { !$0.hasExpired(at: now) }.sorted(by: Self.isOlder)
  }

  static func isOlder(_ one: Cookie, _ other: Cookie) -> Bool {
    (one.creation, one.number) < (other.creation, other.number)
  }

  // MARK: Receiving

  /// Stores the cookies that a response sets, as far as they are allowed.
  ///
  /// - Parameter fields: The values of `Set-Cookie`. Those beyond `CookieLimits.perResponseMax` are ignored.
  package mutating func receive(
    _ fields: [String], from request: CookieRequest, now: CookieTime, isPublicSuffix: (String) -> Bool
  ) {
    for field in fields.prefix(limits.perResponseMax) {
      guard let parsed = SetCookie(field) else { continue }
      _ = receive(parsed, from: request, now: now, isPublicSuffix: isPublicSuffix)
    }
  }

  /// Stores a cookie that a server has set, or refuses it.
  public mutating func receive(
    _ said: SetCookie, from request: CookieRequest, now: CookieTime, isPublicSuffix: (String) -> Bool
  ) -> Outcome {
    switch Self.cookie(of: said, from: request, now: now, isPublicSuffix: isPublicSuffix) {
    case .refused(let refusal): return .refused(refusal)
    case .cookie(let cookie):
      if !request.isSecure, shadowsSecureCookie(cookie, now) { return .refused(.shadowsSecure) }
      return put(cookie, now: now)
    }
  }

  public enum Received: Hashable, Sendable {
    case cookie(Cookie)
    case refused(Refusal)
  }

  /// Makes the cookie that a server has set, or refuses it by the rules that do not depend on the jar's other cookies.
  /// The cookie may have expired already.
  public static func cookie(
    of said: SetCookie, from request: CookieRequest, now: CookieTime, isPublicSuffix: (String) -> Bool
  ) -> Received {
    guard let domain = domain(of: said, for: request.host, isPublicSuffix) else { return .refused(.domain) }
    var cookie = Cookie(
      name: said.name, value: said.value, domain: domain.name,
      path: said.path ?? CookiePath.defaultPath(of: request.path), isHostOnly: domain.isHostOnly,
      isSecure: said.isSecure, isHTTPOnly: said.isHTTPOnly, sameSite: said.sameSite, creation: now)
    cookie.expiry = expiry(of: said, now)
    if !request.isSecure, cookie.isSecure { return .refused(.insecure) }
    // The main document's response may set cookies for its own site.
    let isForSameSite = cookie.sameSite == .lax || cookie.sameSite == .strict
    if isForSameSite, !request.isSameSite, !request.isTopLevel { return .refused(.crossSite) }
    if cookie.sameSite == .none, !cookie.isSecure { return .refused(.crossSiteInsecure) }
    guard keepsPromises(cookie, path: said.path) else { return .refused(.prefix) }
    return .cookie(cookie)
  }

  private static func domain(
    of said: SetCookie, for host: CookieHost, _ isPublicSuffix: (String) -> Bool
  ) -> (name: String, isHostOnly: Bool)? {
    switch said.domain {
    case .invalid: return nil
    case .absent: return (host.text, true)
    case .named(let name):
      guard host.matches(domain: name) else { return nil }
      // An address has no subdomains.
      if host.isAddress { return (host.text, true) }
      guard isPublicSuffix(name) else { return (name, false) }
      // A public suffix is itself a site, which may set cookies for itself.
      return name == host.text ? (name, true) : nil
    }
  }

  /// Returns the expiry: Max-Age takes precedence over Expires, and `CookieLimits.lifetimeSecondsMax` limits both.
  private static func expiry(of said: SetCookie, _ now: CookieTime) -> CookieTime? {
    let latest = now.adding(seconds: CookieLimits.lifetimeSecondsMax)
    if let age = said.maxAge { return age <= 0 ? .earliest : min(now.adding(seconds: Double(age)), latest) }
    return said.expires.map { min($0, latest) }
  }

  /// Whether the cookie would shadow a Secure cookie (RFC 6265bis 5.7, "leave Secure cookies alone"): an attacker on
  /// the network can set cookies over a connection without TLS.
  private func shadowsSecureCookie(_ cookie: Cookie, _ now: CookieTime) -> Bool {
    guard secureCount > 0 else { return false }
    func isShadowing(_ other: Cookie) -> Bool {
      other.isSecure && !other.hasExpired(at: now) && other.name.utf8.elementsEqual(cookie.name.utf8)
        && CookiePath.matches(cookie.path, cookiePath: other.path)
    }
    let above = kept(in: cookie.domain)
    if above.contains(where: { buckets[$0]?.contains(where: isShadowing) == true }) { return true }
    guard secureBelow[Self.hash(of: cookie.domain)] != nil else { return false }
    return buckets.contains { CookieHost.isBelow($0.key, cookie.domain) && $0.value.contains(where: isShadowing) }
  }

  /// Whether the cookie meets the conditions of the prefix of its name (RFC 6265bis 5.7). The prefix is
  /// case-insensitive, because some servers ignore the case. For a cookie without a name the value is examined, because
  /// the Cookie field has it in the name's place.
  ///
  /// - Parameter path: The path that was given, or `nil`. A path that follows from the request's does not meet
  ///   `__Host-`.
  private static func keepsPromises(_ cookie: Cookie, path: String?) -> Bool {
    let name = HostName.normal(cookie.name.isEmpty ? cookie.value : cookie.name)
    let isHost = name.hasPrefix("__host-")
    guard isHost || name.hasPrefix("__secure-") else { return true }
    guard !cookie.name.isEmpty, cookie.isSecure else { return false }
    return !isHost || cookie.isHostOnly && path == "/"
  }

  /// Stores a cookie that the program has made from a response. The cookie may be Secure even without TLS: requests
  /// carry it over TLS only.
  public mutating func receive(
    _ cookie: Cookie, from request: CookieRequest, now: CookieTime, isPublicSuffix: (String) -> Bool
  ) -> Outcome {
    let isOwn = cookie.isHostOnly && cookie.domain == request.host.text
    guard isOwn || !cookie.isHostOnly && request.host.matches(domain: cookie.domain) && !isPublicSuffix(cookie.domain)
    else { return .refused(.domain) }
    if !request.isSecure, shadowsSecureCookie(cookie, now) { return .refused(.shadowsSecure) }
    guard Self.keepsPromises(cookie, path: cookie.path) else { return .refused(.prefix) }
    return put(cookie, now: now)
  }

  /// Whether the jar has a cookie of this one's identity.
  public func has(_ cookie: Cookie, at now: CookieTime) -> Bool {
    buckets[cookie.domain]?.contains { $0.hasIdentity(of: cookie) && !$0.hasExpired(at: now) } ?? false
  }

  // MARK: Changing

  /// Stores a cookie, whichever party sets it, and replaces the cookie of its identity. A cookie that has expired only
  /// removes that one.
  @discardableResult
  public mutating func put(_ cookie: Cookie, now: CookieTime) -> Outcome {
    if renew(cookie, now: now) { return .stored }
    var cookie = cookie
    cookie.number = nextNumber
    nextNumber += 1
    if let old = take(cookie) {
      revision += 1
      note(old, now)
      if !old.hasExpired(at: now) {
        cookie.creation = old.creation
        cookie.number = old.number
      }
    }
    guard !cookie.hasExpired(at: now) else { return .removed }
    revision += 1
    insert(cookie)
    note(cookie, now)
    makeRoom(near: cookie.domain, now: now)
    return .stored
  }

  /// Renews the stored cookie if it has an equal value and equal attributes.
  ///
  /// - Returns: Whether there is such a cookie.
  private mutating func renew(_ cookie: Cookie, now: CookieTime) -> Bool {
    guard !cookie.hasExpired(at: now),
      let index = buckets[cookie.domain]?.firstIndex(where: { $0.hasIdentity(of: cookie) }),
      let old = buckets[cookie.domain]?[index], !old.hasExpired(at: now), old.isRepeated(by: cookie)
    else { return false }
    var cookie = cookie
    cookie.creation = old.creation
    cookie.number = old.number
    buckets[cookie.domain]?[index] = cookie
    if cookie.expiry != old.expiry { revision += 1 }
    noteRenewal(of: old, as: cookie, now)
    return true
  }

  /// Removes the cookie of this identity.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  public mutating func remove(_ cookie: Cookie, now: CookieTime) -> Bool {
    guard let old = take(cookie) else { return false }
    revision += 1
    note(old, now)
    return true
  }

  /// Removes all cookies that satisfy `isToGo`.
  ///
  /// - Returns: Whether any cookie was removed.
  @discardableResult
  public mutating func removeAll(now: CookieTime, where isToGo: (Cookie) -> Bool) -> Bool {
    let going = buckets.values.joined().filter(isToGo)
    for cookie in going { remove(cookie, now: now) }
    return !going.isEmpty
  }

  /// Removes and returns the cookie of this identity, or returns `nil` if there is none.
  private mutating func take(_ cookie: Cookie) -> Cookie? {
    guard let index = buckets[cookie.domain]?.firstIndex(where: { $0.hasIdentity(of: cookie) }),
      let old = buckets[cookie.domain]?.remove(at: index)
    else { return nil }
    count -= 1
    if old.isSecure { countSecure(old.domain, by: -1) }
    if buckets[cookie.domain]?.isEmpty == true {
      buckets[cookie.domain] = nil
      let hash = Self.hash(of: cookie.domain)
      let others = (hashes[hash] ?? 1) - 1
      hashes[hash] = others > 0 ? others : nil
    }
    return old
  }

  private mutating func insert(_ cookie: Cookie) {
    if buckets[cookie.domain] == nil { hashes[Self.hash(of: cookie.domain), default: 0] += 1 }
    buckets[cookie.domain, default: []].append(cookie)
    count += 1
    if cookie.isSecure { countSecure(cookie.domain, by: 1) }
  }

  private mutating func countSecure(_ domain: String, by change: Int) {
    secureCount += change
    var hash = DomainHash()
    for byte in domain.utf8.reversed() {
      if byte == UInt8(ascii: ".") {
        let below = (secureBelow[hash.value] ?? 0) + change
        secureBelow[hash.value] = below > 0 ? below : nil
      }
      hash.add(byte)
    }
  }

  private static func hash(of domain: String) -> UInt64 {
    var hash = DomainHash()
    for byte in domain.utf8.reversed() { hash.add(byte) }
    return hash.value
  }

  // MARK: Cookies of a request

  /// Returns the domains in the jar whose cookies may belong to a host: its own and those above it.
  public func domains(of host: CookieHost) -> [String] {
    kept(in: host.text).filter { host.matches(domain: $0) }
  }

  /// Returns the domains in the jar that are `name` or above it.
  private func kept(in name: String) -> [String] {
    var found: [String] = []
    guard count > 0 else { return found }
    let bytes = name.utf8
    var hash = DomainHash()
    var index = bytes.endIndex
    while index > bytes.startIndex {
      index = bytes.index(before: index)
      hash.add(bytes[index])
      let isStart = index == bytes.startIndex
      guard hashes[hash.value] != nil, isStart || bytes[bytes.index(before: index)] == UInt8(ascii: ".") else {
        continue
      }
      let domain = isStart ? name : String(name[index...])
      if buckets[domain] != nil { found.append(domain) }
    }
    return found
  }

  /// Returns the cookies of a request, in the order in which they are sent, and sets their time of access.
  public mutating func cookies(for request: CookieRequest, now: CookieTime) -> [Cookie] {
    var chosen: [Cookie] = []
    for domain in domains(of: request.host) {
      guard let bucket = buckets[domain] else { continue }
      if bucket.contains(where: { $0.hasExpired(at: now) }) { removeExpired(of: domain, now: now) }
      for index in buckets[domain]?.indices ?? 0..<0 {
        guard let cookie = buckets[domain]?[index], Self.goes(cookie, with: request) else { continue }
        buckets[domain]?[index].lastAccess = now
        chosen.append(cookie)
      }
    }
    return chosen.sorted { one, other in
      let lengths = (one.path.utf8.count, other.path.utf8.count)
      return lengths.0 == lengths.1 ? Self.isOlder(one, other) : lengths.0 > lengths.1
    }
  }

  /// Returns the value of the Cookie field, or `nil` if the request carries no cookie.
  public mutating func field(for request: CookieRequest, now: CookieTime) -> String? {
    var field = ""
    for cookie in cookies(for: request, now: now) {
      let pair = cookie.pair
      let separator = field.isEmpty ? "" : "; "
      guard field.utf8.count + separator.utf8.count + pair.utf8.count <= limits.fieldBytesMax else { continue }
      field += separator
      field += pair
    }
    return field.isEmpty ? nil : field
  }

  private static func goes(_ cookie: Cookie, with request: CookieRequest) -> Bool {
    (!cookie.isHostOnly || cookie.domain == request.host.text)
      && (!cookie.isSecure || request.isSecure)
      && CookiePath.matches(request.path, cookiePath: cookie.path)
      && request.takes(cookie.sameSite) && request.isFor(ports: cookie.legacy?.ports ?? [])
  }

  // MARK: Making room

  public mutating func removeExpired(now: CookieTime) { removeAll(now: now) { $0.hasExpired(at: now) } }

  private mutating func removeExpired(of domain: String, now: CookieTime) {
    for cookie in buckets[domain] ?? [] where cookie.hasExpired(at: now) { remove(cookie, now: now) }
  }

  /// Evicts cookies until the limits hold (RFC 6265bis 5.7). Expired cookies go first. In a domain with more than
  /// `perDomainMax`, cookies that are not Secure go before Secure ones. If there are more than `totalMax` cookies, the
  /// domains with more than `fairShare` lose their cookies first, those that are not Secure before Secure ones; then
  /// any cookie goes. Among equals, the one that has not been used for longest goes.
  private mutating func makeRoom(near domain: String, now: CookieTime) {
    if buckets[domain]?.count ?? 0 > limits.perDomainMax { removeExpired(of: domain, now: now) }
    while let bucket = buckets[domain], bucket.count > limits.perDomainMax {
      evict(bucket.filter { !$0.isSecure }, else: bucket, now: now)
    }
    if count > limits.totalMax { removeExpired(now: now) }
    while count > limits.totalMax {
      let crowded = buckets.values.filter { $0.count > limits.fairShare }.flatMap { $0 }
      evict(crowded.filter { !$0.isSecure }, else: crowded.isEmpty ? buckets.values.flatMap { $0 } : crowded, now: now)
    }
  }

  private mutating func evict(_ first: [Cookie], else others: [Cookie], now: CookieTime) {
    let candidates = first.isEmpty ? others : first
    let oldest = candidates.min { ($0.lastAccess, $0.number) < ($1.lastAccess, $1.number) }
    if let oldest { remove(oldest, now: now) }
  }

  // MARK: Recording changes

  /// Records a change of a persistent cookie. Changes of session cookies are not recorded, because they are never
  /// stored.
  private mutating func note(_ cookie: Cookie, _ now: CookieTime) {
    guard changes != nil, cookie.isPersistent else { return }
    let identity = cookie.identity
    changes?[identity] = now
    renewals[identity] = nil
  }

  /// Records that a cookie was set again. A renewal is written with the next change, and counts as a change itself if
  /// the stored expiry is too far from the right one (decision 27).
  private mutating func noteRenewal(of old: Cookie, as cookie: Cookie, _ now: CookieTime) {
    guard changes != nil, cookie.isPersistent, let before = old.expiry, let expiry = cookie.expiry else { return }
    let identity = cookie.identity
    let stored = renewals[identity]?.stored ?? before
    if changes?[identity] != nil || CookieLimits.isStale(stored: stored, right: expiry, now: now) {
      note(cookie, now)
    } else {
      renewals[identity] = Renewal(time: now, stored: stored)
    }
  }

  /// Returns the identities that have changed or were set again since the last call, each with the time, and clears the
  /// record.
  public mutating func takeChanges() -> [Identity: CookieTime] {
    guard let noted = changes else { return [:] }
    let all = noted.merging(renewals.mapValues(\.time)) { change, _ in change }
    changes = [:]
    renewals = [:]
    return all
  }

  /// Whether there is a change that is worth a write. Renewals alone are not.
  public var hasChanges: Bool { changes.map { !$0.isEmpty } ?? false }

  /// Returns the persistent cookies that have these identities.
  public func persistent(of identities: [Identity: CookieTime]) -> [Cookie] {
    let domains = Set(identities.keys.map(\.domain))
    return domains.flatMap { buckets[$0] ?? [] }.filter { $0.isPersistent && identities[$0.identity] != nil }
  }

  /// Puts back changes that could not be written. A later time of change stays.
  public mutating func returnChanges(_ returned: [Identity: CookieTime]) {
    changes?.merge(returned) { now, _ in now }
  }

  /// Replaces the persistent cookies by `stored`, without recording changes. Cookies that have changed in this jar
  /// since the last `takeChanges()` stay as they are.
  public mutating func adopt(_ stored: [Cookie]) {
    let pending = (changes ?? [:]).merging(renewals.mapValues(\.time)) { change, _ in change }
    let books = changes
    changes = nil
    defer { changes = books }
    let wanted = Dictionary(stored.map { ($0.identity, $0) }) { $1 }
    for cookie in buckets.values.flatMap({ $0 }) where cookie.isPersistent {
      let identity = cookie.identity
      if pending[identity] == nil, wanted[identity] == nil { _ = take(cookie) }
    }
    for cookie in stored.sorted(by: Self.isOlder) where pending[cookie.identity] == nil {
      var cookie = cookie
      if let old = take(cookie) {
        cookie.number = old.number
        cookie.lastAccess = max(cookie.lastAccess, old.lastAccess)
      } else {
        cookie.number = nextNumber
        nextNumber += 1
      }
      insert(cookie)
      makeRoom(near: cookie.domain, now: .earliest)
    }
  }
}
