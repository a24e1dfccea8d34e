/// The limits of an upload that a server announces in `Upload-Limit` (draft 10, section 4.1.4). `nil` is no limit.
package struct UploadLimits: Hashable, Sendable {
  /// Maximum size of the whole representation in bytes.
  package var maxSize: Int?
  /// Minimum size of the whole representation in bytes.
  package var minSize: Int?
  /// Maximum size in bytes of the content of one request.
  package var maxAppendSize: Int?
  /// Minimum size in bytes of the content of one request. The request that completes the upload may be smaller.
  package var minAppendSize: Int?
  /// Remaining lifetime of the upload resource in seconds, counted from the response.
  package var maxAge: Int?

  package init(
    maxSize: Int? = nil, minSize: Int? = nil, maxAppendSize: Int? = nil, minAppendSize: Int? = nil, maxAge: Int? = nil
  ) {
    self.maxSize = maxSize
    self.minSize = minSize
    self.maxAppendSize = maxAppendSize
    self.minAppendSize = minAppendSize
    self.maxAge = maxAge
  }

  /// Reads the field's lines.
  ///
  /// Unknown members are ignored. A known member that is no non-negative Integer makes the whole field ignored, as the
  /// draft demands for other types.
  ///
  /// - Returns: The limits, or `nil` if there is no such field or it must be ignored.
  package init?(_ lines: [String]) {
    guard let members = StructuredFieldParser.dictionary(lines) else { return nil }
    for (key, path) in Self.members {
      guard let member = members[key] else { continue }
      guard case .integer(let value) = member, value >= 0 else { return nil }
      self[keyPath: path] = value
    }
  }

  /// The field's text, with the members that are set.
  package var text: String {
    Self.members.compactMap { key, path in self[keyPath: path].map { "\(key)=\($0)" } }.joined(separator: ", ")
  }

  private static var members: [(key: String, path: WritableKeyPath<UploadLimits, Int?>)] {
    [
      ("max-size", \.maxSize), ("min-size", \.minSize), ("max-append-size", \.maxAppendSize),
      ("min-append-size", \.minAppendSize), ("max-age", \.maxAge),
    ]
  }

  /// Whether a representation of this size in bytes is within the limits.
  package func allow(length: Int) -> Bool { length <= maxSize ?? .max && length >= minSize ?? 0 }

  /// Returns the bytes for the next request, or `nil` if no request is within the limits.
  ///
  /// - Parameters:
  ///   - offset: The first byte, from 0 to `length`.
  ///   - most: The maximum that the client sets itself, in bytes.
  package func nextContent(from offset: Int, length: Int, most: Int?) -> Range<Int>? {
    let left = length - offset
    let count = min(left, maxAppendSize ?? .max, max(most ?? .max, minAppendSize ?? 0, 1))
    // The last request is exempt from the minimum.
    guard count == left || count > 0 && count >= minAppendSize ?? 0 else { return nil }
    return offset..<offset + count
  }
}
