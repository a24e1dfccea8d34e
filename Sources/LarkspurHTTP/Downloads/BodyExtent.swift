/// How much of a representation a response's body is, as the head of a 200, or of a 206 that was not asked for, says it.
///
/// `Content-Range` has a meaning with 206 and 416 only (RFC 9110 14.4), so a 200 that has it contradicts itself, unless the
/// range is the whole. Servers that send a tail with 200 mean the range.
public enum BodyExtent: Hashable, Sendable {
  /// All bytes: so many of them, if there is a `Content-Range` that says it.
  case whole(count: Int?)
  /// Not all bytes, or the head contradicts itself.
  case part
  /// A `Content-Range` that cannot be read, or is of another unit than bytes.
  case unclear

  public init(_ fields: ResumePoint.Fields) {
    guard !Self.isMultipart(fields) else {
      self = .part
      return
    }
    let ranges = fields("content-range")
    guard let text = ranges.first else {
      self = .whole(count: nil)
      return
    }
    guard ranges.count == 1, let range = ContentRange(text) else {
      self = .unclear
      return
    }
    let length = Self.length(fields)
    guard range.bytes.lowerBound == 0, length == nil || length == range.bytes.count else {
      self = .part
      return
    }
    self = range.isWhole ? .whole(count: range.total) : range.total == nil ? .unclear : .part
  }

  /// Whether the body has several ranges, each with a head of its own (RFC 9110 14.6).
  static func isMultipart(_ fields: ResumePoint.Fields) -> Bool {
    fields("content-type").contains { value in
      String(value.prefix { $0 != ";" && $0 != " " && $0 != "\t" }).isCaselessly("multipart/byteranges")
    }
  }

  /// - Returns: What `Content-Length` says, or `nil` if it says nothing or no plain number.
  static func length(_ fields: ResumePoint.Fields) -> Int? {
    fields("content-length").first.flatMap(ResumePoint.number)
  }
}
