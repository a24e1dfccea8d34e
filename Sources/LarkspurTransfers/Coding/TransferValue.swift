import LarkspurBytes

/// A value that is kept on a disk or travels to another process, and the rules that it keeps. A value that breaks one is
/// not written, and is damaged if it is read.
package protocol TransferValue: Codable {
  /// The part that breaks a rule, or `nil` if the value is valid.
  var invalidPart: String? { get }
}

extension TransferValue {
  /// Returns the value in the form of `TransferEncoder`, after the bytes of a head.
  ///
  /// - Throws: `invalid`.
  package func bytes(after head: [UInt8] = []) throws(TransferValueError) -> [UInt8] {
    if let part = invalidPart { throw .invalid(part) }
    return try TransferEncoder.bytes(of: self, after: head)
  }

  /// Returns the value after a name and the version of its form.
  package func bytes(name: [UInt8] = [], version: UInt32) throws(TransferValueError) -> [UInt8] {
    var writer = RecordWriter()
    writer.bytes = name
    writer.number(version)
    return try bytes(after: writer.bytes)
  }

  /// Reads a value that stands after a name and the version of its form. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`.
  package init(bytes: [UInt8], name: [UInt8] = [], version: UInt32) throws(TransferValueError) {
    guard bytes.starts(with: name) else { throw .damaged("the name is missing") }
    var reader = RecordReader(bytes: bytes.dropFirst(name.count))
    guard let found = reader.number(UInt32.self) else { throw .damaged("the version is missing") }
    guard found == version else { throw .otherVersion(found, known: version) }
    try self.init(bytes: bytes.dropFirst(name.count + MemoryLayout<UInt32>.size))
  }

  /// Reads a value that has all of the bytes. The bytes are untrusted.
  ///
  /// - Throws: `damaged`.
  package init(bytes: ArraySlice<UInt8>) throws(TransferValueError) {
    self = try TransferDecoder.value(Self.self, from: bytes)
    if let part = invalidPart { throw .damaged("\(part) is not valid") }
  }
}

/// The reason for which bytes are no record, message or settings, or such a value cannot be written.
public enum TransferValueError: Error, Hashable, Sendable {
  /// Another version of Larkspur has written the bytes. This version reads the format `known` only.
  case otherVersion(UInt32, known: UInt32)
  /// The bytes are incomplete, have changed, or are no value. The text names what is wrong.
  case damaged(String)
  /// A part of the value is not possible. The text names the part.
  case invalid(String)
  /// The value has more bytes than `max`.
  case tooLarge(Int, max: Int)
}

extension TransferValueError {
  var isOfOtherVersion: Bool { if case .otherVersion = self { true } else { false } }
}

extension TransferValueError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .otherVersion(let found, let known):
      "\(found < known ? "an earlier" : "a later") Larkspur uses version \(found) of the form; this one reads version \(known)"
    case .damaged(let reason): "the bytes are damaged: \(reason)"
    case .invalid(let part): "the value cannot be written: \(part) is not valid"
    case .tooLarge(let count, let max): "the value has \(count) bytes, and may have \(max)"
    }
  }
}

/// The part of a record's file that all versions of the format have:
///
///     4 bytes    the name of the content: "LKTR" for a task, "LKTP" for a session
///     4          the version of the format
///     8          the size of the content
///     8          a checksum of the bytes before and of the content
///     ...        the content
///
/// Numbers are little-endian. The checksum covers the version, so a changed bit does not count as another version. It does
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
