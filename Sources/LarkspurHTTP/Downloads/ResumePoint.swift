/// What has to be known of a download that has stopped, so that it can go on: how far it is, and which version of the
/// resource it has.
///
/// It decides what the response to the request for the rest means. It knows no files, and no other request than its own.
///
/// ```
///   Range: bytes=N-  ----> 206, fits ................ continueAt
///   If-Range: V        |-> 206, does not fit ........ startOver   the body is no use; ask without a range
///                      |-> 200, the whole ........... replace     the body is the whole
///                      |-> 200, contradicts itself .. startOver   perhaps the tail, perhaps the whole
///                      |-> 416, complete is N ....... confirmLast everything is there; ask for its last byte
///                      |-> 416, otherwise ........... startOver
///                      '-> anything else ............ deliver     says nothing about the part, which stays
/// ```
///
/// Invariant: bytes of two versions never come together in one file.
public struct ResumePoint: Hashable, Codable, Sendable {
  /// Names the version: a strong entity tag, or a date that is as good as one.
  public var validator: String
  /// Bytes that are there.
  public var offset: Int
  /// Bytes of the whole; nil if the server has not said.
  public var total: Int?
  /// The content coding that the bytes are in. A range counts encoded bytes (RFC 9110 14.1).
  public var coding: String?

  public init(validator: String, offset: Int, total: Int?, coding: String?) {
    self.validator = validator
    self.offset = offset
    self.total = total
    self.coding = coding
  }

  /// A field's values, by its name in lower case.
  public typealias Fields = (String) -> [String]

  // MARK: - Which downloads can go on

  /// How much later than the last change a response must have been made for its date to name one version only: a clock of
  /// one second cannot tell two changes within it (RFC 9110 8.8.2.2).
  static let ownClockSeconds = 1.0
  /// The same by our clock, which may differ from the server's.
  static let otherClockSeconds = 60.0

  /// The point that a download of this response can go on from, once bytes have come. Nil: it can only start over.
  ///
  /// - Parameter now: When the response came, in seconds since 1970.
  public init?(status: Int, now: Double, fields: Fields) {
    guard status == 200, let validator = Self.validator(now: now, fields: fields) else { return nil }
    // RFC 9110 14.3: so a server says that ranges are of no use with it. Nothing said means nothing.
    guard !fields("accept-ranges").contains(where: { $0.isCaselessly("none") }) else { return nil }
    self.init(validator: validator, offset: 0, total: BodyExtent.length(fields), coding: Self.coding(of: fields))
  }

  private static func validator(now: Double, fields: Fields) -> String? {
    if let tag = fields("etag").first {
      // RFC 9110 13.1.5: a weak tag must not be sent in If-Range, nor a date where there is any tag. One without quotes, as some
      // servers send it, says as much.
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

  /// From which byte on to ask. If all are there, the last one is asked for once more: a range without a byte cannot be
  /// satisfied (RFC 9110 14.1.2), and the answer says whether the rest still belongs to the same version.
  public var firstAsked: Int { offset > 0 && offset == total ? offset - 1 : offset }

  /// The fields that ask for it.
  public static func conditions(from first: Int, validator: String) -> [(name: String, value: String)] {
    [(name: "Range", value: "bytes=\(first)-"), (name: "If-Range", value: validator)]
  }

  // MARK: - The answer

  public enum Decision: Hashable, Sendable {
    /// The body goes on from the byte that was asked for, up to `end`; the whole has `total` bytes, if that is known.
    case continueAt(Int, end: Int, total: Int?)
    /// The body is the whole, and has `count` bytes, if the head or the version says how many.
    case replace(count: Int?)
    case startOver
    case confirmLast
    case deliver
  }

  /// - Parameter first: The byte that was asked for.
  public func decide(asking first: Int, status: Int, fields: Fields) -> Decision {
    switch status {
    case 200: return decideWhole(fields)
    case 206: return decidePart(first, fields)
    case 416:
      // RFC 9110 15.5.17: `bytes */N`. The condition held, or the range would have been ignored.
      // One that does not say it may mean the same where nobody knows the length: the last byte will tell.
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
    // RFC 9110 8.8.1: one strong validator stands for the same bytes, and so for as many.
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
    // RFC 9110 15.3.7.3: parts are put together only if they have the same strong validator. Who answers If-Range may
    // leave out what the client has (15.3.7), and so a field that is not there agrees.
    let present = fields(versionField)
    guard present.allSatisfy({ $0 == validator }) else { return .startOver }
    // Who does not understand a tag without quotes may have passed the condition over.
    guard isQuoted || !isTag || !present.isEmpty else { return .startOver }
    // The coding may be left out like other fields about the representation; one that is there has to be the same.
    if let coding = Self.coding(of: fields), coding != self.coding { return .startOver }
    // A body that is not as long as its range says is not that range.
    if let length = BodyExtent.length(fields), length != range.bytes.count { return .startOver }
    return .continueAt(first, end: range.bytes.upperBound, total: range.total ?? total)
  }
}
