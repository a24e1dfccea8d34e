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
