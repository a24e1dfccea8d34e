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
  /// Reads the content of a record's file. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`.
  static func content(
    of file: [UInt8], _ envelope: RecordEnvelope
  ) throws(TransferValueError) -> ArraySlice<UInt8> {
    do throws(RecordEnvelope.Failure) {
      return try envelope.content(of: file)
    } catch {
      switch error {
      case .otherVersion(let found, let known): throw .otherVersion(found, known: known)
      case .damaged(let reason): throw .damaged(reason)
      }
    }
  }

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
