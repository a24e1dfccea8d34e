import LarkspurBytes

/// The decision on a request, given the responses that are stored for its URI: the reading side of RFC 9111, in one
/// function.
///
///     nothing stored that matches ──► load
///     fresh ────────────────────────► serve
///     stale, and staleness allowed ─► serve, perhaps validate meanwhile
///     stale, has a validator ───────► validate ──► 304: freshen and serve; 5xx or no answer: perhaps serve stale
///     stale, has none ──────────────► load ──────► 5xx or no answer: perhaps serve stale
///
/// The decision uses no clock, no storage and no URIs: the candidates are the responses that are stored under the
/// request's key.
public enum CacheDecision: Sendable {
  /// Send the request with these additional fields. `standIn` is the index of a candidate that may be served if the
  /// server fails.
  case load(standIn: Int?, adding: FieldList)
  case validate(candidate: Int, adding: FieldList)
  case serve(CacheServing)
  case fail(CacheFailure)
}

/// The reason why a request gets no response.
public enum CacheFailure: Hashable, Sendable {
  /// The policy accepts stored responses only, and there is none.
  case notStored
  /// The request has the directive `only-if-cached`, and there is no usable stored response: the response is a 504 (RFC
  /// 9111 5.2.1.7).
  case onlyIfCached
}

/// The way in which a candidate answers a request.
public struct CacheServing: Sendable {
  public enum Form: Hashable, Sendable {
    case whole
    /// The head only.
    case head
    /// These bytes of the stored body, as a 206.
    case part(Range<Int>, ContentRange)
    /// As a 304: the caller already has the response.
    case notModified
  }

  public var candidate: Int
  public var form: Form
  /// The age in whole seconds.
  public var age: Int
  public var isStale: Bool
  /// The fields to add when the request is sent in the background, to update the stored response (RFC 5861 3), or `nil`
  /// if it is not sent.
  public var refresh: FieldList?
}

extension CacheDecision {
  /// Decides on a request.
  ///
  /// - Parameter now: The time in seconds since 1970.
  public static func decide(_ request: CacheRequest, among candidates: [StoredResponse], now: Double) -> CacheDecision {
    guard request.isGet || request.isHead, !request.hasBody else { return absent(request) }
    switch request.policy {
    case .ignoringStored: return .load(standIn: nil, adding: [])
    case .ignoringAllCaches: return .load(standIn: nil, adding: bypassing(request))
    case .byProtocol, .storedElseLoad, .storedOnly, .revalidating: break
    }
    // RFC 9111 5.2.1.5: a request with `no-store` does not look up stored responses either.
    if request.control.noStore, request.policy == .byProtocol { return absent(request) }
    guard let index = selected(for: request, among: candidates) else { return absent(request) }
    let stored = candidates[index]
    switch request.policy {
    case .storedElseLoad, .storedOnly:
      guard let form = form(of: stored, for: request) else { return absent(request) }
      return .serve(serving(index, stored, form, now: now))
    case .revalidating: return revalidated(index, stored, request, now: now)
    default: return byProtocol(index, stored, request, now: now)
    }
  }

  /// Returns the index of the most recent candidate that matches. A candidate with selecting fields precedes one
  /// without (RFC 9111 4.1).
  public static func selected(for request: CacheRequest, among candidates: [StoredResponse]) -> Int? {
    candidates.indices.filter { index in
      let stored = candidates[index]
      return stored.selection.matches(request.fields, isLenient: request.isLenient) && isReadable(stored, for: request)
    }.max { left, right in
      let (one, other) = (candidates[left], candidates[right])
      return one.selection.isEmpty == other.selection.isEmpty ? one.date < other.date : one.selection.isEmpty
    }
  }

  /// Whether the stored body has the form that the request expects: with its codings undone, or as it was sent.
  private static func isReadable(_ stored: StoredResponse, for request: CacheRequest) -> Bool {
    let codings = stored.fields.members(named: "Content-Encoding")
    if codings.isEmpty { return true }
    guard request.isDecoding else { return !stored.isDecoded }
    return stored.isDecoded || stored.part != nil || request.isLenient
      || !codings.contains { ["gzip", "x-gzip", "deflate"].contains($0.asciiLowercased) }
  }

  private static func absent(_ request: CacheRequest) -> CacheDecision {
    if request.policy == .storedOnly { return .fail(.notStored) }
    if request.policy == .byProtocol, request.control.onlyIfCached { return .fail(.onlyIfCached) }
    return .load(standIn: nil, adding: request.policy == .revalidating ? endToEnd(request) : [])
  }

  // MARK: - By policy

  private static func byProtocol(
    _ index: Int, _ stored: StoredResponse, _ request: CacheRequest, now: Double
  ) -> CacheDecision {
    let usability = stored.usability(for: request.control, now: now)
    let form = form(of: stored, for: request)
    if request.isConditional {
      // RFC 9111 4.3.2: a fresh response can answer the caller's condition with a 304. In all other cases the server
      // answers the condition.
      if usability == .fresh, let form, form == .whole, stored.answersNotModified(request.fields) {
        return .serve(serving(index, stored, .notModified, now: now))
      }
      return request.control.onlyIfCached ? .fail(.onlyIfCached) : .load(standIn: nil, adding: [])
    }
    guard let form else { return absent(request) }
    switch usability {
    case .fresh, .staleAllowed: return .serve(serving(index, stored, form, now: now))
    case .staleWhileRevalidated:
      var serving = serving(index, stored, form, now: now)
      serving.refresh = stored.validatingFields
      return .serve(serving)
    case .stale:
      if request.control.onlyIfCached { return .fail(.onlyIfCached) }
      return validatedOrLoaded(index, stored, request, adding: [])
    }
  }

  private static func revalidated(
    _ index: Int, _ stored: StoredResponse, _ request: CacheRequest, now: Double
  ) -> CacheDecision {
    // RFC 8246 2: an immutable response needs no validation while it is fresh, not even on a reload.
    if stored.control.isImmutable, !request.isConditional, let form = form(of: stored, for: request),
      stored.usability(for: request.control, now: now) == .fresh
    {
      return .serve(serving(index, stored, form, now: now))
    }
    guard !request.isConditional, form(of: stored, for: request) != nil else { return absent(request) }
    return validatedOrLoaded(index, stored, request, adding: endToEnd(request))
  }

  private static func validatedOrLoaded(
    _ index: Int, _ stored: StoredResponse, _ request: CacheRequest, adding fields: FieldList
  ) -> CacheDecision {
    // The response to a HEAD freshens the stored response without conditions (RFC 9111 4.3.5).
    guard stored.hasValidator, request.isGet else { return .load(standIn: index, adding: fields) }
    return .validate(candidate: index, adding: stored.validatingFields + fields)
  }

  /// The fields that make intermediate caches validate with the server, too (RFC 9111 5.2.1.1).
  private static func endToEnd(_ request: CacheRequest) -> FieldList {
    request.control.isPresent ? [] : [Field("Cache-Control", "max-age=0")]
  }

  /// Returns the fields that make intermediate caches forward the request to the server.
  public static func bypassing(_ request: CacheRequest) -> FieldList {
    var fields: FieldList = []
    if !request.control.isPresent { fields.append(Field("Cache-Control", "no-cache")) }
    // For HTTP/1.0 caches (RFC 9111 5.4).
    if !request.fields.contains(named: "Pragma") { fields.append(Field("Pragma", "no-cache")) }
    return fields
  }

  // MARK: - Forms

  private static func serving(
    _ index: Int, _ stored: StoredResponse, _ form: CacheServing.Form, now: Double
  ) -> CacheServing {
    CacheServing(
      candidate: index, form: form, age: stored.ageSeconds(now: now),
      isStale: stored.age(now: now) >= stored.freshnessLifetime)
  }

  /// Returns the form in which the response answers the request, or `nil` if it cannot.
  public static func form(of stored: StoredResponse, for request: CacheRequest) -> CacheServing.Form? {
    if request.isHead { return stored.part == nil ? .head : nil }
    guard let wanted = request.fields.firstValue(named: "Range") else { return stored.part == nil ? .whole : nil }
    // RFC 9110 14.2: a range applies to a 200; other responses are equal with and without it.
    if stored.part == nil, stored.status != 200 { return .whole }
    // A range counts encoded bytes, which are no longer stored.
    if stored.isDecoded, stored.fields.contains(named: "Content-Encoding") { return nil }
    guard request.fields.values(named: "Range").count == 1, let range = RequestedRange(wanted) else { return nil }
    if let condition = request.fields.firstValue(named: "If-Range"), !stored.isExactly(condition) { return nil }
    let held = stored.part ?? ContentRange(bytes: 0..<stored.bodyCount, total: stored.bodyCount)
    guard let bytes = range.bytes(ofTotal: held.total), held.bytes.lowerBound <= bytes.lowerBound,
      bytes.upperBound <= held.bytes.upperBound
    else { return nil }
    let start = bytes.lowerBound - held.bytes.lowerBound
    return .part(start..<(start + bytes.count), ContentRange(bytes: bytes, total: held.total))
  }
}
