import LarkspurBytes

/// The part of a record's file that all versions of the format have:
///
///     4 bytes    the name of the content: "LKTR" for a task, "LKTP" for a session
///     4          the version of the format
///     8          the size of the content
///     8          a checksum of the bytes before and of the content
///     ...        the content
///
/// Numbers are little-endian. The checksum covers the version, so a changed bit is told from another version. It does
/// not protect against intentional changes: an attacker with write access to a user's files needs no journal to do
/// harm.
enum TransferEnvelope {
  static let taskName: [UInt8] = Array("LKTR".utf8)
  static let sessionName: [UInt8] = Array("LKTP".utf8)
  static let headCount = 24
  private static let coveredCount = 16

  static func wrapped(_ content: [UInt8], version: UInt32, name: [UInt8] = taskName) -> [UInt8] {
    var writer = RecordWriter()
    writer.bytes = name
    writer.number(version)
    writer.number(UInt64(content.count))
    writer.number(checksum(head: writer.bytes, content: content[...]))
    return writer.bytes + content
  }

  /// Reads the content of a file.
  ///
  /// - Throws: `otherVersion` if the file is complete and has another version than `version`; `damaged`.
  static func content(
    of file: [UInt8], version: UInt32, name: [UInt8] = taskName
  ) throws(TransferValueError) -> ArraySlice<UInt8> {
    guard file.count >= headCount else { throw .damaged("the head is incomplete") }
    guard file.starts(with: name) else { throw .damaged("the file is no record") }
    var reader = RecordReader(bytes: file[name.count..<headCount])
    guard let found = reader.number(UInt32.self), let count = reader.number(UInt64.self),
      let sum = reader.number(UInt64.self)
    else { throw .damaged("the head is incomplete") }
    let content = file[headCount...]
    guard count == UInt64(content.count) else {
      throw .damaged("the content has \(content.count) bytes, and should have \(count)")
    }
    guard sum == checksum(head: Array(file[..<coveredCount]), content: content) else {
      throw .damaged("the checksum does not match")
    }
    guard found == version else { throw .otherVersion(found, known: version) }
    return content
  }

  private static func checksum(head: [UInt8], content: ArraySlice<UInt8>) -> UInt64 {
    let covered = head + content
    return Checksum.of(covered.span)
  }
}
