import LarkspurBytes

/// The client's side of a WebSocket conversation, from the end of the opening handshake to the end of the connection.
///
/// Theory of operation. The owner parses received bytes with `WebSocketFrameParser`, passes each event to `received`,
/// and carries out each action before the next event: the ranges of `deliver` are those of the event's bytes. The owner
/// writes frames, collects messages with `WebSocketMessageAssembler`, and reports the errors of parser, decompressor
/// and assembler to `failed`. From then on `state.readsFrames` is `false`, and the owner skips what is left of the message,
/// an `endMessage` of the same event included. `deadline` says when to call `timerFired`.
///
/// ```
///            close (write)                    Close received (complete)
///   open -----------------------> closeSent -------------------------+
///    | |                            | |                              |
///    | +--Close received (write, complete), failed (write, fail)--+  |
///    |                              | |                           |  |
///    |                              | +--failed (fail)---------+  |  |
///    |                              |                          v  v  v
///    |                              |                           closing
///    |                              |                              |
///    +--peerClosed, pong time-out---+--peerClosed, time-out        +--peerClosed, time-out
///                 (fail, closeConnection)      |                   |  (closeConnection)
///                                              +-----> closed <----+
/// ```
///
/// In `closing` the conversation is over. The server closes the connection first (RFC 6455 7.1.1), so that the last
/// frames are not lost; until then the owner discards what it receives.
///
/// The machine does not depend on sockets, the clock, masks or compression, and holds no message. It holds the payload
/// of one control frame, and one pong while the socket takes no writes.
///
/// Invariants. There is exactly one of `complete` and `fail`, and behind it exactly one `closeConnection`, which is the
/// last action. At most one Close is written, and no frame behind it except pongs. No message is delivered behind
/// `complete` or `fail`.
package struct WebSocketMachine: Sendable {
  package enum State: Hashable, Sendable, CaseIterable {
    case open
    /// This side has sent its Close. The peer's frames are still read.
    case closeSent
    /// Both sides have sent a Close, or the conversation has failed. Received bytes are discarded.
    case closing
    case closed

    /// Whether messages may be sent. The owner checks this and writes their frames itself.
    package var isOpen: Bool { self == .open }

    /// Whether the owner passes frames on. If not, it discards received bytes.
    package var readsFrames: Bool { self == .open || self == .closeSent }
  }

  /// The side that began the closing handshake.
  package enum Initiator: Hashable, Sendable {
    case local, peer
  }

  package enum Action: Hashable, Sendable {
    /// Write a whole control frame, behind all frames before.
    case write(WebSocketOpcode, payload: [UInt8])
    /// Begin a message. Its size in bytes is known if it has a single frame and is not compressed.
    case startMessage(WebSocketMessageKind, isCompressed: Bool, byteCount: Int?)
    /// Append a range of the event's bytes to the message.
    case deliver(Range<Int>)
    case endMessage
    /// Call the handlers of all pings up to this number, in their order.
    case acknowledgePings(through: UInt64)
    /// Report that the conversation ended with the peer's Close. An incomplete message is dropped.
    case complete(WebSocketClose, startedBy: Initiator)
    /// Report that the conversation failed. An incomplete message is dropped.
    case fail(WebSocketError)
    case closeConnection
  }

  package typealias Actions = [Action]

  package private(set) var state = State.open
  package var settings: WebSocketSettings

  // The frame and the message that are being received.
  private var frame = WebSocketFrameHeader(.continuation, length: 0)
  private var messageIsCompressed = false
  /// The size in bytes of the message's frames so far, the current one included. Zero for a compressed message.
  private var messageBytes = 0
  /// The payload of the current control frame.
  private var control: [UInt8] = []

  // Pings are numbered from 1, and carry their number.
  private var pingsSent: UInt64 = 0
  private var pingsAcknowledged: UInt64 = 0

  private var writesAreBlocked = false
  /// The payload of the pong that is written when writes resume.
  private var pendingPong: [UInt8]?

  private var lastReceived: Deadline
  private var lastPing: Deadline
  /// The start of `pongTimeout`, or `nil` if no pong is missing.
  private var silentSince: Deadline?
  private var closeDeadline = Deadline.never

  /// Creates the machine at the end of the opening handshake.
  package init(settings: WebSocketSettings = WebSocketSettings(), now: Deadline) {
    self.settings = settings
    lastReceived = now
    lastPing = now
  }

  /// The moment of the next `timerFired`.
  ///
  /// Performance: `mutating`, because the compiler would first copy a value that cannot be changed.
  package var deadline: Deadline {
    mutating get {
      switch state {
      case .open: min(pingDue, pongDue)
      case .closeSent, .closing: closeDeadline
      case .closed: .never
      }
    }
  }

  // MARK: - Facts of the caller

  /// Sends a ping.
  ///
  /// - Returns: The ping's number, which `acknowledgePings` reaches, or `nil` if the conversation is not open.
  package mutating func ping(now: Deadline, into actions: inout Actions) -> UInt64? {
    guard state == .open else { return nil }
    pingsSent &+= 1
    lastPing = now
    if silentSince == nil { silentSince = now }
    let payload = (0..<8).reversed().map { UInt8(truncatingIfNeeded: pingsSent >> UInt64(8 * $0)) }
    actions.append(.write(.ping, payload: payload))
    return pingsSent
  }

  /// Starts the closing handshake. No effect if one has begun.
  package mutating func close(_ close: WebSocketClose, now: Deadline, into actions: inout Actions) {
    guard state == .open else { return }
    write(close, now, &actions)
    state = .closeSent
  }

  // MARK: - Facts of the connection

  /// An event of the parser, in the bytes from which it comes.
  package mutating func received(
    _ event: WebSocketFrameParser.Event, in bytes: Span<UInt8>, now: Deadline, into actions: inout Actions
  ) {
    guard state.readsFrames else { return }
    lastReceived = now
    if silentSince != nil { silentSince = now }
    switch event {
    case .needMore: break
    case .frame(let header): start(header, now, &actions)
    case .payload(let range, let endsFrame):
      if frame.opcode.isControl {
        // The parser limits the payload to 125 bytes.
        control.append(copying: bytes.extracting(range.clamped(to: bytes.indices)))
        if endsFrame { endControl(now, &actions) }
      } else {
        if !range.isEmpty { actions.append(.deliver(range)) }
        if endsFrame, frame.isFinal { actions.append(.endMessage) }
      }
    }
  }

  /// The parser, the decompressor or the assembler has failed, or the owner refuses a message.
  package mutating func failed(_ error: WebSocketError, now: Deadline, into actions: inout Actions) {
    guard state.readsFrames else { return }
    guard let code = error.closeCode else { return end(error, &actions) }
    // RFC 6455 7.1.7: the reason is sent, and nothing of the peer is processed any more.
    if state == .open { write(WebSocketClose(failure: code), now, &actions) }
    state = .closing
    actions.append(.fail(error))
  }

  /// The peer's stream has ended, or the connection is broken.
  package mutating func peerClosed(into actions: inout Actions) {
    switch state {
    // RFC 6455 7.1.5: the code of such an end is 1006.
    case .open, .closeSent: end(.endedWithoutClose, &actions)
    case .closing: end(nil, &actions)
    case .closed: break
    }
  }

  /// The owner receives nothing for now. A pong may have arrived and wait in the kernel.
  package mutating func readingIsPaused(now: Deadline) {
    if silentSince != nil { silentSince = now }
  }

  /// The socket takes no more bytes. Until it does, only the latest ping is answered.
  package mutating func writesBlocked() { writesAreBlocked = true }

  /// All frames are written, and the socket takes bytes again.
  package mutating func writesResumed(into actions: inout Actions) {
    writesAreBlocked = false
    guard state.readsFrames, let payload = pendingPong else { return }
    pendingPong = nil
    actions.append(.write(.pong, payload: payload))
  }

  package mutating func timerFired(now: Deadline, into actions: inout Actions) {
    guard now >= deadline else { return }
    switch state {
    case .open where now >= pongDue: end(.pongTimedOut, &actions)
    case .open:
      // A ping that cannot be written would only lengthen the queue.
      lastPing = now
      if !writesAreBlocked { _ = ping(now: now, into: &actions) }
    case .closeSent: end(.closeTimedOut, &actions)
    case .closing: end(nil, &actions)
    case .closed: break
    }
  }

  // MARK: - Frames

  private mutating func start(_ header: WebSocketFrameHeader, _ now: Deadline, _ actions: inout Actions) {
    frame = header
    if header.opcode.isControl { return control.removeAll(keepingCapacity: true) }
    if header.opcode != .continuation {
      messageIsCompressed = header.isCompressed
      messageBytes = 0
    }
    if !messageIsCompressed {
      // The limit is checked before the payload is read. The assembler checks that of a compressed message.
      guard header.length <= max(settings.messageBytesMax, 0) - messageBytes else {
        return failed(.messageTooBig(limit: settings.messageBytesMax), now: now, into: &actions)
      }
      messageBytes += header.length
    }
    guard header.opcode != .continuation else { return }
    let isWhole = header.isFinal && !header.isCompressed
    actions.append(
      .startMessage(
        header.opcode == .text ? .text : .binary, isCompressed: header.isCompressed,
        byteCount: isWhole ? header.length : nil))
  }

  private mutating func endControl(_ now: Deadline, _ actions: inout Actions) {
    switch frame.opcode {
    case .ping:
      // RFC 6455 5.5.2: pings are answered until the peer's Close.
      // RFC 6455 5.5.3: the latest one may be answered in place of all before it.
      if writesAreBlocked {
        pendingPong = control
      } else {
        actions.append(.write(.pong, payload: control))
      }
    case .pong: acknowledge(&actions)
    default: closeReceived(now, &actions)
    }
  }

  private mutating func acknowledge(_ actions: inout Actions) {
    guard control.count == 8 else { return }
    var (number, index): (UInt64, Int) = (0, 0)
    while index < control.count {
      number = number << 8 | UInt64(control[index])
      index += 1
    }
    // RFC 6455 5.5.3: a pong may come unasked, and one may answer several pings.
    guard number > pingsAcknowledged, number <= pingsSent else { return }
    pingsAcknowledged = number
    if number == pingsSent { silentSince = nil }
    actions.append(.acknowledgePings(through: number))
  }

  private mutating func closeReceived(_ now: Deadline, _ actions: inout Actions) {
    do {
      let close = try WebSocketClose(payload: control)
      let initiator: Initiator = state == .closeSent ? .local : .peer
      // RFC 6455 5.5.1: the answer carries the same code.
      if state == .open { write(WebSocketClose(fitting: close.code), now, &actions) }
      state = .closing
      actions.append(.complete(close, startedBy: initiator))
    } catch {
      failed(error, now: now, into: &actions)
    }
  }

  /// Writes the only Close of this side.
  private mutating func write(_ close: WebSocketClose, _ now: Deadline, _ actions: inout Actions) {
    closeDeadline = now.advanced(by: settings.closeTimeout)
    actions.append(.write(.close, payload: close.payload))
  }

  /// Ends the connection.
  ///
  /// - Parameter error: The error to report, or `nil` if the end of the conversation was reported before.
  private mutating func end(_ error: WebSocketError?, _ actions: inout Actions) {
    state = .closed
    if let error { actions.append(.fail(error)) }
    actions.append(.closeConnection)
  }

  // MARK: - Time

  private var pingDue: Deadline {
    guard let interval = settings.pingInterval else { return .never }
    return max(lastReceived, lastPing).advanced(by: max(interval, WebSocketSettings.pingIntervalMin))
  }

  private var pongDue: Deadline {
    guard let timeout = settings.pongTimeout, let silentSince else { return .never }
    return silentSince.advanced(by: timeout)
  }
}
