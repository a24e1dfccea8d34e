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
  /// names one version only: a clock with a resolution of one second cannot tell two changes within a second apart (RFC
  /// 9110 8.8.2.2).
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

  private static func validator(now: Double, fields: Fields) -> String? {
    if let tag = fields("etag").first {
      // RFC 9110 13.1.5: neither a weak tag nor, where there is any tag, a date may be sent in If-Range. A tag without
      // quotes, as some servers send it, counts as a strong tag.
      if EntityTag.isStrong(tag) { return tag.utf8.last == ASCII.quote ? tag : nil }
      let mayBeOne = !tag.isEmpty && !tag.utf8.contains(ASCII.quote) && HTTPDate.parse(tag, now: now) == nil
      return mayBeOne ? tag : nil
    }
    guard let text = fields("last-modified").first, let changed = HTTPDate.parse(text, now: now) else { return nil }
    if let date = fields("date").first.flatMap({ HTTPDate.parse($0, now: now) }) {
      return date - changed >= ownClockSeconds ? text : nil
    }
    return now - changed >= otherClockSeconds ? text : nil
  }

  private static func coding(of fields: Fields) -> String? {
    let codings = fields("content-encoding").joined(separator: ", ").lowercased()
    return codings.isEmpty || codings == "identity" ? nil : codings
  }

  /// - Returns: The number that the digits of `text` make, or `nil` if it has other characters or more than 18 digits.
  static func number(_ text: String) -> Int? {
    guard 1...18 ~= text.utf8.count, text.utf8.allSatisfy(ASCII.isDigit) else { return nil }
    return Int(text)
  }

  // MARK: - The request for the rest

  /// The first byte to request. If all bytes have arrived, the last one is requested once more: a range without a byte
  /// cannot be satisfied (RFC 9110 14.1.2), and the response shows whether the bytes still belong to the current
  /// version.
  public var firstAsked: Int { offset > 0 && offset == total ? offset - 1 : offset }

  /// Returns the fields that request the bytes from `first` on, if the version is still the one of `validator`.
  public static func conditions(from first: Int, validator: String) -> FieldList {
    [Field("Range", "bytes=\(first)-"), Field("If-Range", validator)]
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
    switch status {
    case 200: return decideWhole(fields)
    case 206: return decidePart(first, fields)
    case 416:
      // RFC 9110 15.5.17: `bytes */N`. The validator matched, because otherwise the server would have ignored the
      // range. If the total is unknown, a 416 without `Content-Range` may mean the same: a request for the last byte
      // shows which.
      let said = fields("content-range").first
      guard first == offset, offset > 0, said.map({ $0 == "bytes */\(offset)" }) ?? (total == nil) else {
        return .startOver
      }
      return total == nil || total == offset ? .confirmLast : .startOver
    default: return .deliver
    }
  }

  private func decideWhole(_ fields: Fields) -> Decision {
    guard case .whole(let said) = BodyExtent(fields) else { return .startOver }
    // RFC 9110 8.8.1: a strong validator stands for one sequence of bytes, and so for one size.
    let known = fields(versionField) == [validator] && Self.coding(of: fields) == coding ? total : nil
    guard let count = said ?? known else { return .replace(count: nil) }
    guard count == known ?? count, count == BodyExtent.length(fields) ?? count else { return .startOver }
    return .replace(count: count)
  }

  /// Whether `validator` is an entity tag in quotation marks.
  private var isQuoted: Bool { validator.utf8.first == ASCII.quote }

  private var isTag: Bool { isQuoted || HTTPDate.parse(validator, now: 0) == nil }

  /// The name of the field that the validator is from.
  private var versionField: String { isTag ? "etag" : "last-modified" }

  private func decidePart(_ first: Int, _ fields: Fields) -> Decision {
    // RFC 9110 15.3.7.1: one part has Content-Range. Several parts were not asked for.
    let ranges = fields("content-range")
    guard !BodyExtent.isMultipart(fields), ranges.count == 1, let range = ContentRange(ranges[0]),
      range.bytes.lowerBound == first
    else {
      return .startOver
    }
    if let total, let complete = range.total, total != complete { return .startOver }
    if let total, range.bytes.upperBound > total { return .startOver }
    // RFC 9110 15.3.7.3: parts are combined only if they have one strong validator. A response to If-Range may omit
    // fields that the client already has (15.3.7), so a missing field counts as equal.
    let present = fields(versionField)
    guard present.allSatisfy({ $0 == validator }) else { return .startOver }
    // A server that does not understand a tag without quotes may have ignored the condition, so the response must
    // repeat the tag.
    guard isQuoted || !isTag || !present.isEmpty else { return .startOver }
    // The coding may be omitted like other fields about the representation; a coding that is named must be equal.
    if let coding = Self.coding(of: fields), coding != self.coding { return .startOver }
    // A body whose length differs from its range's is not that range.
    if let length = BodyExtent.length(fields), length != range.bytes.count { return .startOver }
    return .continueAt(first, end: range.bytes.upperBound, total: range.total ?? total)
  }
}
