/// What a cache knows of a response that it has stored, but for its body. Times are seconds since 1970 on the wall
/// clock.
public struct StoredResponse: Sendable {
  public var status: Int
  /// Without those that may not be stored (RFC 9111 3.1).
  public var fields: CacheFields
  /// When the request was sent that brought it, or that last validated it.
  public var requestTime: Double
  /// When the head of its answer came.
  public var responseTime: Double
  /// The values of the request fields that chose it.
  public var selection: CacheSelection
  /// Which part of the representation it is; nil: all of it.
  public var part: ContentRange?
  /// The body's size in bytes, as it is stored.
  public var bodyCount: Int
  /// The body's content coding has been undone, whatever `Content-Encoding` says.
  public var isDecoded: Bool

  public init(
    status: Int, fields: CacheFields, requestTime: Double, responseTime: Double,
    selection: CacheSelection = CacheSelection(), part: ContentRange? = nil, bodyCount: Int, isDecoded: Bool = false
  ) {
    self.status = status
    self.fields = fields
    self.requestTime = requestTime
    self.responseTime = responseTime
    self.selection = selection
    self.part = part
    self.bodyCount = bodyCount
    self.isDecoded = isDecoded
  }

  public var control: CacheControl { CacheControl(fields) }

  public var entityTag: String? { fields.firstValue(named: "ETag") }

  public var lastModified: String? { fields.firstValue(named: "Last-Modified") }

  public var hasValidator: Bool { entityTag != nil || lastModified != nil }

  /// When its server made it, or else when it came.
  public var date: Double {
    fields.firstValue(named: "Date").flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime
  }
}

// MARK: - Freshness

extension StoredResponse {
  /// Of the time since it was last modified, the share for which a response without a lifetime of its own is taken to
  /// be fresh (RFC 9111 4.2.2).
  public static let heuristicShare = 0.1

  /// Seconds that a heuristic may make a response fresh for, at most: a file that was last touched ten years ago may
  /// change tomorrow all the same.
  public static let heuristicSecondsMax = 7.0 * 86_400

  /// How many seconds after it was made it is fresh (RFC 9111 4.2.1). This is a private cache: `s-maxage` is not for
  /// it.
  public var freshnessLifetime: Double {
    let control = control
    switch control.maxAge {
    case .seconds(let seconds)?: return Double(seconds)
    // Freshness that cannot be understood is none: RFC 9111 4.2.1 asks to consider such a response stale.
    case .invalid?: return 0
    case nil: break
    }
    // Of several lines the first counts, even if it cannot be read (RFC 9111 4.2.1 and 5.3).
    if let expires = fields.firstValue(named: "Expires") {
      return HTTPDate.parse(expires, now: responseTime).map { max(0, $0 - date) } ?? 0
    }
    guard CacheStatus.isHeuristicallyCacheable(status) || control.isPublic,
      let modified = lastModified.flatMap({ HTTPDate.parse($0, now: responseTime) })
    else { return 0 }
    return min(max(0, (date - modified) * Self.heuristicShare), Self.heuristicSecondsMax)
  }

  /// How many seconds ago its server made it or validated it (RFC 9111 4.2.3).
  public func age(now: Double) -> Double {
    let apparentAge = max(0, responseTime - date)
    let correctedAge = ageValue + max(0, responseTime - requestTime)
    // A wall clock that was set back makes nothing younger than it was when it came.
    return max(apparentAge, correctedAge) + max(0, now - responseTime)
  }

  /// The same for a field: whole seconds, and a number whatever the times are.
  public func ageSeconds(now: Double) -> Int {
    let age = age(now: now)
    return age.isNaN ? 0 : Int(min(max(0, age), Double(CacheControl.deltaSecondsMax)))
  }

  /// What `Age` says. Of a list the first member counts, and one that is no number is ignored (RFC 9111 5.1).
  private var ageValue: Double {
    guard let line = fields.firstValue(named: "Age"), let member = ListMembers.split(line).first,
      let seconds = DeltaSeconds.parse(member)
    else { return 0 }
    return Double(seconds)
  }
}

/// What statuses mean to a cache.
public enum CacheStatus {
  /// Those that may be stored, and thought fresh for a while, without a word from the server (RFC 9110 15.1).
  public static func isHeuristicallyCacheable(_ status: Int) -> Bool {
    switch status {
    case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
    default: false
    }
  }

  /// Final statuses that RFC 9110 defines and that are cached here as it says (RFC 9111 5.2.2.3).
  static func isUnderstood(_ status: Int) -> Bool {
    switch status {
    case 200...206, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
    default: false
    }
  }

  /// Answers to one request and to its circumstances rather than about the resource. Nothing forbids storing them
  /// where their server gives them a lifetime; but a stored 401 would answer the request that carries the
  /// credentials.
  static func isAboutTheRequest(_ status: Int) -> Bool {
    switch status {
    case 401, 407, 408, 412, 416, 417, 421, 425, 426, 428, 511: true
    default: false
    }
  }

  /// The errors that `stale-if-error` is about (RFC 5861 4).
  static func isServerFailure(_ status: Int) -> Bool { [500, 502, 503, 504].contains(status) }
}
