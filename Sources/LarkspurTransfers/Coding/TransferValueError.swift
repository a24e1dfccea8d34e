/// The reason for which bytes are not a value of the wing (a record, a message, settings), or a value cannot be written.
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
      "\(found < known ? "an earlier" : "a later") version of Larkspur uses format \(found), and this version format \(known)"
    case .damaged(let reason): "the bytes are damaged: \(reason)"
    case .invalid(let part): "the value cannot be written: \(part) is not valid"
    case .tooLarge(let count, let max): "the value has \(count) bytes, and may have \(max)"
    }
  }
}
