import LarkspurBytes
import LarkspurHTTP
import Testing

/// Pings, pongs and the times of a `WebSocketMachine`.
@Suite struct WebSocketPingTests {
  typealias Action = WebSocketMachine.Action

  static let start = WebSocketMachineTests.start

  static func at(_ seconds: Double) -> Deadline { WebSocketMachineTests.at(seconds) }

  static func numbered(_ opcode: WebSocketOpcode, _ number: UInt8) -> Action {
    WebSocketMachineTests.control(opcode, [0, 0, 0, 0, 0, 0, 0, number])
  }

  static func receive(
    _ frames: [UInt8], _ machine: inout WebSocketMachine, now: Deadline = start, into actions: inout [Action]
  ) {
    WebSocketMachineTests.receive(frames, &machine, now: now, into: &actions)
  }

  static func pong(_ number: UInt8) -> [UInt8] { [0x8a, 8, 0, 0, 0, 0, 0, 0, 0, number] }

  // MARK: - Acknowledgement

  /// A pong acknowledges its ping and all before it, once.
  @Test func order() {
    var machine = WebSocketMachine(now: Self.start)
    var actions: [Action] = []
    let numbers = (0..<4).map { _ in machine.ping(now: Self.start, into: &actions) }
    #expect(numbers == [1, 2, 3, 4])
    #expect(actions == (1...4).map { Self.numbered(.ping, $0) })
    actions = []
    Self.receive(Self.pong(1), &machine, into: &actions)
    Self.receive(Self.pong(3), &machine, into: &actions)
    Self.receive(Self.pong(3) + Self.pong(2) + Self.pong(5) + Self.pong(0), &machine, into: &actions)
    Self.receive([0x8a, 0, 0x8a, 4, 0, 0, 0, 4, 0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 4], &machine, into: &actions)
    Self.receive([0x8a, 8] + [UInt8](repeating: 0xff, count: 8), &machine, into: &actions)
    Self.receive(Self.pong(4), &machine, into: &actions)
    #expect(actions == [1, 3, 4].map { .acknowledgePings(through: $0) })
  }

  @Test func notOpen() {
    for state in WebSocketMachine.State.allCases where state != .open {
      var machine = WebSocketMachineTests.machine(in: state)
      var actions: [Action] = []
      #expect(machine.ping(now: Self.start, into: &actions) == nil)
      #expect(machine.state.isOpen == false)
      #expect(actions == [])
    }
  }

  // MARK: - Floods

  /// While the socket takes no writes, a million pings keep one pong.
  @Test func pingFlood() {
    var machine = WebSocketMachine(now: Self.start)
    var actions: [Action] = []
    machine.writesBlocked()
    Self.receive(
      (0..<1_000_000).flatMap { [0x89, 1, UInt8(truncatingIfNeeded: $0)] }, &machine, into: &actions)
    #expect(actions == [])
    machine.writesResumed(into: &actions)
    #expect(actions == [WebSocketMachineTests.control(.pong, [UInt8(truncatingIfNeeded: 999_999)])])
    actions = []
    machine.writesResumed(into: &actions)
    #expect(actions == [])
    Self.receive([0x89, 0], &machine, into: &actions)
    #expect(actions == [WebSocketMachineTests.control(.pong, [])])
  }

  /// RFC 6455 5.5.2: no pong is sent behind the peer's Close.
  @Test func noPongBehindClose() {
    var machine = WebSocketMachine(now: Self.start)
    var actions: [Action] = []
    machine.writesBlocked()
    Self.receive([0x89, 0, 0x88, 0, 0x89, 0], &machine, into: &actions)
    actions = []
    machine.writesResumed(into: &actions)
    #expect(actions == [])
  }

  /// The payload of a ping in pieces is answered whole.
  @Test func pingInPieces() throws {
    var machine = WebSocketMachine(now: Self.start)
    var actions: [Action] = []
    var parser = WebSocketFrameParser(allowsCompression: false)
    let payload = (0..<125).map { UInt8($0) }
    for byte in [0x89, 125] + payload {
      var consumed = 0
      let bytes: [UInt8] = [byte]
      while true {
        let event = try parser.next(in: bytes.span, consumed: &consumed)
        if event == .needMore { break }
        machine.received(event, in: bytes.span, now: Self.start, into: &actions)
      }
    }
    #expect(actions == [WebSocketMachineTests.control(.pong, payload)])
  }

  // MARK: - Time

  static func machine(interval: Double? = nil, timeout: Double? = nil) -> WebSocketMachine {
    WebSocketMachine(
      settings: WebSocketSettings(
        pingInterval: interval.map { .seconds($0) }, pongTimeout: timeout.map { .seconds($0) }),
      now: start)
  }

  static func fire(_ machine: inout WebSocketMachine, _ seconds: Double) -> [Action] {
    var actions: [Action] = []
    machine.timerFired(now: at(seconds), into: &actions)
    return actions
  }

  @Test func withoutTimes() {
    var machine = Self.machine()
    var actions: [Action] = []
    _ = machine.ping(now: Self.start, into: &actions)
    #expect(machine.deadline == .never)
    #expect(Self.fire(&machine, 1e6) == [])
  }

  /// A ping is sent after an interval without a byte and without a ping.
  @Test func interval() {
    var machine = Self.machine(interval: 5)
    var actions: [Action] = []
    #expect(machine.deadline == Self.at(5))
    #expect(Self.fire(&machine, 4.999) == [])
    #expect(Self.fire(&machine, 5) == [Self.numbered(.ping, 1)])
    #expect(machine.deadline == Self.at(10))
    Self.receive([0x82, 0], &machine, now: Self.at(7), into: &actions)
    #expect(machine.deadline == Self.at(12))
    _ = machine.ping(now: Self.at(8), into: &actions)
    #expect(machine.deadline == Self.at(13))
    #expect(Self.fire(&machine, 13) == [Self.numbered(.ping, 3)])
  }

  @Test func pongComesTooLate() {
    var machine = Self.machine(interval: 5, timeout: 2)
    #expect(Self.fire(&machine, 5) == [Self.numbered(.ping, 1)])
    #expect(machine.deadline == Self.at(7))
    #expect(Self.fire(&machine, 6.999) == [])
    #expect(Self.fire(&machine, 7) == [.fail(.pongTimedOut), .closeConnection])
    #expect(machine.deadline == .never)
  }

  @Test func pongComesInTime() {
    var machine = Self.machine(interval: 5, timeout: 2)
    #expect(Self.fire(&machine, 5) == [Self.numbered(.ping, 1)])
    var actions: [Action] = []
    Self.receive(Self.pong(1), &machine, now: Self.at(6), into: &actions)
    #expect(actions == [.acknowledgePings(through: 1)])
    #expect(machine.deadline == Self.at(11))
  }

  /// Any byte shows that the peer lives: its pong may stand behind a long frame.
  @Test func otherBytesInsteadOfPong() {
    var machine = Self.machine(timeout: 2)
    var actions: [Action] = []
    _ = machine.ping(now: Self.start, into: &actions)
    _ = machine.ping(now: Self.at(1), into: &actions)
    #expect(machine.deadline == Self.at(2))
    Self.receive([0x82, 0], &machine, now: Self.at(1.5), into: &actions)
    #expect(machine.deadline == Self.at(3.5))
    Self.receive(Self.pong(1), &machine, now: Self.at(2), into: &actions)
    #expect(machine.deadline == Self.at(4), "the second pong is missing")
    Self.receive(Self.pong(2), &machine, now: Self.at(3), into: &actions)
    #expect(machine.deadline == .never)
  }

  /// A blocked socket gets no pings, and the timer does not fire at once again.
  @Test func blocked() {
    var machine = Self.machine(interval: 5)
    machine.writesBlocked()
    #expect(Self.fire(&machine, 5) == [])
    #expect(machine.deadline == Self.at(10))
    var actions: [Action] = []
    machine.writesResumed(into: &actions)
    #expect(Self.fire(&machine, 10) == [Self.numbered(.ping, 1)])
  }

  /// Even an interval of zero lies in the future.
  @Test(arguments: [0, -1]) func noInterval(seconds: Double) {
    var machine = Self.machine(interval: seconds)
    #expect(machine.deadline == Self.start.advanced(by: .milliseconds(1)))
    #expect(Self.fire(&machine, 1).count == 1)
    #expect(machine.deadline == Self.start.advanced(by: .milliseconds(1001)))
  }

  /// Behind a Close no pings are sent.
  @Test func closing() {
    var machine = Self.machine(interval: 5, timeout: 2)
    var actions: [Action] = []
    machine.close(.empty, now: Self.start, into: &actions)
    #expect(machine.deadline == Self.at(10))
    #expect(Self.fire(&machine, 9) == [])
  }
}
