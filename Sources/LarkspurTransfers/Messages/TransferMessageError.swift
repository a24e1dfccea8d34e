/// The reason for which bytes of a peer are no message, or a value cannot be sent as one.
public enum TransferMessageError: Error, Hashable, Sendable {
  /// The peer speaks another version of the protocol.
  case otherVersion(UInt32)
  /// The bytes are no message. The text names what is wrong.
  case damaged(String)
  /// A part of the value cannot be sent. The text names the part.
  case invalid(String)
  /// A message has more bytes than `TransferFrame.bytesMax`.
  case tooLarge(Int)
}

extension TransferMessageError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .otherVersion(let found):
      """
      the peer speaks version \(found) of the protocol for transfers, and this version of Larkspur speaks \
      \(TransferMessage.version)
      """
    case .damaged(let reason): "a message is damaged: \(reason)"
    case .invalid(let part): "a message cannot be sent: \(part) is not valid"
    case .tooLarge(let count): "a message has \(count) bytes, and may have \(TransferFrame.bytesMax)"
    }
  }

  init(_ error: TransferRecordError) {
    switch error {
    case .damaged(let reason): self = .damaged(reason)
    case .invalid(let part): self = .invalid(part)
    case .otherVersion, .tooLarge: self = .damaged("\(error)")
    }
  }
}
