import LarkspurBytes

/// A record as the bytes of a file, which are untrusted when they are read.
extension DownloadRecord {
  /// The version of the format. Every change of the parts or of their meaning gets a new one.
  private static let formatVersion: UInt32 = 1
  package static let envelope = RecordEnvelope(name: "LKDL", version: formatVersion)
  /// Maximum number of sources.
  package static let sourcesMax = 64
  /// Maximum size of a source's URL and validator together, and of the coding, in bytes.
  package static let sourceBytesMax = 8 << 10
  /// Maximum number of ranges.
  package static let rangesMax = 65_536
  /// Maximum size of a record's file in bytes, which no record within the other limits has.
  package static let bytesMax = 2 << 20

  /// Returns the bytes of the record's file. Sources beyond the limits are left out, and so are ranges: their bytes are
  /// fetched again.
  ///
  /// - Returns: `nil` if there is no source within the limits, or the record contradicts itself.
  package func encoded() -> [UInt8]? {
    var record = self
    record.sources = Array(sources.filter(\.isValid).prefix(Self.sourcesMax))
    let ranges = kept.ranges.prefix(Self.rangesMax)
    record.kept = ByteRanges(Array(ranges)) ?? ByteRanges()
    guard record.isValid else { return nil }
    var writer = RecordWriter()
    writer.number(UInt32(record.sources.count))
    for source in record.sources {
      writer.text(source.url)
      writer.text(source.validator)
    }
    // A size has at most 63 bits.
    writer.number(total.map(UInt64.init) ?? .max)
    writer.optional(coding)
    writer.number(UInt32(ranges.count))
    for range in ranges {
      writer.number(UInt64(range.lowerBound))
      writer.number(UInt64(range.upperBound))
    }
    writer.number(inode)
    return Self.envelope.wrapped(writer.bytes)
  }

  /// Reads a record's file. A value has one form: all that can be read is written as these bytes.
  ///
  /// - Returns: `nil` for a file that no version of this format has written.
  package init?(file: [UInt8]) {
    guard file.count <= Self.bytesMax, let content = try? Self.envelope.content(of: file) else { return nil }
    var reader = RecordReader(bytes: content)
    guard let sourceCount = reader.number(UInt32.self), sourceCount <= Self.sourcesMax else { return nil }
    sources = []
    for _ in 0..<sourceCount {
      guard let url = reader.text(), let validator = reader.text() else { return nil }
      sources.append(Source(url: url, validator: validator))
    }
    guard let total = reader.number(UInt64.self), let coding = reader.optional(),
      let rangeCount = reader.number(UInt32.self), rangeCount <= Self.rangesMax
    else { return nil }
    var ranges: [Range<Int>] = []
    for _ in 0..<rangeCount {
      guard let first = reader.number(UInt64.self).flatMap({ Int(exactly: $0) }),
        let end = reader.number(UInt64.self).flatMap({ Int(exactly: $0) }), first < end
      else { return nil }
      ranges.append(first..<end)
    }
    guard let kept = ByteRanges(ranges), let inode = reader.number(UInt64.self), reader.isAtEnd,
      total == .max || total <= UInt64(Int.max)
    else { return nil }
    self.total = Int(exactly: total)
    self.coding = coding.text
    self.kept = kept
    self.inode = inode
    guard isValid else { return nil }
  }

  private var isValid: Bool {
    1...Self.sourcesMax ~= sources.count && sources.allSatisfy(\.isValid)
      && coding.map { !$0.isEmpty && $0.utf8.count <= Self.sourceBytesMax && Self.isLine($0) } ?? true
      && total.map { 0 <= $0 && kept.end <= $0 } ?? true
  }

  /// Whether the text can be the value of a field (RFC 9110 5.5): validators are sent.
  fileprivate static func isLine(_ text: String) -> Bool { text.utf8.allSatisfy(Scan.isFieldValueByte) }
}

extension DownloadRecord.Source {
  fileprivate var isValid: Bool {
    !url.isEmpty && !validator.isEmpty && DownloadRecord.isLine(url) && DownloadRecord.isLine(validator)
      && url.utf8.count + validator.utf8.count <= DownloadRecord.sourceBytesMax
  }
}
