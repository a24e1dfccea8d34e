import LarkspurBytes

/// The WebSocket frame parser (RFC 6455 5.2): bytes in, positions out.
///
/// Theory of operation. The owner calls `next` with the bytes that are not consumed yet, any number of times, and each
/// call returns one event. A frame is one `frame` event and then at least one `payload` event, of which the last one
/// ends the frame; the payload of an empty frame is one empty range. `needMore` means that all bytes are consumed: the
/// parser keeps what it needs of a header itself, so that the owner keeps nothing. The way the bytes are split between
/// calls changes no event, except where one piece of a payload ends and the next begins.
///
/// ```
///  first -> second --length of 16 or 64 bits--> length --+
///    ^        |                                          |
///    |        +--masked--> mask <--masked----------------+
///    |        |             |                            |
///    |        +-------------+--> payload <---------------+       (event: frame)
///    +------ all of it is read ----|                             (events: payload...)
/// ```
///
/// A header is checked byte by byte, so that an error is found as early as possible. The parser does not depend on what
/// a payload means, and no time. After an error the parser stays failed. Nothing is allocated.
package struct WebSocketFrameParser: Sendable {
  package enum Event: Hashable, Sendable {
    /// All bytes are consumed, and complete no event.
    case needMore
    /// The header of the next frame.
    case frame(WebSocketFrameHeader)
    /// A piece of the payload: a range of the bytes given, masked as it was received. Only the piece of an empty frame
    /// is empty.
    case payload(Range<Int>, endsFrame: Bool)
  }

  private enum State {
    case first, second, length, mask, payload, failed
  }

  private let role: WebSocketRole
  private let allowsCompression: Bool
  private var state = State.first
  /// The error of the state `failed`.
  private var failure = WebSocketFrameError.reservedBits
  /// The header of the current frame, as far as it is known.
  private var header = WebSocketFrameHeader(.continuation, length: 0)
  private var isMasked = false
  /// Number of missing bytes of the length, the mask, or the payload, by the state.
  private var missing = 0
  /// The received bytes of a length.
  private var length: UInt64 = 0
  /// The size in bytes of the length's encoding.
  private var lengthBytes = 0
  /// Whether a fragmented message has begun.
  private var isInMessage = false

  /// - Parameters:
  ///   - role: The side that receives the frames.
  ///   - allowsCompression: Whether permessage-deflate was agreed.
  package init(role: WebSocketRole = .client, allowsCompression: Bool) {
    self.role = role
    self.allowsCompression = allowsCompression
  }

  /// Reads from index `consumed`, and moves it past the bytes of the event.
  ///
  /// - Throws: The error of a frame that breaks the rules; from then on, that error in every call.
  package mutating func next(in bytes: Span<UInt8>, consumed: inout Int) throws(WebSocketFrameError) -> Event {
    do {
      return try step(bytes, &consumed)
    } catch {
      state = .failed
      failure = error
      throw error
    }
  }

  private mutating func step(_ bytes: Span<UInt8>, _ consumed: inout Int) throws(WebSocketFrameError) -> Event {
    consumed = max(consumed, 0)
    if state == .payload { return piece(bytes, &consumed) }
    while consumed < bytes.count {
      let byte = bytes[consumed]
      switch state {
      case .first: try readFirst(byte)
      case .second: try readSecond(byte)
      case .length: try readLength(byte)
      case .mask:
        header.mask = (header.mask ?? 0) << 8 | UInt32(byte)
        missing -= 1
        if missing == 0 { state = .payload }
      case .payload: break
      case .failed: throw failure
      }
      consumed += 1
      if state == .payload {
        missing = header.length
        return .frame(header)
      }
    }
    if state == .failed { throw failure }
    return .needMore
  }

  private mutating func piece(_ bytes: Span<UInt8>, _ consumed: inout Int) -> Event {
    guard missing > 0 else {
      state = .first
      return .payload(consumed..<consumed, endsFrame: true)
    }
    guard consumed < bytes.count else { return .needMore }
    let start = consumed
    consumed += min(missing, bytes.count - start)
    missing -= consumed - start
    if missing == 0 { state = .first }
    return .payload(start..<consumed, endsFrame: missing == 0)
  }

  /// Reads FIN, the reserved bits and the opcode.
  private mutating func readFirst(_ byte: UInt8) throws(WebSocketFrameError) {
    guard byte & 0x30 == 0 else { throw .reservedBits }
    guard let opcode = WebSocketOpcode(rawValue: byte & 0x0f) else { throw .opcodeReserved(byte & 0x0f) }
    let isFinal = byte & 0x80 != 0
    let isCompressed = byte & 0x40 != 0
    if opcode.isControl {
      guard isFinal else { throw .controlFragmented }
    } else {
      // RFC 6455 5.4: the fragments of one message do not mix with those of another.
      guard opcode != .continuation || isInMessage else { throw .continuationUnexpected }
      guard opcode == .continuation || !isInMessage else { throw .messageIncomplete }
      isInMessage = !isFinal
    }
    // RFC 7692 6: RSV1 stands on the first frame of a message, and RFC 7692 6.1: not on control frames.
    guard !isCompressed || allowsCompression && (opcode == .text || opcode == .binary) else {
      throw .compressionUnexpected(opcode)
    }
    header = WebSocketFrameHeader(opcode, isFinal: isFinal, isCompressed: isCompressed, length: 0)
    state = .second
  }

  /// Reads the mask's bit and the first seven bits of the length.
  private mutating func readSecond(_ byte: UInt8) throws(WebSocketFrameError) {
    isMasked = byte & 0x80 != 0
    // RFC 6455 5.1.
    guard !isMasked || role == .server else { throw .maskUnexpected }
    guard isMasked || role == .client else { throw .maskMissing }
    let length = Int(byte & 0x7f)
    guard length > WebSocketFrameHeader.controlBytesMax else { return endLength(length) }
    guard !header.opcode.isControl else { throw .controlTooLong }
    lengthBytes = length == 126 ? 2 : 8
    missing = lengthBytes
    self.length = 0
    state = .length
  }

  private mutating func readLength(_ byte: UInt8) throws(WebSocketFrameError) {
    // RFC 6455 5.2: the most significant bit of a 64-bit length must be 0.
    guard missing < 8 || byte & 0x80 == 0 else { throw .lengthTooLarge }
    length = length << 8 | UInt64(byte)
    missing -= 1
    guard missing == 0 else { return }
    // RFC 6455 5.2: the minimal number of bytes must be used.
    guard length > (lengthBytes == 2 ? UInt64(WebSocketFrameHeader.controlBytesMax) : UInt64(UInt16.max)) else {
      throw .lengthNotMinimal
    }
    endLength(Int(clamping: length))
  }

  private mutating func endLength(_ length: Int) {
    header.length = length
    missing = 4
    state = isMasked ? .mask : .payload
  }
}
