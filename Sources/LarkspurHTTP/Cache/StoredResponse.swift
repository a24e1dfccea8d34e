/// A stored response without its body. Times are seconds since 1970 on the wall clock.
public struct StoredResponse: Sendable {
  public var status: Int
  /// The fields, without those that may not be stored (RFC 9111 3.1).
  public var fields: FieldList { didSet { control = CacheControl(fields) } }
  /// The directives of `Cache-Control` among the fields.
  public private(set) var control: CacheControl
  /// The time at which the request that brought the response, or the latest that validated it, was sent.
  public var requestTime: Double
  /// The time at which the head of the response to that request came.
  public var responseTime: Double
  /// The request fields that select the response, with their values.
  public var selection: CacheSelection
  /// The part of the representation that is stored, or `nil` for all of it.
  public var part: ContentRange?
  /// The size of the stored body in bytes.
  public var bodyCount: Int
  /// Whether the content coding of the stored body has been undone, whatever `Content-Encoding` names.
  public var isDecoded: Bool

  public init(
    status: Int, fields: FieldList, requestTime: Double, responseTime: Double,
    selection: CacheSelection = CacheSelection(), part: ContentRange? = nil, bodyCount: Int, isDecoded: Bool = false
  ) {
    self.status = status
    self.fields = fields
    control = CacheControl(fields)
    self.requestTime = requestTime
    self.responseTime = responseTime
    self.selection = selection
    self.part = part
    self.bodyCount = bodyCount
    self.isDecoded = isDecoded
  }

  /// Creates the response that a complete body belongs to, with the part that the fields state.
  ///
  /// RFC 9111 3.3 and 3.4: a cache that does not understand the range of a part must not store it, and must not use a
  /// part as the whole.
  ///
  /// - Returns: `nil` if the head contradicts itself (``BodyExtent/contradiction``), or states another number of bytes
  ///   than `bodyCount`.
  public init?(
    statedBy status: Int, fields: FieldList, requestTime: Double, responseTime: Double, selection: CacheSelection,
    bodyCount: Int, isDecoded: Bool
  ) {
    var part: ContentRange?
    switch BodyExtent(status: status, { fields.values(named: $0) }) {
    case .part(let range) where range.bytes.count == bodyCount: part = range
    case .part, .contradiction: return nil
    case .whole, .nothing, .unclear, .other: break
    }
    self.init(
      status: status, fields: fields, requestTime: requestTime, responseTime: responseTime, selection: selection,
      part: part, bodyCount: bodyCount, isDecoded: isDecoded)
  }

  public var entityTag: String? { fields.firstValue(named: "ETag") }

  public var lastModified: String? { fields.firstValue(named: "Last-Modified") }

  public var hasValidator: Bool { entityTag != nil || lastModified != nil }

  /// The time at which the server made the response, or at which it came if there is no readable `Date`.
  public var date: Double {
    fields.firstValue(named: "Date").flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime
  }
}

// MARK: - Freshness

extension StoredResponse {
  /// The fraction of the time since the last modification for which a response without an explicit lifetime counts as
  /// fresh (RFC 9111 4.2.2).
  public static let heuristicShare = 0.1

  /// Maximum of the heuristic lifetime in seconds: a file that was last modified ten years ago may change tomorrow.
  public static let heuristicSecondsMax = 7.0 * 86_400

  /// The number of seconds for which the response is fresh after the server has made it (RFC 9111 4.2.1). This is a
  /// private cache: `s-maxage` does not count.
  public var freshnessLifetime: Double {
    let control = control
    switch control.maxAge {
    case .seconds(let seconds)?: return Double(seconds)
    // A lifetime that cannot be read makes the response stale, as RFC 9111 4.2.1 encourages.
    case .invalid?: return 0
    case nil: break
    }
    // The first of several lines counts, even if it cannot be read (RFC 9111 4.2.1 and 5.3).
    if let expires = fields.firstValue(named: "Expires") {
      return HTTPDate.parse(expires, now: responseTime).map { max(0, $0 - date) } ?? 0
    }
    guard CacheStatus.isHeuristicallyCacheable(status) || control.isPublic,
      let modified = lastModified.flatMap({ HTTPDate.parse($0, now: responseTime) })
    else { return 0 }
    return min(max(0, (date - modified) * Self.heuristicShare), Self.heuristicSecondsMax)
  }

  /// The time by which the clock may have been set back since the response came, in seconds. A response of a clock that was
  /// further ahead has no known age, and counts as stale: it would be fresh until the clock is there again.
  public static let clockDriftMax = 3600.0

  /// Returns the number of seconds since the server made or validated the response (RFC 9111 4.2.3).
  public func age(now: Double) -> Double {
    if responseTime - now > Self.clockDriftMax { return .infinity }
    let apparentAge = max(0, responseTime - date)
    let correctedAge = ageValue + max(0, responseTime - requestTime)
    // A wall clock that was set back does not make the response younger than it was when it came.
    return max(apparentAge, correctedAge) + max(0, now - responseTime)
  }

  /// Returns the age in whole seconds, for a field: from 0 to `CacheControl.deltaSecondsMax`, even if the times are not
  /// numbers.
  public func ageSeconds(now: Double) -> Int {
    let age = age(now: now)
    return age.isNaN ? 0 : Int(min(max(0, age), Double(CacheControl.deltaSecondsMax)))
  }

  /// The value of `Age`, or 0. The first member of a list counts; a member that is not a number is ignored (RFC 9111
  /// 5.1).
  private var ageValue: Double {
    guard let line = fields.firstValue(named: "Age"), let member = ListMembers.split(line).first,
      let seconds = DeltaSeconds.parse(member)
    else { return 0 }
    return Double(seconds)
  }
}

/// The meanings of statuses to a cache.
public enum CacheStatus {
  /// Whether a response may be stored, and count as fresh for a while, without explicit permission of the server (RFC
  /// 9110 15.1).
  public static func isHeuristicallyCacheable(_ status: Int) -> Bool {
    switch status {
    case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
    default: false
    }
  }

  /// Whether RFC 9110 defines the final status and the cache handles it as defined there (RFC 9111 5.2.2.3).
  static func isUnderstood(_ status: Int) -> Bool {
    switch status {
    case 200...206, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
    default: false
    }
  }

  /// Whether the status is about one request and its circumstances rather than about the resource. Nothing forbids
  /// storing such a response if the server gives it a lifetime; but a stored 401 would answer the later request that
  /// carries the credentials.
  static func isAboutTheRequest(_ status: Int) -> Bool {
    switch status {
    case 401, 407, 408, 412, 416, 417, 421, 425, 426, 428, 511: true
    default: false
    }
  }

  /// Whether `stale-if-error` applies to the status (RFC 5861 4).
  static func isServerFailure(_ status: Int) -> Bool { [500, 502, 503, 504].contains(status) }
}
