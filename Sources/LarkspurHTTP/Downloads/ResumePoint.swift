import LarkspurBytes

/// The state of a stopped download that is needed to resume it: the number of bytes that have arrived, and the version
/// of the resource that they belong to.
///
/// The type decides on the response to the request for the rest. Files, and other requests, are unknown to it.
///
/// ```
///   Range: bytes=N-  ----> 206, fits ................ continueAt
///   If-Range: V        |-> 206, does not fit ........ startOver   the body is of no use; ask without a range
///                      |-> 200, the whole ........... replace     the body is the whole
///                      |-> 200, contradicts itself .. startOver   perhaps the tail, perhaps the whole
///                      |-> 416, complete is N ....... confirmLast all bytes are there; ask for the last one
///                      |-> 416, otherwise ........... startOver
///                      '-> anything else ............ deliver     no statement about the part, which stays
/// ```
///
/// Invariant: bytes of two versions never come together in one file.
public struct ResumePoint: Hashable, Codable, Sendable {
  /// The validator that names the version: a strong entity tag, or a date that is as good as one.
  public var validator: String
  /// Number of bytes that have arrived.
  public var offset: Int
  /// Size of the whole in bytes, or `nil` if the server has not named it.
  public var total: Int?
  /// The content coding of the bytes, or `nil` for none. A range counts encoded bytes (RFC 9110 14.1).
  public var coding: String?

  public init(validator: String, offset: Int, total: Int?, coding: String?) {
    self.validator = validator
    self.offset = offset
    self.total = total
    self.coding = coding
  }

  /// Returns the values of a field by its name in lower case.
  public typealias Fields = (String) -> [String]

  // MARK: - Resumable downloads

  /// Minimum time, in seconds by the server's clock, between the last change and the response, so that `Last-Modified`
  /// names one version only: a clock with a resolution of one second cannot distinguish two changes within a second
  /// (RFC 9110 8.8.2.2).
  static let ownClockSeconds = 1.0
  /// Minimum of that time if the response has no `Date`: then the local clock counts, which may differ from the
  /// server's.
  static let otherClockSeconds = 60.0

  /// Creates the point from which a download of this response can be resumed, with no bytes yet. Returns `nil` if the
  /// download can only start over.
  ///
  /// - Parameter now: The time at which the response came, in seconds since 1970.
  public init?(status: Int, now: Double, fields: Fields) {
    guard status == 200, let validator = Self.validator(now: now, fields: fields) else { return nil }
    // RFC 9110 14.3: with `none` a server says that it does not support ranges. A missing field says nothing.
    guard !fields("accept-ranges").contains(where: { $0.equalsIgnoringCase("none") }) else { return nil }
    self.init(validator: validator, offset: 0, total: BodyExtent.length(fields), coding: Self.coding(of: fields))
  }

  /// Returns the validator that names the response's version, or `nil` if there is none.
  ///
  /// - Parameter now: The time at which the response came, in seconds since 1970.
  package static func validator(now: Double, fields: Fields) -> String? {
    let (tags, dates) = (fields("etag"), fields("last-modified"))
    // Two validators name no version: only one of them can be right.
    guard tags.count + (tags.isEmpty ? dates.count : 0) == 1 else { return nil }
    if let tag = tags.first {
      // RFC 9110 13.1.5: neither a weak tag nor, where there is any tag, a date may be sent in If-Range. A tag without
      // quotes, as some servers send it, counts as a strong tag.
      let isBare = !tag.isEmpty && !tag.utf8.contains(ASCII.quote) && HTTPDate.parse(tag, now: now) == nil
      return EntityTag.isStrong(tag) || isBare && !String(tag.prefix(2)).equalsIgnoringCase("W/") ? tag : nil
    }
    guard let changed = HTTPDate.parse(dates[0], now: now) else { return nil }
    let date = fields("date").first.flatMap { HTTPDate.parse($0, now: now) }
    return date.map({ $0 - changed >= ownClockSeconds }) ?? (now - changed >= otherClockSeconds) ? dates[0] : nil
  }

  /// Returns the content codings in lower case, or `nil` if there are none.
  package static func coding(of fields: Fields) -> String? {
    let codings = fields("content-encoding").joined(separator: ", ").lowercased()
    return codings.isEmpty || codings == "identity" ? nil : codings
  }

  // MARK: - The request for the rest

  /// The first byte to request. If all bytes have arrived, the last one is requested once more: a range without a byte
  /// cannot be satisfied (RFC 9110 14.1.2), and the response shows whether the bytes still belong to the current
  /// version.
  public var firstAsked: Int { offset > 0 && offset == total ? offset - 1 : offset }

  /// Returns the fields that request the bytes from `first` up to `last`, or up to the end, if the version is still the
  /// one of `validator`, or whatever the version is if `validator` is `nil`.
  public static func conditions(from first: Int, through last: Int? = nil, validator: String?) -> FieldList {
    [Field("Range", "bytes=\(first)-\(last.map { "\($0)" } ?? "")")]
      + (validator.map { [Field("If-Range", $0)] } ?? [])
  }

  // MARK: - The answer

  public enum Decision: Hashable, Sendable {
    /// The body continues the download from the requested byte up to `end`; the whole has `total` bytes, or an unknown
    /// number if `total` is `nil`.
    case continueAt(Int, end: Int, total: Int?)
    /// The body is the whole. `count` is its size in bytes, or `nil` if neither the head nor the known version
    /// names it.
    case replace(count: Int?)
    case startOver
    case confirmLast
    case deliver
  }

  /// Decides on the response to the request for the rest.
  ///
  /// - Parameter first: The first byte that was requested.
  public func decide(asking first: Int, status: Int, fields: Fields) -> Decision {
    let isTag = HTTPDate.parse(validator, now: 0) == nil
    let versions = fields(isTag ? "etag" : "last-modified")
    // RFC 9110 15.3.7.3: parts are combined only if they have one strong validator. A response to If-Range may omit
    // fields that the client already has (15.3.7), so a missing field counts as equal. But a server that does not
    // understand a tag without quotes may have ignored the condition, so the response must repeat the tag.
    let mayOmit = !isTag || validator.utf8.first == ASCII.quote
    let isSame = versions.isEmpty ? mayOmit : versions.allSatisfy { $0 == validator }
    switch BodyExtent(status: status, fields) {
    case .whole(let said):
      // RFC 9110 8.8.1: a strong validator stands for one sequence of bytes, and so for one size. A proxy has changed
      // the bytes of a 203 (15.3.4).
      let isKnown = status == 200 && versions == [validator] && Self.coding(of: fields) == coding
      let known = isKnown ? total : nil
      guard let count = said ?? known else { return .replace(count: nil) }
      let fits = count == known ?? count && count == BodyExtent.length(fields) ?? count
      return fits ? .replace(count: count) : .startOver
    case .part(let range):
      guard isSame, Self.coding(of: fields) ?? coding == coding,
        range.bytes.lowerBound == first, range.bytes.upperBound <= total ?? .max,
        range.total ?? total == total ?? range.total
      else { return .startOver }
      return .continueAt(first, end: range.bytes.upperBound, total: range.total ?? total)
    case .nothing(let said):
      // The validator matched, because otherwise the server would have ignored the range. If the total is unknown, a
      // 416 without `Content-Range` may mean the same: a request for the last byte shows which.
      let fits = said == nil ? total == nil : said == offset && total ?? offset == offset
      return fits && isSame && first == offset && offset > 0 ? .confirmLast : .startOver
    case .unclear, .contradiction: return .startOver
    case .other: return .deliver
    }
  }
}
