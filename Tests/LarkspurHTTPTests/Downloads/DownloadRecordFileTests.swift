import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct DownloadRecordFileTests {
  private static func record(
    _ sources: [DownloadRecord.Source] = [.init(url: "http://example.org/file", validator: "\"v1\"")],
    total: Int? = 100, coding: String? = nil, _ kept: [Range<Int>] = [0..<10, 20..<35], inode: UInt64 = 7
  ) throws -> DownloadRecord {
    DownloadRecord(
      sources: sources, total: total, coding: coding, kept: try #require(ByteRanges(kept)), inode: inode)
  }

  private static func records() throws -> [DownloadRecord] {
    let mirrors = ["http://a.example/f", "https://b.example/ü"].map {
      DownloadRecord.Source(url: $0, validator: "Sat, 01 Jan 2022 00:00:00 GMT")
    }
    return [
      try record(), try record(mirrors, total: nil, coding: "gzip", [], inode: .max), try record(total: 0, []),
      try record(total: .max, [0..<Int.max]), try record(total: .max, [1..<2, Int.max - 1..<Int.max]),
    ]
  }

  @Test func recordsAreReadAsTheyWereWritten() throws {
    for record in try Self.records() {
      let bytes = try #require(record.encoded())
      #expect(DownloadRecord(file: bytes) == record)
    }
  }

  /// The bytes of a version are read by later ones.
  @Test func theFormatStays() throws {
    let bytes = try #require(try Self.record().encoded())
    let content: [UInt8] =
      [1, 0, 0, 0, 23, 0, 0, 0] + Array("http://example.org/file".utf8) + [4, 0, 0, 0] + Array("\"v1\"".utf8)
      + [100, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]
      + [0, 10, 20, 35, 7].flatMap { [$0, 0, 0, 0, 0, 0, 0, 0] }
    #expect(Array(bytes[RecordEnvelope.headCount...]) == content)
    #expect(Array(bytes.prefix(8)) == Array("LKDL".utf8) + [1, 0, 0, 0])
  }

  @Test func damageAtEachByteIsFound() throws {
    for record in try Self.records() {
      let bytes = try #require(record.encoded())
      for count in bytes.indices { #expect(DownloadRecord(file: Array(bytes[..<count])) == nil, "\(count) bytes") }
      #expect(DownloadRecord(file: bytes + [0]) == nil)
      for index in bytes.indices {
        for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] as [UInt8] {
          var changed = bytes
          changed[index] ^= change
          #expect(DownloadRecord(file: changed) == nil, "byte \(index), bits \(change)")
        }
      }
    }
  }

  private static func content(
    _ sources: [(String, String)] = [("u", "v")], sourceCount: UInt32? = nil, total: UInt64 = 100,
    coding: String? = nil,
    ranges: [(UInt64, UInt64)] = [], rangeCount: UInt32? = nil
  ) -> [UInt8] {
    var writer = RecordWriter()
    writer.number(sourceCount ?? UInt32(sources.count))
    for (url, validator) in sources {
      writer.text(url)
      writer.text(validator)
    }
    writer.number(total)
    writer.optional(coding)
    writer.number(rangeCount ?? UInt32(ranges.count))
    for (first, end) in ranges {
      writer.number(first)
      writer.number(end)
    }
    writer.number(UInt64(1))
    return writer.bytes
  }

  /// Content with a right checksum is untrusted, too.
  @Test func contentThatNoWriterWrites() {
    let long = String(repeating: "x", count: DownloadRecord.sourceBytesMax)
    let high = UInt64(Int.max) + 1
    func isRead(_ content: [UInt8]) -> Bool { DownloadRecord(file: DownloadRecord.envelope.wrapped(content)) != nil }
    let most = (0..<UInt64(DownloadRecord.rangesMax)).map { ($0 * 2, $0 * 2 + 1) }
    let allowed: [[UInt8]] = [
      Self.content(), Self.content(total: .max, ranges: [(5, high - 1)]), Self.content(ranges: [(0, 50), (51, 100)]),
      Self.content([(String(long.dropLast()), "v")]),
      Self.content(Array(repeating: ("u", "v"), count: DownloadRecord.sourcesMax)),
      Self.content(total: .max, ranges: most),
      Self.content(coding: long),
    ]
    for (index, content) in allowed.enumerated() { #expect(isRead(content), "\(index)") }
    let refused: [[UInt8]] = [
      Self.content([]), Self.content([("", "v")]), Self.content([("u", "")]),
      Self.content([("u\r\nX: y", "v")]), Self.content([("u", "v\nX: y")]), Self.content([("u", "v\0")]),
      Self.content([(long, "v")]), Self.content(coding: long + "x"), Self.content(coding: ""),
      Self.content(coding: "a\r\n"),
      Self.content(Array(repeating: ("u", "v"), count: DownloadRecord.sourcesMax + 1)),
      Self.content(sourceCount: .max), Self.content(sourceCount: 2), Self.content(rangeCount: .max),
      Self.content(rangeCount: 1), Self.content(total: high), Self.content(total: .max - 1),
      // Empty, backwards, touching, overlapping, out of order, beyond the total, beyond any size.
      Self.content(ranges: [(5, 5)]), Self.content(ranges: [(6, 5)]), Self.content(ranges: [(0, 5), (5, 6)]),
      Self.content(ranges: [(0, 5), (4, 6)]),
      Self.content(ranges: [(8, 9), (0, 5)]), Self.content(ranges: [(0, 101)]),
      Self.content(total: .max, ranges: [(0, high)]),
      Self.content(total: .max, ranges: [(high, high + 1)]), Self.content(total: .max, ranges: [(.max, .max)]),
      Self.content(total: .max, ranges: most + [(1 << 40, 1 << 41)]), Self.content() + [0],
    ]
    for (index, content) in refused.enumerated() { #expect(!isRead(content), "\(index)") }
    #expect(DownloadRecord(file: [UInt8](repeating: 0, count: DownloadRecord.bytesMax + 1)) == nil)
    #expect(DownloadRecord(file: RecordEnvelope(name: "LKDL", version: 2).wrapped(Self.content())) == nil)
    #expect(DownloadRecord(file: RecordEnvelope(name: "LKTR", version: 1).wrapped(Self.content())) == nil)
  }

  /// What does not fit is left out: a record never names more than is there.
  @Test func limitsOfWriting() throws {
    let long = DownloadRecord.Source(url: String(repeating: "x", count: DownloadRecord.sourceBytesMax), validator: "v")
    let bad = DownloadRecord.Source(url: "u", validator: "v\r\nX: y")
    #expect(try Self.record([]).encoded() == nil)
    #expect(try Self.record([long, bad]).encoded() == nil)
    #expect(try Self.record(total: 34).encoded() == nil)
    // The largest record that can be written can be read.
    let good = DownloadRecord.Source(url: String(long.url.dropLast()), validator: "v")
    var record = try Self.record(
      [long, good, bad] + Array(repeating: good, count: DownloadRecord.sourcesMax), total: nil, coding: long.url,
      (0...DownloadRecord.rangesMax).map { $0 * 3..<$0 * 3 + 2 })
    let bytes = try #require(record.encoded())
    record.sources = Array(repeating: good, count: DownloadRecord.sourcesMax)
    record.kept.remove(DownloadRecord.rangesMax * 3..<DownloadRecord.rangesMax * 3 + 2)
    #expect(DownloadRecord(file: bytes) == record)
  }
}
