import LarkspurBytes

/// The kind of a message (RFC 6455 5.6).
package enum WebSocketMessageKind: Hashable, Sendable {
  /// UTF-8.
  case text
  case binary

  package var opcode: WebSocketOpcode { self == .text ? .text : .binary }
}

/// A complete message. The bytes of a text are valid UTF-8.
package struct WebSocketMessage: Hashable, Sendable {
  package var kind: WebSocketMessageKind
  package var bytes: [UInt8]

  package init(_ kind: WebSocketMessageKind, _ bytes: [UInt8]) {
    self.kind = kind
    self.bytes = bytes
  }
}

/// Collects the pieces of a message, after decompression.
///
/// The assembler checks the limit before it keeps a piece, and UTF-8 as the pieces come. After an error it holds
/// nothing, and the owner passes the error to `WebSocketMachine.failed`. A message whose size is known from its only
/// frame costs one allocation.
package struct WebSocketMessageAssembler: Sendable {
  /// Maximum size in bytes of the memory that is reserved for a size that a peer only announces. Larger messages grow
  /// with the bytes that arrive. Without this limit, a header of ten bytes could demand all memory.
  package static let reservationBytesMax = 16 << 20

  /// Maximum size of a message in bytes. Without this limit, a message that never ends uses up the memory.
  package var messageBytesMax: Int
  private var kind = WebSocketMessageKind.binary
  private var bytes: [UInt8] = []
  private var validator = UTF8Validator()

  package init(messageBytesMax: Int) {
    self.messageBytesMax = messageBytesMax
  }

  /// Number of bytes of the message so far.
  package var byteCount: Int { bytes.count }

  /// Begins a message, as `WebSocketMachine.Action.beginMessage` says.
  ///
  /// - Parameter byteCount: The size of the message if it is known, or else `nil`.
  package mutating func begin(_ kind: WebSocketMessageKind, byteCount: Int?) {
    self.kind = kind
    bytes = []
    validator = UTF8Validator()
    if let byteCount, byteCount > 0, byteCount <= min(messageBytesMax, Self.reservationBytesMax) {
      bytes.reserveCapacity(byteCount)
    }
  }

  /// Appends bytes to the message.
  ///
  /// - Throws: `messageTooBig` or `invalidUTF8`.
  package mutating func append(_ piece: Span<UInt8>) throws(WebSocketError) {
    let room = max(max(messageBytesMax, 0) - bytes.count, 0)
    // Text in front of the limit is checked before the limit, so that the error does not depend on the pieces.
    if kind == .text, !validator.accept(piece.extracting(first: min(piece.count, room))) {
      bytes = []
      throw .invalidUTF8
    }
    guard piece.count <= room else {
      bytes = []
      throw .messageTooBig(limit: messageBytesMax)
    }
    bytes.append(copying: piece)
  }

  /// Ends the message and hands it over.
  ///
  /// - Throws: `invalidUTF8` if a text ends within a character.
  package mutating func finish() throws(WebSocketError) -> WebSocketMessage {
    let whole = bytes
    bytes = []
    guard kind == .binary || validator.isComplete else { throw .invalidUTF8 }
    return WebSocketMessage(kind, whole)
  }
}
