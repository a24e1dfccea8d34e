/// The part of a record's file that all versions of its format have:
///
///     4 bytes    the name of the content, for example "LKTR"
///     4          the version of the format
///     8          the size of the content
///     8          a checksum of the bytes before and of the content
///     ...        the content
///
/// Numbers are little-endian. The checksum covers the version, so a changed bit does not count as another version. It does
/// not protect against intentional changes: an attacker with write access to a user's files needs no record to do
/// harm.
public struct RecordEnvelope: Sendable {
  /// The reason for which a file has no content.
  public enum Failure: Error, Hashable, Sendable {
    /// The file is complete and has another version of the format than `known`.
    case otherVersion(UInt32, known: UInt32)
    /// The file is incomplete, has changed, or has another name. The text names what is wrong.
    case damaged(String)
  }

  /// Size in bytes of the head, which precedes the content.
  public static let headCount = 24
  private static let coveredCount = 16

  private let name: [UInt8]
  private let version: UInt32

  /// - Parameter name: Four ASCII characters.
  public init(name: String, version: UInt32) {
    self.name = Array(name.utf8)
    self.version = version
  }

  /// Returns the bytes of a file.
  public func wrapped(_ content: [UInt8]) -> [UInt8] {
    var writer = RecordWriter()
    writer.bytes = name
    writer.number(version)
    writer.number(UInt64(content.count))
    writer.number(Self.checksum(head: writer.bytes, content: content[...]))
    return writer.bytes + content
  }

  /// Reads the content of a file. The bytes are untrusted.
  public func content(of file: [UInt8]) throws(Failure) -> ArraySlice<UInt8> {
    guard file.count >= Self.headCount else { throw .damaged("the head is incomplete") }
    guard file.starts(with: name) else { throw .damaged("the file is no record") }
    var reader = RecordReader(bytes: file[name.count..<Self.headCount])
    guard let found = reader.number(UInt32.self), let count = reader.number(UInt64.self),
      let sum = reader.number(UInt64.self)
    else { throw .damaged("the head is incomplete") }
    let content = file[Self.headCount...]
    guard count == UInt64(content.count) else {
      throw .damaged("the content has \(content.count) bytes, and should have \(count)")
    }
    guard sum == Self.checksum(head: Array(file[..<Self.coveredCount]), content: content) else {
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
