import FuzzOracles
import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct WebSocketMachineTests {
  typealias Action = WebSocketMachine.Action
  typealias State = WebSocketMachine.State

  static let start = Deadline(nanoseconds: 1_000_000_000)
  static let goingAway = WebSocketClose(fitting: 1001, reason: Array("bye".utf8))

  static func control(_ opcode: WebSocketOpcode, _ payload: [UInt8]) -> Action {
    .write(opcode, payload: payload)
  }

  static func at(_ seconds: Double) -> Deadline { start.advanced(by: .seconds(seconds)) }

  /// Gives a machine the events of whole frames, as the parser reports them.
  static func receive(
    _ frames: [UInt8], _ machine: inout WebSocketMachine, compression: Bool = true, now: Deadline = start,
    into actions: inout [Action]
  ) {
    var parser = WebSocketFrameParser(allowsCompression: compression)
    var consumed = 0
    do {
      while true {
        let event = try parser.next(in: frames.span, consumed: &consumed)
        if event == .needMore { return }
        machine.received(event, in: frames.span, now: now, into: &actions)
      }
    } catch {
      machine.failed(.frameInvalid(error), now: now, into: &actions)
    }
  }

  /// A machine that has come to a state on the way that programs take.
  static func machine(in state: State, _ settings: WebSocketSettings = WebSocketSettings()) -> WebSocketMachine {
    var machine = WebSocketMachine(settings: settings, now: start)
    var actions: [Action] = []
    switch state {
    case .open: break
    case .closeSent: machine.close(WebSocketClose(fitting: 1000), now: start, into: &actions)
    case .closing: receive([0x88, 0], &machine, into: &actions)
    case .closed: machine.peerClosed(into: &actions)
    }
    #expect(machine.state == state)
    return machine
  }

  // MARK: - Every state, every fact

  enum Fact: Hashable, CaseIterable {
    case needMore, text, empty, emptyFragment, ping, pong, pongOfNoPing, close, emptyClose, badClose, tooBig
    case badFrame, invalidText, lost
    case sendPing, closeCall, peerClosed, timer, timerTooEarly, blocked, resumed
  }

  static let text: [UInt8] = [0x81, 2, 0x68, 0x69]

  static func apply(_ fact: Fact, _ machine: inout WebSocketMachine, into actions: inout [Action]) {
    let none: [UInt8] = []
    switch fact {
    case .needMore: machine.received(.needMore, in: none.span, now: start, into: &actions)
    case .text: receive(text, &machine, into: &actions)
    case .empty: receive([0x82, 0], &machine, into: &actions)
    case .emptyFragment: receive([0x42, 0, 0x00, 0], &machine, into: &actions)
    case .ping: receive([0x89, 2, 1, 2], &machine, into: &actions)
    case .pong: receive([0x8a, 8, 0, 0, 0, 0, 0, 0, 0, 1], &machine, into: &actions)
    case .pongOfNoPing: receive([0x8a, 1, 1], &machine, into: &actions)
    case .close: receive([0x88, 5, 0x03, 0xe9] + Array("bye".utf8), &machine, into: &actions)
    case .emptyClose: receive([0x88, 0], &machine, into: &actions)
    case .badClose: receive([0x88, 1, 3], &machine, into: &actions)
    case .tooBig: receive([0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1], &machine, into: &actions)
    case .badFrame: machine.failed(.frameInvalid(.reservedBits), now: start, into: &actions)
    case .invalidText: machine.failed(.invalidUTF8, now: start, into: &actions)
    case .lost: machine.failed(.endedWithoutClose, now: start, into: &actions)
    case .sendPing: _ = machine.ping(now: start, into: &actions)
    case .closeCall: machine.close(goingAway, now: start, into: &actions)
    case .peerClosed: machine.peerClosed(into: &actions)
    case .timer: machine.timerFired(now: at(10), into: &actions)
    case .timerTooEarly: machine.timerFired(now: at(9.999), into: &actions)
    case .blocked: machine.writesBlocked()
    case .resumed: machine.writesResumed(into: &actions)
    }
  }

  /// The row of a fact: what happens in `open` and in `closeSent`, with the next states.
  static func expected(_ fact: Fact, in state: State) -> (actions: [Action], state: State) {
    let message: [Action] = [
      .startMessage(.text, isCompressed: false, byteCount: 2), .deliver(2..<4), .endMessage,
    ]
    func failure(_ error: WebSocketError, _ code: UInt16) -> [Action] {
      state == .open ? [control(.close, [UInt8(code >> 8), UInt8(code & 255)]), .fail(error)] : [.fail(error)]
    }
    let initiator: WebSocketMachine.Initiator = state == .open ? .peer : .local
    switch (fact, state) {
    case (.peerClosed, .closing), (.timer, .closing): return ([.closeConnection], .closed)
    case (_, .closing), (_, .closed): return ([], state)
    case (.needMore, _), (.pong, _), (.pongOfNoPing, _), (.blocked, _), (.resumed, _), (.timerTooEarly, _):
      return ([], state)
    case (.text, _): return (message, state)
    case (.empty, _): return ([.startMessage(.binary, isCompressed: false, byteCount: 0), .endMessage], state)
    case (.emptyFragment, _): return ([.startMessage(.binary, isCompressed: true, byteCount: nil)], state)
    case (.ping, _): return ([control(.pong, [1, 2])], state)
    case (.close, _):
      let echo = state == .open ? [control(.close, [0x03, 0xe9])] : []
      return (echo + [.complete(goingAway, startedBy: initiator)], .closing)
    case (.emptyClose, _):
      return ((state == .open ? [control(.close, [])] : []) + [.complete(.empty, startedBy: initiator)], .closing)
    case (.badClose, _): return (failure(.closeTooShort, 1002), .closing)
    case (.tooBig, _): return (failure(.messageTooBig(limit: 1 << 20), 1009), .closing)
    case (.badFrame, _): return (failure(.frameInvalid(.reservedBits), 1002), .closing)
    case (.invalidText, _): return (failure(.invalidUTF8, 1007), .closing)
    case (.lost, _), (.peerClosed, _): return ([.fail(.endedWithoutClose), .closeConnection], .closed)
    case (.timer, .closeSent): return ([.fail(.closeTimedOut), .closeConnection], .closed)
    case (_, .closeSent), (.timer, _): return ([], state)
    case (.sendPing, _): return ([control(.ping, [0, 0, 0, 0, 0, 0, 0, 1])], .open)
    case (.closeCall, _): return ([control(.close, goingAway.payload)], .closeSent)
    }
  }

  @Test(arguments: State.allCases, Fact.allCases) func everyFactInEveryState(state: State, fact: Fact) {
    var machine = Self.machine(in: state)
    var actions: [Action] = []
    Self.apply(fact, &machine, into: &actions)
    let expected = Self.expected(fact, in: state)
    #expect(actions == expected.actions)
    #expect(machine.state == expected.state)
    #expect(machine.state.isOpen == (machine.state == .open))
    #expect(machine.state.readsFrames == [.open, .closeSent].contains(machine.state))
    #expect((machine.deadline == .never) == [.open, .closed].contains(machine.state))
  }

  /// Any three facts, and then the end of the stream and of the time: one `complete` or `fail`, and then one
  /// `closeConnection`. At most one Close is written.
  @Test(arguments: Fact.allCases) func anyThreeFacts(first: Fact) {
    var wrong: [String] = []
    for second in Fact.allCases {
      for third in Fact.allCases {
        var machine = WebSocketMachine(now: Self.start)
        var actions: [Action] = []
        for fact in [first, second, third, .peerClosed, .timer] { Self.apply(fact, &machine, into: &actions) }
        let ends = actions.indices.filter {
          switch actions[$0] {
          case .complete, .fail: true
          default: false
          }
        }
        let closes = actions.indices.filter { if case .write(.close, _) = actions[$0] { true } else { false } }
        let written = actions.indices.filter {
          if case .write(let code, _) = actions[$0] { code != .pong } else { false }
        }
        let isRight =
          ends.count == 1 && actions.filter { $0 == .closeConnection }.count == 1 && actions.last == .closeConnection
          && closes.count <= 1 && (closes.isEmpty || written.last == closes[0]) && machine.state == .closed
        if !isRight { wrong.append("\(first), \(second), \(third): \(actions)") }
      }
    }
    #expect(wrong == [])
  }

  // MARK: - Messages

  @Test func fragments() {
    var machine = WebSocketMachine(now: Self.start)
    var actions: [Action] = []
    Self.receive([0x01, 1, 0x61, 0x89, 1, 7, 0x00, 0, 0x80, 2, 0x62, 0x63], &machine, into: &actions)
    #expect(
      actions == [
        .startMessage(.text, isCompressed: false, byteCount: nil), .deliver(2..<3), Self.control(.pong, [7]),
        .deliver(10..<12), .endMessage,
      ])
  }

  /// A million empty fragments cost no action.
  @Test func emptyFragments() {
    var machine = WebSocketMachine(now: Self.start)
    var actions: [Action] = []
    Self.receive([0x02, 0] + [UInt8](repeating: 0, count: 2_000_000) + [0x80, 0], &machine, into: &actions)
    #expect(actions == [.startMessage(.binary, isCompressed: false, byteCount: nil), .endMessage])
  }

  /// The limit counts all fragments, and is exceeded by the header alone.
  @Test func messageLimit() {
    for (frames, fits): ([UInt8], Bool) in [
      ([0x82, 4], true), ([0x82, 5], false), ([0x02, 2, 1, 2, 0x80, 2], true), ([0x02, 2, 1, 2, 0x80, 3], false),
      ([0x02, 4, 1, 2, 3, 4, 0x00, 0, 0x80, 0], true), ([0x02, 4, 1, 2, 3, 4, 0x00, 1], false),
      ([0x82, 4, 1, 2, 3, 4, 0x82, 4], true), ([0xc2, 126, 0x01, 0x00], true), ([0x42, 4, 1, 2, 3, 4, 0x80, 9], true),
      ([0x02, 1, 1, 0x80, 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], false),
    ] {
      var machine = WebSocketMachine(settings: WebSocketSettings(messageBytesMax: 4), now: Self.start)
      var actions: [Action] = []
      Self.receive(frames, &machine, into: &actions)
      #expect((machine.state == .open) == fits, "\(frames)")
      #expect(actions.contains(.fail(.messageTooBig(limit: 4))) != fits, "\(frames)")
    }
  }

  // MARK: - Closing

  /// The codes of Autobahn's cases 7.7 and 7.9, and reasons of 7.5.
  @Test func closeCodes() {
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] as [UInt16] {
      var machine = WebSocketMachine(now: Self.start)
      var actions: [Action] = []
      let payload = [UInt8(code >> 8), UInt8(code & 255)]
      Self.receive([0x88, 2] + payload, &machine, into: &actions)
      #expect(
        actions == [
          Self.control(.close, payload), .complete(WebSocketClose(fitting: code), startedBy: .peer),
        ])
    }
    for code in [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535] as [UInt16] {
      var machine = WebSocketMachine(now: Self.start)
      var actions: [Action] = []
      Self.receive([0x88, 2, UInt8(code >> 8), UInt8(code & 255)], &machine, into: &actions)
      #expect(actions == [Self.control(.close, [0x03, 0xea]), .fail(.closeCodeInvalid(code))])
    }
    var machine = WebSocketMachine(now: Self.start)
    var actions: [Action] = []
    Self.receive([0x88, 3, 0x03, 0xe8, 0xff], &machine, into: &actions)
    #expect(actions == [Self.control(.close, [0x03, 0xef]), .fail(.invalidUTF8)])
  }

  /// Behind our Close the peer's messages and pings are read, until its Close.
  @Test func dataBehindOurClose() {
    var machine = Self.machine(in: .closeSent)
    var actions: [Action] = []
    Self.receive(Self.text + [0x89, 0, 0x88, 0] + Self.text, &machine, into: &actions)
    #expect(
      actions == [
        .startMessage(.text, isCompressed: false, byteCount: 2), .deliver(2..<4), .endMessage,
        Self.control(.pong, []), .complete(.empty, startedBy: .local),
      ])
  }

  /// The time for the whole handshake counts from its first Close.
  @Test func closeTime() {
    var machine = Self.machine(in: .closeSent, WebSocketSettings(closeTimeout: .seconds(3)))
    #expect(machine.deadline == Self.at(3))
    var actions: [Action] = []
    Self.receive([0x88, 0], &machine, now: Self.at(2), into: &actions)
    #expect(machine.deadline == Self.at(3))
    actions = []
    machine.timerFired(now: Self.at(3), into: &actions)
    #expect(actions == [.closeConnection])
  }

  static let codes: [(error: WebSocketError, code: UInt16?)] = [
    (.frameInvalid(.maskUnexpected), 1002), (.closeTooShort, 1002), (.closeCodeInvalid(1), 1002),
    (.dataUnsupported, 1003), (.invalidUTF8, 1007), (.compressionInvalid, 1007), (.messageTooBig(limit: 1), 1009),
    (.internalInconsistency, 1011), (.endedWithoutClose, nil), (.pongTimedOut, nil), (.closeTimedOut, nil),
  ]

  @Test(arguments: codes.indices) func errorCodes(index: Int) {
    let row = Self.codes[index]
    var machine = WebSocketMachine(now: Self.start)
    var actions: [Action] = []
    machine.failed(row.error, now: Self.start, into: &actions)
    let payload = row.code.map { [UInt8($0 >> 8), UInt8($0 & 255)] }
    #expect(
      actions
        == (payload.map { [Self.control(.close, $0), .fail(row.error)] } ?? [.fail(row.error), .closeConnection]))
    #expect(row.error.closeCode.map(WebSocketClose.mayBeSent) != false)
    #expect(Set(Self.codes.map(\.error.description)).count == Self.codes.count)
  }
}
