import LarkspurBytes

/// The bytes of a representation that a response has, as its head states them (RFC 9110 14.4, 15.3.7, 15.5.17).
///
/// `Content-Range` has a meaning with 206 and 416 only, so a 200 with this field contradicts itself, unless the range
/// is the whole. Servers that send a tail with 200 mean the range.
public enum BodyExtent: Hashable, Sendable {
  /// A 200 or 203 with all bytes. `count` is the total of a `Content-Range`, or `nil` if there is none.
  case whole(count: Int?)
  /// A 206 with one range, whose length is that of `Content-Length`, if there is one.
  case part(ContentRange)
  /// A 416. `total` is the size of the representation in bytes, or `nil` if the response has no `Content-Range`.
  case nothing(total: Int?)
  /// A `Content-Range` of a 200, 203 or 416 that cannot be read, has another unit than bytes, stands there more than
  /// once, or begins at 0 without a total.
  case unclear
  /// Several ranges, a 206 that does not state its range, a 200 or 203 with a part, or two different lengths.
  case contradiction
  /// Another status: the body has no bytes of the representation.
  case other

  public init(status: Int, _ fields: ResumePoint.Fields) {
    guard [200, 203, 206, 416].contains(status) else {
      self = .other
      return
    }
    let texts = fields("content-range")
    let range = texts.count == 1 ? ContentRange(texts[0]) : nil
    if status == 416 {
      let total = texts.count == 1 ? ContentRange.total(ofUnsatisfied: texts[0]) : nil
      self = texts.isEmpty || total != nil ? .nothing(total: total) : .unclear
    } else if Self.isMultipart(fields) || range.map({ $0.bytes.count != Self.length(fields) ?? $0.bytes.count }) == true
    {
      self = .contradiction
    } else if status == 206 {
      self = range.map(Self.part) ?? .contradiction
    } else if let range {
      let isStart = range.bytes.lowerBound == 0 && range.total == nil
      self = range.isWhole ? .whole(count: range.total) : isStart ? .unclear : .contradiction
    } else {
      self = texts.isEmpty ? .whole(count: nil) : .unclear
    }
  }

  /// Whether the body has several ranges, each with its own head (RFC 9110 14.6).
  private static func isMultipart(_ fields: ResumePoint.Fields) -> Bool {
    fields("content-type").contains { value in
      String(value.prefix { $0 != ";" && $0 != " " && $0 != "\t" }).equalsIgnoringCase("multipart/byteranges")
    }
  }

  /// Reads the first `Content-Length`.
  ///
  /// - Returns: The number of bytes, or `nil` if there is no such field or it is not a plain number.
  static func length(_ fields: ResumePoint.Fields) -> Int? {
    fields("content-length").first.flatMap(ContentRange.number)
  }
}
