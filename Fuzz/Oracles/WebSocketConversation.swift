import LarkspurBytes
import LarkspurHTTP

/// A client's conversation as a log: frame parser, machine and assembler over a peer's bytes in pieces. Compressed
/// messages are passed to the assembler as they are.
package struct WebSocketConversation: Equatable {
  package enum Entry: Hashable, Sendable {
    case write(WebSocketOpcode, [UInt8])
    case message(WebSocketMessage)
    case acknowledgePings(UInt64)
    case complete(WebSocketClose, WebSocketMachine.Initiator)
    case fail(WebSocketError)
    case closeConnection
  }

  package var log: [Entry] = []
  /// A broken invariant of the machine, or `nil`.
  package var breach: String?
  /// The size in bytes of what the assembler has accepted of the present message.
  private var heldBytes = 0

  /// The caller's part in the conversation.
  package struct Caller: Sendable {
    /// Whether the caller closes before the first byte arrives.
    package var closesFirst = false
    /// Whether the caller sends two pings before the first byte arrives.
    package var pings = false
    /// Whether the socket takes no bytes until all pieces have been read.
    package var isBlocked = false

    package init() {}
  }

  /// Reads pieces, and then the end of the stream.
  package init(
    over pieces: [ArraySlice<UInt8>], allowsCompression: Bool, settings: WebSocketSettings, caller: Caller = Caller()
  ) {
    breach = read(pieces, allowsCompression, settings, caller) ?? breach
    if breach == nil { check() }
  }

  /// - Returns: The breach that ends the reading, or `nil` if there is none.
  private mutating func read(
    _ pieces: [ArraySlice<UInt8>], _ allowsCompression: Bool, _ settings: WebSocketSettings, _ caller: Caller
  ) -> String? {
    let now = Deadline(nanoseconds: 0)
    var machine = WebSocketMachine(settings: settings, now: now)
    var assembler = WebSocketMessageAssembler(messageBytesMax: settings.messageBytesMax)
    var parser = WebSocketFrameParser(allowsCompression: allowsCompression)
    var actions: WebSocketMachine.Actions = []
    if caller.isBlocked { machine.writesBlocked() }
    if caller.pings {
      for _ in 0..<2 { _ = machine.ping(now: now, into: &actions) }
    }
    if caller.closesFirst { machine.close(WebSocketClose(fitting: 1000), now: now, into: &actions) }
    apply(&actions, &machine, &assembler, [])
    for piece in pieces {
      let bytes = Array(piece)
      var consumed = 0
      reading: while machine.state.readsFrames {
        do {
          let before = consumed
          let event = try parser.next(in: bytes.span, consumed: &consumed)
          guard before...bytes.count ~= consumed else { return "consumed went from \(before) to \(consumed)" }
          machine.received(event, in: bytes.span, now: now, into: &actions)
          if event == .needMore {
            if consumed != bytes.count { breach = "\(bytes.count - consumed) bytes were left" }
            break reading
          }
        } catch {
          machine.failed(.frameInvalid(error), now: now, into: &actions)
        }
        apply(&actions, &machine, &assembler, bytes)
      }
    }
    machine.writesResumed(into: &actions)
    apply(&actions, &machine, &assembler, [])
    machine.peerClosed(into: &actions)
    apply(&actions, &machine, &assembler, [])
    return nil
  }

  private mutating func apply(
    _ actions: inout WebSocketMachine.Actions, _ machine: inout WebSocketMachine,
    _ assembler: inout WebSocketMessageAssembler, _ bytes: [UInt8]
  ) {
    while !actions.isEmpty {
      let action = actions.removeFirst()
      do throws(WebSocketError) {
        switch action {
        case .write(let opcode, let payload): log.append(.write(opcode, payload))
        case .startMessage(let kind, _, let byteCount):
          assembler.start(kind, byteCount: byteCount)
          heldBytes = 0
        case .deliver(let range):
          guard bytes.indices.contains(range) || range.upperBound == bytes.count else {
            return breach = "\(range) of \(bytes.count) bytes"
          }
          try assembler.append(bytes.span.extracting(range))
          heldBytes += range.count
        case .endMessage:
          log.append(.message(try assembler.finish()))
          heldBytes = 0
        case .acknowledgePings(let number): log.append(.acknowledgePings(number))
        case .complete(let close, let initiator): log.append(.complete(close, initiator))
        case .fail(let error): log.append(.fail(error))
        case .closeConnection: log.append(.closeConnection)
        }
      } catch {
        heldBytes = 0
        machine.failed(error, now: Deadline(nanoseconds: 0), into: &actions)
      }
      if heldBytes > machine.settings.messageBytesMax { breach = "the assembler holds \(heldBytes) bytes" }
    }
  }

  /// Checks the invariants that the machine's theory of operation states.
  private mutating func check() {
    let ends = log.indices.filter {
      switch log[$0] {
      case .complete, .fail: true
      default: false
      }
    }
    guard ends.count == 1, log.last == .closeConnection, log.filter({ $0 == .closeConnection }).count == 1 else {
      return breach = "the ends are wrong: \(log)"
    }
    var hasClosed = false
    for (index, entry) in log.enumerated() {
      switch entry {
      case .write(let opcode, let payload):
        if hasClosed, opcode != .pong || index > ends[0] { breach = "a \(opcode) behind the Close" }
        if payload.count > WebSocketFrameHeader.controlBytesMax { breach = "a \(opcode) of \(payload.count) bytes" }
        if opcode == .close { hasClosed = true }
      case .message(let message):
        if index > ends[0] { breach = "a message behind the end" }
        if message.kind == .text, String(validating: message.bytes, as: UTF8.self) == nil {
          breach = "a text that is not UTF-8: \(message.bytes)"
        }
      default: break
      }
    }
  }
}

extension Range<Int> {
  fileprivate func contains(_ other: Range<Int>) -> Bool { other.clamped(to: self) == other }
}
