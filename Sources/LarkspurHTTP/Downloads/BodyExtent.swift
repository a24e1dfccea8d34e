import LarkspurBytes

/// The extent of a representation that a response's body covers, by the head of a 200, or of a 206 without a request
/// for a range.
///
/// `Content-Range` has a meaning with 206 and 416 only (RFC 9110 14.4), so a 200 with this field contradicts itself,
/// unless the range is the whole. Servers that send a tail with 200 mean the range.
public enum BodyExtent: Hashable, Sendable {
  /// All bytes. `count` is the total of a `Content-Range`, or `nil` if there is none.
  case whole(count: Int?)
  /// Not all bytes, or a head that contradicts itself.
  case part
  /// The extent is unknown: a `Content-Range` that cannot be read, has another unit than bytes, stands there more than
  /// once, or begins at 0 without a total.
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
      String(value.prefix { $0 != ";" && $0 != " " && $0 != "\t" }).equalsIgnoringCase("multipart/byteranges")
    }
  }

  /// Reads the first `Content-Length`.
  ///
  /// - Returns: The number of bytes, or `nil` if there is no such field or it is not a plain number.
  static func length(_ fields: ResumePoint.Fields) -> Int? {
    fields("content-length").first.flatMap(ResumePoint.number)
  }
}
