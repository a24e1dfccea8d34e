/// The type of a frame (RFC 6455 5.2). The other values are reserved.
package enum WebSocketOpcode: UInt8, Hashable, Sendable, CaseIterable {
  case continuation = 0
  case text = 1
  case binary = 2
  case close = 8
  case ping = 9
  case pong = 10

  /// Whether the frame controls the connection and carries no part of a message (RFC 6455 5.5).
  package var isControl: Bool { rawValue & 8 != 0 }
}

/// The side of a connection. The client masks its frames, and the server does not (RFC 6455 5.1).
package enum WebSocketRole: Hashable, Sendable {
  case client, server
}

/// The header of a frame (RFC 6455 5.2).
package struct WebSocketFrameHeader: Hashable, Sendable {
  package var opcode: WebSocketOpcode
  /// Whether the frame is the last one of its message. Always `true` for a control frame.
  package var isFinal: Bool
  /// Whether the frame begins a compressed message: RSV1 (RFC 7692 6).
  package var isCompressed: Bool
  /// The masking key with its first byte as the most significant one, or `nil` if the payload is not masked.
  package var mask: UInt32?
  /// The size of the payload in bytes.
  package var length: Int

  package init(
    _ opcode: WebSocketOpcode, isFinal: Bool = true, isCompressed: Bool = false, mask: UInt32? = nil, length: Int
  ) {
    self.opcode = opcode
    self.isFinal = isFinal
    self.isCompressed = isCompressed
    self.mask = mask
    self.length = length
  }

  /// Maximum size of a control frame's payload in bytes (RFC 6455 5.5).
  package static let controlBytesMax = 125
}

/// A frame that breaks RFC 6455 or RFC 7692. Each of them fails the connection with close code 1002.
package enum WebSocketFrameError: Error, Hashable, Sendable {
  /// RSV2 or RSV3 is set, which no known extension defines.
  case reservedBits
  /// RSV1 is set although compression was not agreed, or on a frame that does not begin a message.
  case compressionUnexpected(WebSocketOpcode)
  case opcodeReserved(UInt8)
  /// A server masked its frame.
  case maskUnexpected
  /// A client did not mask its frame.
  case maskMissing
  case controlFragmented
  /// The payload of a control frame exceeds 125 bytes.
  case controlTooLong
  /// The length has a shorter encoding.
  case lengthNotMinimal
  /// The most significant bit of a 64-bit length is set.
  case lengthTooLarge
  /// A continuation without a message to continue.
  case continuationUnexpected
  /// A message begins within a fragmented message.
  case messageIncomplete
}

extension WebSocketFrameError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .reservedBits: "a frame has reserved bits set"
    case .compressionUnexpected(let opcode): "a \(opcode) frame is marked as compressed, which is not allowed here"
    case .opcodeReserved(let opcode): "a frame has the reserved opcode \(opcode)"
    case .maskUnexpected: "the server masked a frame"
    case .maskMissing: "the client did not mask a frame"
    case .controlFragmented: "a control frame is fragmented"
    case .controlTooLong: "a control frame has more than \(WebSocketFrameHeader.controlBytesMax) bytes"
    case .lengthNotMinimal: "a frame's length is not encoded in its shortest form"
    case .lengthTooLarge: "a frame's length has more than 63 bits"
    case .continuationUnexpected: "a continuation frame continues no message"
    case .messageIncomplete: "a message begins before the previous one is complete"
    }
  }
}
