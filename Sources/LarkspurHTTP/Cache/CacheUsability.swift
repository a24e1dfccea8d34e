import LarkspurBytes

extension StoredResponse {
  /// The result of the freshness check: whether the response may be used without a request to its server.
  public enum Usability: Hashable, Sendable {
    case fresh
    /// Stale, and the request accepts that.
    case staleAllowed
    /// Stale, and the server permits using it once more while it is validated.
    case staleWhileRevalidated
    case stale
  }

  public func usability(for request: CacheControl, now: Double) -> Usability {
    let control = control
    // RFC 9111 5.2.1.4 and 5.2.2.4.
    if request.noCache != .nothing || control.noCache == .everything { return .stale }
    let age = age(now: now)
    let lifetime = freshnessLifetime
    var isYoungEnough = true
    switch request.maxAge {
    case .seconds(let seconds)?: isYoungEnough = seconds > 0 && age <= Double(seconds)
    case .invalid?: isYoungEnough = false
    case nil: break
    }
    let reserve: Double =
      switch request.minFresh {
      case .seconds(let seconds)?: Double(seconds)
      case .invalid?: .infinity
      case nil: 0
      }
    if isYoungEnough, lifetime > age, lifetime >= age + reserve { return .fresh }
    // RFC 9111 5.2.2.2: with `must-revalidate` a stale response is not used, whatever the request accepts.
    guard isYoungEnough, !control.mustRevalidate else { return .stale }
    let staleness = age - lifetime
    if let limit = request.maxStale?.seconds, staleness <= Double(limit), request.minFresh == nil {
      return .staleAllowed
    }
    if let limit = control.staleWhileRevalidate?.seconds, staleness <= Double(limit), request.minFresh == nil,
      request.maxAge == nil, control.maxAge?.seconds != nil || fields.contains(named: "Expires")
    {
      return .staleWhileRevalidated
    }
    return .stale
  }

  /// Whether the response may be used when its server fails or cannot be reached (RFC 5861 4).
  public func mayStandIn(for request: CacheRequest, now: Double) -> Bool {
    // Every other policy defines by itself which response is used.
    request.policy == .byProtocol && mayStandIn(for: request.control, now: now)
  }

  public func mayStandIn(for request: CacheControl, now: Double) -> Bool {
    let control = control
    guard request.noCache == .nothing, control.noCache != .everything, !control.mustRevalidate else { return false }
    let allowed = max(control.staleIfError?.seconds ?? -1, request.staleIfError?.seconds ?? -1)
    guard allowed >= 0 else { return false }
    return age(now: now) - freshnessLifetime <= Double(allowed)
  }
}

// MARK: - Validation

extension StoredResponse {
  /// The fields that make the server send a new response only if this one is out of date (RFC 9111 4.3.1).
  public var validatingFields: FieldList {
    var fields: FieldList = []
    if let tag = entityTag { fields.append(Field("If-None-Match", tag)) }
    // A date identifies whole responses, not parts of them.
    if part == nil, let date = lastModified { fields.append(Field("If-Modified-Since", date)) }
    return fields
  }

  /// Whether the caller already has this response, by the conditions of the request (RFC 9110 13.2.2).
  func answersNotModified(_ request: FieldList) -> Bool {
    // RFC 9111 4.3.2: only the server evaluates these conditions.
    guard status == 200, !request.contains(named: "If-Match"), !request.contains(named: "If-Unmodified-Since"),
      !request.contains(named: "Range")
    else { return false }
    if request.contains(named: "If-None-Match") {
      guard let tag = entityTag else { return false }
      // RFC 9110 13.1.3: the date is ignored if there are tags.
      return request.members(named: "If-None-Match").contains { $0 == "*" || EntityTag.isWeaklyEqual($0, tag) }
    }
    guard let modified = lastModified.flatMap({ HTTPDate.parse($0, now: responseTime) }),
      let date = request.firstValue(named: "If-Modified-Since").flatMap({ HTTPDate.parse($0, now: responseTime) })
    else { return false }
    return modified <= date
  }

  /// Whether this response is the one that an `If-Range` names (RFC 9110 13.1.5).
  func isExactly(_ condition: String) -> Bool {
    if let tag = entityTag, EntityTag.isStronglyEqual(tag, condition) { return true }
    // The cache adds a `Date` to a response without one, so its clock may differ from the server's.
    guard lastModified == condition, let modified = HTTPDate.parse(condition, now: responseTime) else { return false }
    return date - modified >= ResumePoint.otherClockSeconds
  }

  /// Whether this response and one with these fields are parts of one representation, so that their bytes may be
  /// combined (RFC 9111 3.4).
  public func isPartOfSame(_ other: FieldList) -> Bool {
    guard let tag = entityTag, let otherTag = other.firstValue(named: "ETag") else { return false }
    return EntityTag.isStronglyEqual(tag, otherTag)
  }

  /// Whether a 304 or the head of a 200 with these fields is about this response (RFC 9111 4.3.4 and 4.3.5).
  public func isDescribed(by other: FieldList) -> Bool {
    if let tag = other.firstValue(named: "ETag") { return entityTag.map { EntityTag.isWeaklyEqual($0, tag) } ?? true }
    guard let date = other.firstValue(named: "Last-Modified"), let own = lastModified else { return true }
    return date == own
  }

  /// Whether the response to a HEAD shows that this response is still valid.
  public func isConfirmed(byHead other: FieldList) -> Bool {
    guard isDescribed(by: other), part == nil else { return false }
    guard let length = other.firstValue(named: "Content-Length"),
      let own = fields.firstValue(named: "Content-Length")
    else { return true }
    return length == own
  }

  /// Returns the response updated by the fields of a 304, of a 206 or of the response to a HEAD (RFC 9111 3.2). The
  /// selection stays: `CacheOutcome.received` derives it from the new fields.
  public func freshened(by other: FieldList, requestTime: Double, responseTime: Double) -> StoredResponse {
    let news = CacheStorage.storable(other, now: responseTime).filter { field in
      !Self.keptWhenFreshened.contains(field.name)
    }
    var freshened = self
    let replaced = FieldNames(news.map(\.name))
    // An `Age` that the update does not repeat belongs to the earlier response.
    freshened.fields = fields.filter { !replaced.contains($0.name) && !$0.name.equalsIgnoringCase("Age") } + news
    freshened.fields.removeFields(of: freshened.control.noCache)
    freshened.requestTime = requestTime
    freshened.responseTime = responseTime
    return freshened
  }

  /// The fields that describe the stored body, which stays: its size and its encoding (RFC 9111 3.2).
  private static let keptWhenFreshened = FieldNames(["content-encoding", "content-length", "content-range"])
}
