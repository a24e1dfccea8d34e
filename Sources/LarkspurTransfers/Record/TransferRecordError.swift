/// The reason for which bytes are not a record, or a value cannot be written as one.
public enum TransferRecordError: Error, Hashable, Sendable {
  /// Another version of Larkspur has written the record.
  case otherVersion(UInt32)
  /// The bytes are incomplete, have changed, or are no record. The text names what is wrong.
  case damaged(String)
  /// A part of the value is not possible. The text names the part.
  case invalid(String)
  /// The record has more bytes than `TransferRecord.bytesMax`.
  case tooLarge(Int)
}

extension TransferRecordError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .otherVersion(let found):
      let age = found < TransferRecord.formatVersion ? "an earlier" : "a later"
      return """
        the record has format \(found), which \(age) version of Larkspur has written; this version reads format \
        \(TransferRecord.formatVersion)
        """
    case .damaged(let reason): return "the record is damaged: \(reason)"
    case .invalid(let part): return "the record cannot be written: \(part) is not valid"
    case .tooLarge(let count):
      return "the record has \(count) bytes, and may have \(TransferRecord.bytesMax)"
    }
  }
}
