import LarkspurBytes
import LarkspurHTTP

/// Checks the reader of a download's record on any bytes that a disk could deliver.
///
/// The first byte of an input selects what follows: with an even one, the content of the record, to which the oracle adds
/// the head with the checksum; otherwise the whole file.
package enum DownloadRecordOracle {
  /// - Returns: A record beyond the limits, or one that is written as other bytes than it was read from; `nil` if there is
  ///   none.
  package static func finding(in input: [UInt8]) -> String? {
    guard let kind = input.first else { return nil }
    let rest = Array(input.dropFirst())
    let file = kind % 2 == 0 ? DownloadRecord.envelope.wrapped(rest) : rest
    guard let record = DownloadRecord(file: file) else { return nil }
    let end = record.kept.end
    guard !record.sources.isEmpty, record.sources.count <= DownloadRecord.sourcesMax,
      record.kept.ranges.count <= DownloadRecord.rangesMax, record.total ?? end >= end,
      record.kept.gaps(in: 0..<end).allSatisfy({ !$0.isEmpty }), record.kept.count <= end
    else { return "beyond the limits: \(record)" }
    let written = record.encoded()
    return written == file ? nil : "\(record): read from \(file), written as \(written ?? [])"
  }
}
