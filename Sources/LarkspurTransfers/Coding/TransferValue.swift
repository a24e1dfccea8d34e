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
  package func bytes(after head: [UInt8] = []) throws(TransferRecordError) -> [UInt8] {
    if let part = invalidPart { throw .invalid(part) }
    return try TransferEncoder.bytes(of: self, after: head)
  }

  /// Reads a value that has all of the bytes. The bytes are untrusted.
  ///
  /// - Throws: `damaged`.
  package init(bytes: ArraySlice<UInt8>) throws(TransferRecordError) {
    self = try TransferDecoder.value(Self.self, from: bytes)
    if let part = invalidPart { throw .damaged("\(part) is not valid") }
  }
}
