/// The reason why a conversation failed after its handshake.
package enum WebSocketError: Error, Hashable, Sendable {
  // Violations by the peer.

  case frameInvalid(WebSocketFrameError)
  /// The payload of a Close is one byte long.
  case closeTooShort
  /// The code of a Close may not be sent.
  case closeCodeInvalid(UInt16)
  /// A text message, or the reason of a Close, is not UTF-8.
  case invalidUTF8
  /// The payload of a compressed message cannot be decompressed.
  case compressionInvalid

  // Limits of this side.

  case messageTooBig(limit: Int)
  /// The owner does not take messages of this kind.
  case dataUnsupported

  // A lost connection.

  /// The stream ended or broke before the closing handshake was complete.
  case endedWithoutClose
  /// No byte came in time after a ping.
  case pongTimedOut
  /// The peer did not answer a Close in time.
  case closeTimedOut

  // Failures of this side.

  case internalInconsistency

  /// The code of the Close that this side sends, or `nil` if the connection is lost and no Close is sent (RFC 6455
  /// 7.4.1).
  package var closeCode: UInt16? {
    switch self {
    case .frameInvalid, .closeTooShort, .closeCodeInvalid: 1002
    case .dataUnsupported: 1003
    case .invalidUTF8, .compressionInvalid: 1007
    case .messageTooBig: 1009
    case .internalInconsistency: 1011
    case .endedWithoutClose, .pongTimedOut, .closeTimedOut: nil
    }
  }
}

extension WebSocketError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .frameInvalid(let error): "the peer breaks the protocol: \(error)"
    case .closeTooShort: "the peer breaks the protocol: its Close has a payload of one byte"
    case .closeCodeInvalid(let code): "the peer breaks the protocol: its Close has the code \(code)"
    case .invalidUTF8: "the peer sent text that is not UTF-8"
    case .compressionInvalid: "the peer sent a message that cannot be decompressed"
    case .messageTooBig(let limit): "a message has more than \(limit) bytes"
    case .dataUnsupported: "messages of this kind are not supported"
    case .endedWithoutClose: "the connection ended without a closing handshake"
    case .pongTimedOut: "the peer did not answer a ping in time"
    case .closeTimedOut: "the peer did not answer the closing handshake in time"
    case .internalInconsistency: "internal inconsistency"
    }
  }
}
