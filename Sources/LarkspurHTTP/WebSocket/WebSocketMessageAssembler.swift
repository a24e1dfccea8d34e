import LarkspurBytes

/// The kind of a message (RFC 6455 5.6).
package enum WebSocketMessageKind: Hashable, Sendable {
  /// UTF-8.
  case text
  case binary
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
/// nothing, every further call for the message throws that error, and the owner passes it to `WebSocketMachine.failed`.
/// A message whose size is known from its only frame costs one allocation.
package struct WebSocketMessageAssembler: Sendable {
  /// Maximum size in bytes of the memory that is reserved for a size that a peer only announces. Larger messages grow
  /// with the bytes that arrive. Without this limit, a header of ten bytes could demand all memory.
  package static let reservationBytesMax = 16 << 20

  /// Maximum size of a message in bytes. Without this limit, a message that never ends uses up the memory.
  package var messageBytesMax: Int
  private var kind = WebSocketMessageKind.binary
  private var bytes: [UInt8] = []
  private var validator = UTF8Validator()
  /// The error of the current message.
  private var failure: WebSocketError?

  package init(messageBytesMax: Int) {
    self.messageBytesMax = messageBytesMax
  }

  /// Starts a message, by `WebSocketMachine.Action.startMessage`.
  ///
  /// - Parameter byteCount: The size of the message if it is known, or else `nil`.
  package mutating func start(_ kind: WebSocketMessageKind, byteCount: Int?) {
    self.kind = kind
    bytes = []
    validator = UTF8Validator()
    failure = nil
    if let byteCount, byteCount > 0, byteCount <= min(messageBytesMax, Self.reservationBytesMax) {
      bytes.reserveCapacity(byteCount)
    }
  }

  /// Appends bytes to the message.
  ///
  /// - Throws: `messageTooBig` or `invalidUTF8`.
  package mutating func append(_ piece: Span<UInt8>) throws(WebSocketError) {
    if let failure { throw failure }
    let room = max(max(messageBytesMax, 0) - bytes.count, 0)
    // Text in front of the limit is checked before the limit, so that the error does not depend on the pieces.
    if kind == .text, !validator.accept(piece.extracting(first: min(piece.count, room))) { throw fail(.invalidUTF8) }
    guard piece.count <= room else { throw fail(.messageTooBig(limit: messageBytesMax)) }
    bytes.append(copying: piece)
  }

  /// Ends the message and hands it over.
  ///
  /// - Throws: The error of an earlier piece, or `invalidUTF8` if a text ends within a character.
  package mutating func finish() throws(WebSocketError) -> WebSocketMessage {
    if let failure { throw failure }
    guard kind == .binary || validator.isComplete else { throw fail(.invalidUTF8) }
    let whole = bytes
    bytes = []
    return WebSocketMessage(kind, whole)
  }

  /// Drops the message.
  private mutating func fail(_ error: WebSocketError) -> WebSocketError {
    bytes = []
    failure = error
    return error
  }
}
