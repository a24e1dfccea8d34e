/// Inflates the compressed messages of one direction of a WebSocket connection (RFC 7692, section 7.2.2).
///
/// ```
///   payload --- the last fragment is used up ---> tail --- an empty stored block ends ---.
///     ^  |                                                                               |
///     |  '--- the last fragment is used up, between two blocks ---.                      |
///     |                                                           v                      v
///     '------------------- the next message ------------------- messageEnded <-----------'
/// ```
///
/// The inflater keeps no final output: a fragment may give a thousand times as many bytes, so the caller brings a
/// buffer and calls again as long as there is more. A message that exceeds the caller's limit fails at its first byte
/// too many; the rest is not inflated.
///
/// A block with the BFINAL bit ends a deflate stream within a message (section 7.2.1). The next block begins at the
/// next byte, and may refer back across that end: the agreement on the window has no exception for such blocks.
///
/// A message that ends between two blocks, on a byte boundary, is complete without the tail. Section 7.2.1 does not
/// allow such messages, but they have one meaning only: an empty payload where section 7.2.3.6 asks for one byte, a
/// last block with BFINAL and without the byte that section 7.2.3.4 puts behind it, and a tail that was not removed.
///
/// Memory: 0 bytes before the first message, and between messages if the peer does not take over its context. Otherwise
/// 7 KiB and the window (2^`windowBits` bytes), 39 KiB for the greatest (counted with zlib 1.2.13).
///
/// After an error the value must not be used any more: the connection has failed.
///
/// `@unchecked Sendable`: a value has one owner, on any thread, and zlib's memory belongs to it alone.
package struct MessageInflater: ~Copyable, @unchecked Sendable {
  package enum Progress: Hashable, Sendable {
    /// The fragment is used up, and all of its output has been written. The message has further fragments.
    case needsInput
    /// Output may remain. Call again, with the rest of the fragment and with free room.
    case hasMore
    /// The message is complete, and all of its output has been written.
    case messageEnded
  }

  private let windowBits: Int
  private let takesOver: Bool
  private let limits: CodingLimits

  /// The stream, or `nil` before the first byte that needs it.
  private var inflater: Inflater?
  /// Whether the bytes so far end between two blocks, and are whole bytes. Then the message may end here.
  private var isBetweenBlocks = true
  /// Number of bytes of the current message that have been inflated.
  package private(set) var messageBytesIn: UInt64 = 0
  /// Number of bytes of output of the current message.
  package private(set) var messageBytesOut: UInt64 = 0

  /// Creates an inflater.
  ///
  /// - Parameters:
  ///   - windowBits: The window of the peer's compressor: `server_max_window_bits` in a client, 15 if none was agreed.
  ///   - takesOver: Whether a message may refer back to messages before it: `false` if the peer has promised
  ///     `server_no_context_takeover` (in a client).
  /// - Throws: `internalInconsistency` if `windowBits` is not among ``MessageDeflate/windowBits``.
  package init(windowBits: Int, takesOver: Bool, limits: CodingLimits = CodingLimits()) throws(CodingError) {
    guard MessageDeflate.windowBits ~= windowBits else { throw .internalInconsistency(zlib: 0) }
    self.windowBits = windowBits
    self.takesOver = takesOver
    self.limits = limits
  }

  /// Inflates bytes of a fragment from `consumed` on, and appends their output to `output`.
  ///
  /// - Parameters:
  ///   - isLast: Whether the fragment is the message's last one.
  ///   - messageBytesMax: Maximum number of bytes of the whole message.
  /// - Throws: `peerSentMessageTooLong` if the message has more bytes than `messageBytesMax`, of which `output` then
  ///   has at most one too many; `peerSentBomb` if it grows by more than the limits permit; other errors of the peer.
  package mutating func inflate(
    _ fragment: Span<UInt8>, consumed: inout Int, isLast: Bool, atMost messageBytesMax: Int,
    into output: inout OutputRawSpan
  ) throws(CodingError) -> Progress {
    guard 0...fragment.count ~= consumed else { throw .internalInconsistency(zlib: 0) }
    // A fragment without a byte needs no stream, and neither does a message of such fragments.
    if consumed == fragment.count, inflater == nil {
      guard isLast else { return .needsInput }
      endMessage()
      return .messageEnded
    }
    var inflater = try takeInflater()
    guard try run(&inflater, fragment, &consumed, messageBytesMax, &output) else {
      self.inflater = consume inflater
      return .hasMore
    }
    if isLast, !isBetweenBlocks { try finish(&inflater, &output) }
    // Without takeover, the next message begins a new stream.
    if !isLast || takesOver { self.inflater = consume inflater }
    guard isLast else { return .needsInput }
    endMessage()
    return .messageEnded
  }

  /// Inflates a whole fragment, and appends its output to an array.
  ///
  /// - Parameters:
  ///   - isLast: Whether the fragment is the message's last one.
  ///   - messageBytesMax: Maximum number of bytes of the whole message. The array gets no byte beyond it.
  /// - Returns: Whether the message is complete.
  @discardableResult
  package mutating func inflate(
    _ fragment: Span<UInt8>, isLast: Bool, atMost messageBytesMax: Int, appendingTo output: inout [UInt8]
  ) throws(CodingError) -> Bool {
    var consumed = 0
    var progress = Progress.hasMore
    while progress == .hasMore {
      // Text often shrinks to a quarter.
      let (wanted, isHuge) = (fragment.count - consumed).multipliedReportingOverflow(by: 4)
      let room = isHuge ? Self.stepBytes : min(max(wanted, 1 << 8), Self.stepBytes)
      progress = try inflate(
        fragment, consumed: &consumed, isLast: isLast, atMost: messageBytesMax, appendingTo: &output, room: room)
    }
    return progress == .messageEnded
  }

  /// Inflates one step, and appends at most `room` bytes to an array, which gets no byte beyond `messageBytesMax`.
  package mutating func inflate(
    _ fragment: Span<UInt8>, consumed: inout Int, isLast: Bool, atMost messageBytesMax: Int,
    appendingTo output: inout [UInt8], room: Int
  ) throws(CodingError) -> Progress {
    var progress = Progress.needsInput
    try output.append(adding: room) { room throws(CodingError) in
      progress = try inflate(fragment, consumed: &consumed, isLast: isLast, atMost: messageBytesMax, into: &room)
    }
    return progress
  }

  /// Maximum of output of one step into an array, in bytes.
  package static let stepBytes = 64 << 10

  private mutating func takeInflater() throws(CodingError) -> Inflater {
    if let inflater = inflater.take() { return inflater }
    isBetweenBlocks = true
    return try Inflater(rawWindowBits: windowBits)
  }

  /// Inflates the fragment.
  ///
  /// - Returns: Whether it is used up and all of its output has been written; if not, the output is full.
  private mutating func run(
    _ inflater: inout Inflater, _ fragment: Span<UInt8>, _ consumed: inout Int, _ messageBytesMax: Int,
    _ output: inout OutputRawSpan
  ) throws(CodingError) -> Bool {
    let bytesMax = UInt64(max(messageBytesMax, 0))
    while output.freeCapacity > 0 {
      guard messageBytesOut <= bytesMax else { throw .peerSentMessageTooLong }
      let before = (consumed, output.byteCount)
      // One byte too many is enough to know that the message is too long.
      let most = Int(clamping: bytesMax - messageBytesOut)
      let outcome = try inflater.run(
        fragment, consumed: &consumed, into: &output, atMost: most == .max ? most : most + 1)
      messageBytesIn += UInt64(consumed - before.0)
      messageBytesOut += UInt64(output.byteCount - before.1)
      // A run that consumes and produces nothing leaves the position as it was.
      let isIdle = before == (consumed, output.byteCount)
      isBetweenBlocks = inflater.isBetweenBlocks || isIdle && isBetweenBlocks
      guard messageBytesOut <= bytesMax else { throw .peerSentMessageTooLong }
      guard limits.permitsMessage(messageBytesOut, from: messageBytesIn) else { throw .peerSentBomb }
      switch outcome {
      case .invalid: throw .peerSentInvalidMessage
      case .ended:
        // Section 7.2.1: a block with BFINAL, padded to a byte boundary. The next block follows.
        try inflater.resetKeepingWindow()
        isBetweenBlocks = true
        if consumed == fragment.count { return true }
      case .going: if consumed == fragment.count, output.freeCapacity > 0 { return true }
      }
    }
    return false
  }

  /// Appends the tail to the payload, all of whose output has been written.
  ///
  /// The tail has to end an empty stored block whose header is at the end of the payload. In every other place it means
  /// something else: then the payload has been cut off.
  private mutating func finish(_ inflater: inout Inflater, _ output: inout OutputRawSpan) throws(CodingError) {
    let before = output.byteCount
    let tail = MessageDeflate.tail
    var consumed = 0
    let outcome = try inflater.run(tail.span, consumed: &consumed, into: &output, atMost: 1)
    guard consumed == tail.count, output.byteCount == before else { throw .peerSentTruncatedMessage }
    switch outcome {
    case .invalid: throw .peerSentTruncatedMessage
    case .ended:
      // The empty block had the BFINAL bit.
      try inflater.resetKeepingWindow()
    case .going: guard inflater.isBetweenBlocks else { throw .peerSentTruncatedMessage }
    }
    isBetweenBlocks = true
  }

  private mutating func endMessage() {
    messageBytesIn = 0
    messageBytesOut = 0
  }
}
