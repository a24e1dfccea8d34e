/// The cookies of a session (RFC 6265bis 5.7), as a value.
///
/// Theory of operation. It owns the cookies, by domain, and the limits on them. It decides what is kept of what
/// servers set, which cookies go with a request and in which order, and which ones give way when there are too many.
///
/// ```
///           received, put                  received, put (same identity)
///  unknown --------------> kept --------------------------------> kept, created when the other was
///                            |--expired, evicted, removed--> unknown
/// ```
///
/// It refuses to know: clocks, files, accept policies, what a public suffix is (it asks), URLs.
///
/// Invariants. No two cookies have one identity. No domain has more than `perDomainMax`, and all have not more than
/// `totalMax`. A cookie that has expired is never given out. What has changed since the books of changes were last
/// taken stands in them.
public struct CookieJar: Sendable {
  public typealias Identity = Cookie.Identity

  /// What became of a cookie that a server has sent.
  public enum Outcome: Hashable, Sendable {
    /// The jar is another.
    case stored
    /// It had expired; what stood in its place is gone.
    case removed
    case refused(Refusal)
  }

  public enum Refusal: Hashable, Sendable, CaseIterable {
    /// The Domain attribute is no host, is a public suffix, or does not contain the host.
    case domain
    /// A Secure cookie by a connection that is not.
    case insecure
    /// It would stand before a Secure cookie, and comes by a connection that is not.
    case shadowsSecure
    /// A cookie for the same site from another one.
    case crossSite
    /// A cookie for other sites that is not Secure.
    case crossSiteInsecure
    /// The name promises what the attributes do not keep.
    case prefix
  }

  public let limits: CookieLimits
  private(set) var buckets: [String: [Cookie]] = [:]
  /// How many domains have the hash: most hosts are known not to have a cookie before a string is made.
  private var hashes: [UInt64: Int] = [:]
  /// How many Secure cookies there are below the domain that has the hash.
  private var secureBelow: [UInt64: Int] = [:]
  public private(set) var count = 0
  private var secureCount = 0
  private var nextNumber: UInt64 = 0
  /// When each identity of a persistent cookie last changed, or `nil` if changes are not kept.
  private var changes: [Identity: CookieTime]?

  /// A cookie that was set again and has not changed enough to be written.
  private struct Renewal: Sendable {
    var time: CookieTime
    /// The expiry that is stored.
    var stored: CookieTime
  }

  private var renewals: [Identity: Renewal] = [:]
  /// Counts what a reader of the jar can see, except uses.
  public private(set) var revision: UInt64 = 0

  public init(limits: CookieLimits = CookieLimits(), keepsChanges: Bool = false) {
    self.limits = limits
    changes = keepsChanges ? [:] : nil
  }

  public var isEmpty: Bool { count == 0 }

  /// Everything that has not expired, in the order in which it was created.
  public func all(at now: CookieTime) -> [Cookie] {
    buckets.values.joined().filter { !$0.hasExpired(at: now) }.sorted(by: Self.isOlder)
  }

  static func isOlder(_ one: Cookie, _ other: Cookie) -> Bool {
    (one.creation, one.number) < (other.creation, other.number)
  }

  // MARK: Receiving

  /// Keeps what a server has set, or does not.
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

  /// What a server has set, as far as that does not depend on what else there is. It may have expired.
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
    // Whatever is on top may set cookies for its own site.
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
      // An address has no hosts below it.
      if host.isAddress { return (host.text, true) }
      guard isPublicSuffix(name) else { return (name, false) }
      // The public suffix is a site of its own, which may have cookies for itself.
      return name == host.text ? (name, true) : nil
    }
  }

  /// Max-Age goes before Expires, and neither may be far ahead.
  private static func expiry(of said: SetCookie, _ now: CookieTime) -> CookieTime? {
    let latest = now.adding(seconds: CookieLimits.lifetimeSecondsMax)
    if let age = said.maxAge { return age <= 0 ? .earliest : min(now.adding(seconds: Double(age)), latest) }
    return said.expires.map { min($0, latest) }
  }

  /// RFC 6265bis 5.7 "leave Secure cookies alone": what comes in the clear may have been put there by anybody.
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

  /// The prefixes of names (RFC 6265bis 5.7), in whatever case: there are servers that do not tell them apart. The
  /// value of a cookie without a name stands in the Cookie field where a name would.
  ///
  /// - Parameter path: The path that was given, if any: one that follows from the request's keeps no promise.
  private static func keepsPromises(_ cookie: Cookie, path: String?) -> Bool {
    let name = HostName.normal(cookie.name.isEmpty ? cookie.value : cookie.name)
    let isHost = name.hasPrefix("__host-")
    guard isHost || name.hasPrefix("__secure-") else { return true }
    guard !cookie.name.isEmpty, cookie.isSecure else { return false }
    return !isHost || cookie.isHostOnly && path == "/"
  }

  /// Keeps a cookie that a program has made of what a server said. Who makes it may say that it is Secure: it leaves by
  /// TLS only, all the same.
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

  // MARK: Changing

  /// Puts a cookie into its place, whoever sets it. One that has expired only takes away what stood there.
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

  /// Sets a cookie again that is here with the same value and attributes. Returns whether there is one.
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

  /// Whether there was one.
  @discardableResult
  public mutating func remove(_ cookie: Cookie, now: CookieTime) -> Bool {
    guard let old = take(cookie) else { return false }
    revision += 1
    note(old, now)
    return true
  }

  /// Whether anything went.
  @discardableResult
  public mutating func removeAll(now: CookieTime, where isToGo: (Cookie) -> Bool) -> Bool {
    let going = buckets.values.joined().filter(isToGo)
    for cookie in going { remove(cookie, now: now) }
    return !going.isEmpty
  }

  /// Takes out what has the cookie's identity.
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

  // MARK: Giving

  /// The domains of the jar that a host's cookies may stand under: its own and those above it.
  public func domains(of host: CookieHost) -> [String] {
    kept(in: host.text).filter { host.matches(domain: $0) }
  }

  /// The domains of the jar that a name is, or is below.
  private func kept(in name: String) -> [String] {
    var found: [String] = []
    guard count > 0 else { return found }
    let bytes = name.utf8
    var hash = DomainHash()
    var place = bytes.endIndex
    while place > bytes.startIndex {
      place = bytes.index(before: place)
      hash.add(bytes[place])
      let isStart = place == bytes.startIndex
      guard hashes[hash.value] != nil, isStart || bytes[bytes.index(before: place)] == UInt8(ascii: ".") else {
        continue
      }
      let domain = isStart ? name : String(name[place...])
      if buckets[domain] != nil { found.append(domain) }
    }
    return found
  }

  /// The cookies that go with a request, in the order in which they are sent. They count as used.
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

  /// The value of the Cookie field. Nil: the request has none.
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

  /// RFC 6265bis 5.7: what has expired goes first; then of the domains that have more than their share what is not
  /// Secure, and then what is; then anything. Among equals it is what has not been used for longest.
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

  // MARK: Keeping books

  /// Session cookies are nobody else's business.
  private mutating func note(_ cookie: Cookie, _ now: CookieTime) {
    guard changes != nil, cookie.isPersistent else { return }
    let identity = cookie.identity
    changes?[identity] = now
    renewals[identity] = nil
  }

  /// A renewal is written with the next change. It is one itself if the stored expiry is too far from the right one.
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

  /// What has changed or was set again since this was last called, and when.
  public mutating func takeChanges() -> [Identity: CookieTime] {
    guard let noted = changes else { return [:] }
    let all = noted.merging(renewals.mapValues(\.time)) { change, _ in change }
    changes = [:]
    renewals = [:]
    return all
  }

  /// Whether something has changed that is worth a write.
  public var hasChanges: Bool { changes.map { !$0.isEmpty } ?? false }

  /// The persistent cookies that have these identities.
  public func persistent(of identities: [Identity: CookieTime]) -> [Cookie] {
    let domains = Set(identities.keys.map(\.domain))
    return domains.flatMap { buckets[$0] ?? [] }.filter { $0.isPersistent && identities[$0.identity] != nil }
  }

  /// Puts changes back that could not be carried out. What has changed since stays as it is.
  public mutating func returnChanges(_ returned: [Identity: CookieTime]) {
    changes?.merge(returned) { now, _ in now }
  }

  /// Makes the persistent cookies those of `stored`, without taking note, but for what has changed here meanwhile.
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
