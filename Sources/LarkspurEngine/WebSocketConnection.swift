import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport

/// The connection of a WebSocket, from the end of the opening handshake to the end of the connection. It belongs
/// to its loop.
///
/// Theory of operation. The connection performs the actions of a `WebSocketMachine`. Received bytes are parsed where
/// they lie, and collected into one message. While a complete message waits for its `receive`, nothing is received:
/// TCP's flow control slows the server down. Pings are not answered in that time either.
///
/// The object outlives the load for a moment: when both sides have sent a Close, or the conversation has failed, the
/// object reports the end at once, and waits for the server to close the connection (RFC 6455 7.1.1).
package final class WebSocketConnection: LiveConnection, ByteStreamUser, @unchecked Sendable {
  /// The outcome of a conversation.
  package enum Outcome: Sendable {
    /// Both sides have sent a Close.
    case closed(WebSocketClose, startedBy: WebSocketMachine.Initiator)
    case failed(WebSocketError, TransportError?)
    /// The load that uses the connection is over.
    case interrupted
  }

  /// Why a call fails.
  package enum Failure: Sendable {
    /// Both sides have sent a Close, or this side has.
    case notConnected
    case failed(WebSocketError, TransportError?)
    case sendingFailed(TransportError)
  }

  package let loop: ClientLoop
  /// Released with the load's end.
  package var owner: AnyObject?
  /// The end of the conversation, once it has ended.
  package private(set) var end: Outcome?
  /// Released with the call: it keeps the load.
  private var whenEnded: (() -> Void)?
  private let stream: ByteStream
  private let user: any WebSocketUser
  private var parser: WebSocketFrameParser
  private var machine: WebSocketMachine
  private var assembler: WebSocketMessageAssembler
  private var compression: WebSocketMessageCompression?
  /// Storage of the actions, which is reused.
  private var actions: WebSocketMachine.Actions = []
  private var masks = WebSocketMasks()

  /// The calls of `receive` that wait, in their order.
  private var receives: [WebSocketCall] = []
  /// The messages that wait for a `receive`: one at most before this side's Close.
  private var unread: [WebSocketMessage] = []
  /// The memory of the messages behind the first one, in bytes.
  private var unreadBytes = 0
  /// The calls of `send` whose bytes the kernel has not taken.
  private var sends: [WebSocketCall] = []
  /// Whether the machine has been informed that the socket takes no more bytes.
  private var isBlocked = false
  private var pings: [(number: UInt64, operation: WebSocketCall)] = []
  private var timer: (deadline: Deadline, timer: ClientLoop.Timer)?
  private var transportFailure: TransportError?
  /// The error of calls that come too late, once the conversation has ended.
  private var failure: (any Error)?

  /// - Parameter whenEnded: Called once, when `end` has been set.
  package init(
    over tunnel: Tunnel, _ agreement: WebSocketAgreement, _ user: any WebSocketUser,
    whenEnded: @escaping () -> Void
  ) {
    self.whenEnded = whenEnded
    stream = ByteStream(over: tunnel)
    loop = stream.loop
    self.user = user
    let settings = user.machineSettings
    parser = WebSocketFrameParser(allowsCompression: agreement.compression != nil)
    machine = WebSocketMachine(settings: settings, now: loop.now)
    assembler = WebSocketMessageAssembler(messageBytesMax: settings.messageBytesMax)
    compression = agreement.compression.flatMap { WebSocketMessageCompression($0) }
  }

  /// Starts to receive.
  package func start() {
    stream.start(for: self)
    updateTimer()
  }

  /// Ends the conversation because the load is over.
  ///
  /// - Parameter error: The error of the calls that wait, and of later ones.
  package func interrupt(_ error: any Error) {
    conversationEnded(.interrupted, error)
    close()
  }

  // MARK: - Calls

  package func start(_ operation: LiveOperation) {
    guard let operation = operation as? WebSocketCall else { return }
    if case .receive = operation.action, !unread.isEmpty {
      operation.message = unread.removeFirst()
      if let first = unread.first { unreadBytes -= Self.memory(of: first) }
      operation.finish()
      return stream.resumeReceiving()
    }
    guard failure == nil else { return operation.finish(failure) }
    switch operation.action {
    // Bytes are wanted already.
    case .receive: receives.append(operation)
    case .send:
      guard machine.state.isOpen else { return operation.finish(user.error(for: .notConnected)) }
      operation.lendMessage { write($0 ? .text : .binary, $1) }
      if let error = failure ?? transportFailure.map({ user.error(for: .sendingFailed($0)) }) {
        operation.finish(error)
      } else if stream.isDrained {
        operation.finish()
      } else {
        sends.append(operation)
      }
    case .ping:
      if let transportFailure { return operation.finish(user.error(for: .sendingFailed(transportFailure))) }
      step { machine, now, actions in
        guard let number = machine.ping(now: now, into: &actions) else {
          return operation.finish(user.error(for: .notConnected))
        }
        pings.append((number, operation))
      }
    case .close(let code, let reason):
      step { machine, now, actions in
        machine.close(WebSocketClose(fitting: code, reason: reason), now: now, into: &actions)
      }
      operation.finish()
      // Also bytes behind a message that waits are wanted from here on.
      stream.resumeReceiving()
    }
  }

  package func forget(_ operation: LiveOperation) {
    receives.removeAll { $0 === operation }
    sends.removeAll { $0 === operation }
    pings.removeAll { $0.operation === operation }
  }

  private func write(_ opcode: WebSocketOpcode, _ payload: Span<UInt8>) {
    var frame: [UInt8] = []
    if let compressed = compression?.compress(payload) {
      WebSocketFrameWriter.append(
        opcode, isCompressed: true, payload: compressed.span, mask: masks.next(), to: &frame)
    } else {
      WebSocketFrameWriter.append(opcode, payload: payload, mask: masks.next(), to: &frame)
    }
    write(frame)
  }

  private func write(_ frame: [UInt8]) {
    stream.write(frame)
    guard stream.isBlocked else { return }
    isBlocked = true
    machine.writesBlocked()
  }

  // MARK: - The machine

  /// Reports a fact to the machine, and performs its actions.
  private func step(
    in bytes: Span<UInt8> = Span(),
    _ fact: (inout WebSocketMachine, Deadline, inout WebSocketMachine.Actions) -> Void
  ) {
    var actions: WebSocketMachine.Actions = []
    swap(&actions, &self.actions)
    fact(&machine, loop.now, &actions)
    var index = 0
    while index < actions.count {
      if let error = perform(actions[index], in: bytes) { machine.failed(error, now: loop.now, into: &actions) }
      index += 1
    }
    actions.removeAll(keepingCapacity: true)
    swap(&actions, &self.actions)
    updateTimer()
  }

  /// Performs an action.
  ///
  /// - Returns: The error of a message that cannot be accepted, or `nil`.
  private func perform(_ action: WebSocketMachine.Action, in bytes: Span<UInt8>) -> WebSocketError? {
    do throws(WebSocketError) {
      switch action {
      case .write(let opcode, let payload):
        var frame: [UInt8] = []
        WebSocketFrameWriter.append(opcode, payload: payload.span, mask: masks.next(), to: &frame)
        write(frame)
      case .startMessage(let kind, let isCompressed, let byteCount):
        assembler.start(kind, byteCount: byteCount)
        compression?.startMessage(isCompressed: isCompressed)
      case .deliver(let range):
        // A message whose beginning has failed is not delivered.
        guard machine.state.readsFrames else { return nil }
        let piece = bytes.extracting(range)
        if let compression, compression.isInMessage {
          try compression.decompress(piece, into: &assembler)
        } else {
          try assembler.append(piece)
        }
      case .endMessage:
        guard machine.state.readsFrames else { return nil }
        if let compression, compression.isInMessage { try compression.endMessage(into: &assembler) }
        deliver(try assembler.finish())
      case .acknowledgePings(let number):
        while let first = pings.first, first.number <= number { pings.removeFirst().operation.finish() }
      case .complete(let close, let initiator):
        conversationEnded(.closed(close, startedBy: initiator), user.error(for: .notConnected))
      case .fail(let error):
        conversationEnded(.failed(error, transportFailure), user.error(for: .failed(error, transportFailure)))
      case .closeConnection: close()
      }
      return nil
    } catch {
      return error
    }
  }

  private func deliver(_ message: WebSocketMessage) {
    guard !receives.isEmpty else {
      if !unread.isEmpty { unreadBytes += Self.memory(of: message) }
      return unread.append(message)
    }
    let operation = receives.removeFirst()
    operation.message = message
    operation.finish()
  }

  /// Reports the end of the conversation, once. Calls that wait and later ones fail with its error; a complete message
  /// can still be received.
  private func conversationEnded(_ end: Outcome, _ error: any Error) {
    guard self.end == nil else { return }
    self.end = end
    // Before any call fails: the program may close the WebSocket then.
    user.noteEnd(end)
    failure = error
    let left = receives + sends + pings.map(\.operation)
    receives = []
    sends = []
    pings = []
    for operation in left { operation.finish(error) }
    // A program may keep its part of the load, and with it this object.
    compression = nil
    assembler = WebSocketMessageAssembler(messageBytesMax: 0)
    whenEnded.take()?()
  }

  private func close() {
    if let timer { loop.stopTimer(timer.timer) }
    timer = nil
    stream.close()
  }

  private func updateTimer() {
    let deadline = machine.deadline
    // A timer that fires too early is started anew.
    if let timer, timer.deadline <= deadline { return }
    if let timer { loop.stopTimer(timer.timer) }
    timer = nil
    guard deadline != .never else { return }
    timer = (deadline, loop.startTimer(deadline) { [weak self] in self?.timerFired() })
  }

  private func timerFired() {
    if let timer { loop.stopTimer(timer.timer) }
    timer = nil
    let isPaused = !acceptsBytes
    step { machine, now, actions in
      if isPaused { machine.readingIsPaused(now: now) }
      machine.timerFired(now: now, into: &actions)
    }
  }

  // MARK: - The stream

  /// Bytes are wanted unless a message waits for its `receive`. Behind this side's Close, when a program may receive no
  /// more, messages are collected up to a limit, because the server's Close may be behind them. After the conversation,
  /// bytes are received up to the end of the stream, and discarded.
  package var acceptsBytes: Bool {
    unread.isEmpty || !machine.state.readsFrames
      || !machine.state.isOpen && unreadBytes < machine.settings.messageBytesMax
  }

  private static func memory(of message: WebSocketMessage) -> Int { message.bytes.count + 64 }

  package func received(_ bytes: Span<UInt8>) -> Int {
    var consumed = 0
    machine.settings = user.machineSettings
    assembler.messageBytesMax = machine.settings.messageBytesMax
    while acceptsBytes, machine.state.readsFrames {
      do throws(WebSocketFrameError) {
        let event = try parser.next(in: bytes, consumed: &consumed)
        if case .needMore = event { return consumed }
        step(in: bytes) { machine, now, actions in machine.received(event, in: bytes, now: now, into: &actions) }
      } catch {
        step { machine, now, actions in machine.failed(.frameInvalid(error), now: now, into: &actions) }
      }
    }
    return machine.state.readsFrames ? consumed : bytes.count
  }

  package func receivedEnd() { step { machine, _, actions in machine.peerClosed(into: &actions) } }

  package func outputDrained() {
    let sent = sends
    sends = []
    for operation in sent { operation.finish() }
    guard isBlocked else { return }
    isBlocked = false
    step { machine, _, actions in machine.writesResumed(into: &actions) }
  }

  package func sendingFailed(_ error: TransportError) {
    transportFailure = error
    let failed = sends + pings.map(\.operation)
    sends = []
    pings = []
    for operation in failed { operation.finish(user.error(for: .sendingFailed(error))) }
  }

  package func failed(_ error: TransportError) {
    transportFailure = error
    receivedEnd()
  }
}

/// The masking keys of a connection's frames. They cannot be predicted (RFC 6455 10.3).
struct WebSocketMasks {
  private var generator = SystemRandomNumberGenerator()
  private var spare: UInt32?

  mutating func next() -> UInt32 {
    if let spare {
      self.spare = nil
      return spare
    }
    let number = generator.next()
    spare = UInt32(truncatingIfNeeded: number >> 32)
    return UInt32(truncatingIfNeeded: number)
  }
}
