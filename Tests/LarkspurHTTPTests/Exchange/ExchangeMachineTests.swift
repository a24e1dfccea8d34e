import LarkspurHTTP
import Testing

/// The exchange machine as a full table: every state crossed with every fact.
@Suite struct ExchangeMachineTests {
  /// The states, each with the facts that lead to it.
  enum Start: String, CaseIterable, Sendable {
    case idle
    case runningHead, runningKeep, runningClose, runningEnded
    case doneHead, doneKeep, doneClose
    case stoppedHead, stoppedKeep, stoppedClose
    case tunnel
    case closed

    var facts: [Fact] {
      switch self {
      case .idle: []
      case .runningHead: [.begin]
      case .runningKeep: [.begin, .headKeep]
      case .runningClose: [.begin, .headClose]
      case .runningEnded: [.begin, .headKeep, .ended]
      case .doneHead: [.begin, .sent]
      case .doneKeep: [.begin, .sent, .headKeep]
      case .doneClose: [.begin, .sent, .headClose]
      case .stoppedHead: [.begin, .sendingFailed]
      case .stoppedKeep: [.begin, .sendingFailed, .headKeep]
      case .stoppedClose: [.begin, .headClose, .sendingFailed]
      case .tunnel: [.begin, .sent, .tunnel]
      case .closed: [.released]
      }
    }

    var state: ExchangeMachine.State {
      switch self {
      case .idle: .idle
      case .runningHead: .active(.running, .head)
      case .runningKeep: .active(.running, .body(isPersistent: true))
      case .runningClose: .active(.running, .body(isPersistent: false))
      case .runningEnded: .active(.running, .ended)
      case .doneHead: .active(.done, .head)
      case .doneKeep: .active(.done, .body(isPersistent: true))
      case .doneClose: .active(.done, .body(isPersistent: false))
      case .stoppedHead: .active(.stopped, .head)
      case .stoppedKeep: .active(.stopped, .body(isPersistent: true))
      case .stoppedClose: .active(.stopped, .body(isPersistent: false))
      case .tunnel: .tunnel
      case .closed: .closed
      }
    }

    var isActive: Bool { if case .active = state { true } else { false } }
  }

  enum Fact: String, CaseIterable, Sendable {
    case begin, sent, sendingFailed, headKeep, headClose, headRefusing, headInPlaceOf100, tunnel, ended
    case failed, bodyFailed, peerClosed, strayBytes, lost, timedOut, cancelled, released

    func apply(to machine: inout ExchangeMachine) -> [ExchangeMachine.Action] {
      var actions = ExchangeMachine.Actions()
      switch self {
      case .begin: _ = machine.start()
      case .sent: machine.requestSent(into: &actions)
      case .sendingFailed: machine.sendingFailed(into: &actions)
      case .headKeep: machine.headReceived(isPersistent: true, into: &actions)
      case .headClose: machine.headReceived(isPersistent: false, into: &actions)
      case .headRefusing: machine.headReceived(status: 300, isPersistent: true, into: &actions)
      case .headInPlaceOf100: machine.headReceived(isPersistent: true, holdsBody: true, into: &actions)
      case .tunnel: machine.tunnelStarted(into: &actions)
      case .ended: machine.responseEnded(into: &actions)
      case .failed: machine.responseFailed(.notHTTP, into: &actions)
      case .bodyFailed: machine.bodyFailed(into: &actions)
      case .peerClosed: machine.peerClosed(into: &actions)
      case .strayBytes: machine.unsolicitedBytes(into: &actions)
      case .lost: machine.connectionLost(into: &actions)
      case .timedOut: machine.timedOut(into: &actions)
      case .cancelled: machine.cancelled(into: &actions)
      case .released: machine.released(into: &actions)
      }
      return [actions.first, actions.second].compactMap(\.self)
    }
  }

  static func machine(at start: Start) -> ExchangeMachine {
    var machine = ExchangeMachine()
    for fact in start.facts { _ = fact.apply(to: &machine) }
    return machine
  }

  /// The content of a cell.
  enum Cell: Hashable, Sendable {
    /// Nothing changes.
    case same
    /// The state changes, without an action.
    case to(Start)
    case toDoing(Start, ExchangeMachine.Action)
    /// The exchange completes, and the connection is closed.
    case done(ExchangeMachine.CloseReason)
    /// The exchange fails, and the connection is closed.
    case fail(ExchangeMachine.Failure)
    case close(ExchangeMachine.CloseReason)
    /// An internal error without an exchange to report it to: the connection is closed.
    case defect

    func outcome(from start: Start) -> (ExchangeMachine.State, [ExchangeMachine.Action]) {
      switch self {
      case .same: (start.state, [])
      case .to(let next): (next.state, [])
      case .toDoing(let next, let action): (next.state, [action])
      case .done(let reason): (.closed, [.complete, .close(reason)])
      case .fail(let failure): (.closed, [.fail(failure), .close(.exchangeFailed)])
      case .close(let reason): (.closed, [.close(reason)])
      case .defect: (.closed, [.close(.exchangeFailed)])
      }
    }
  }

  /// The cells of each row stand in the order of `Fact.allCases`:
  /// begin, sent, sendingFailed, headKeep, headClose, headRefusing, headInPlaceOf100, tunnel, ended,
  /// failed, bodyFailed, peerClosed, strayBytes, lost, timedOut, cancelled, released.
  static let table: [(Start, [Cell])] = [
    (
      .idle,
      [
        .to(.runningHead),
        .same,
        .same,
        .defect,
        .defect,
        .defect,
        .defect,
        .defect,
        .defect,
        .close(.exchangeFailed),
        .close(.exchangeFailed),
        .close(.peerClosed),
        .close(.unsolicitedBytes),
        .close(.connectionLost),
        .close(.exchangeFailed),
        .close(.exchangeFailed),
        .close(.unneeded),
      ]
    ),
    (
      .runningHead,
      [
        .same,
        .to(.doneHead),
        .toDoing(.stoppedHead, .stopSending),
        .to(.runningKeep),
        .to(.runningClose),
        .toDoing(.stoppedKeep, .stopSending),
        .toDoing(.stoppedKeep, .stopSending),
        .toDoing(.tunnel, .handOver),
        .fail(.internalInconsistency),
      ] + endings
    ),
    (
      .runningKeep,
      [
        .same,
        .to(.doneKeep),
        .toDoing(.stoppedKeep, .stopSending),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .to(.runningEnded),
      ] + endings
    ),
    (
      .runningClose,
      [
        .same,
        .to(.doneClose),
        .toDoing(.stoppedClose, .stopSending),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .done(.requestUnfinished),
      ] + endings
    ),
    (
      .runningEnded,
      [
        .same,
        .toDoing(.idle, .complete),
        .done(.requestUnfinished),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.response(.notHTTP)),
        .fail(.bodyFailed),
        .done(.peerClosed),
        .done(.unsolicitedBytes),
        .done(.connectionLost),
        .fail(.timedOut),
        .fail(.cancelled),
        .fail(.cancelled),
      ]
    ),
    (
      .doneHead,
      [
        .same,
        .same,
        .same,
        .to(.doneKeep),
        .to(.doneClose),
        .to(.doneKeep),
        .to(.doneKeep),
        .toDoing(.tunnel, .handOver),
        .fail(.internalInconsistency),
      ] + endings
    ),
    (
      .doneKeep,
      [
        .same,
        .same,
        .same,
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .toDoing(.idle, .complete),
      ] + endings
    ),
    (
      .doneClose,
      [
        .same,
        .same,
        .same,
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .done(.serverWillClose),
      ] + endings
    ),
    (
      .stoppedHead,
      [
        .same,
        .same,
        .same,
        .to(.stoppedKeep),
        .to(.stoppedClose),
        .to(.stoppedKeep),
        .to(.stoppedKeep),
        .toDoing(.tunnel, .handOver),
        .fail(.internalInconsistency),
      ] + endings
    ),
    (
      .stoppedKeep,
      [
        .same,
        .same,
        .same,
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .done(.requestUnfinished),
      ] + endings
    ),
    (
      .stoppedClose,
      [
        .same,
        .same,
        .same,
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .fail(.internalInconsistency),
        .done(.requestUnfinished),
      ] + endings
    ),
    (
      .tunnel,
      [
        .same,
        .same,
        .same,
        .defect,
        .defect,
        .defect,
        .defect,
        .defect,
        .defect,
        .close(.exchangeFailed),
        .close(.exchangeFailed),
        .close(.exchangeFailed),
        .defect,
        .close(.exchangeFailed),
        .close(.exchangeFailed),
        .close(.exchangeFailed),
        .close(.unneeded),
      ]
    ),
    (.closed, Array(repeating: .same, count: Fact.allCases.count)),
  ]

  /// The cells of the facts that end a running exchange, which are equal in several states.
  static let endings: [Cell] = [
    .fail(.response(.notHTTP)), .fail(.bodyFailed), .fail(.connectionLost), .fail(.internalInconsistency),
    .fail(.connectionLost),
    .fail(.timedOut), .fail(.cancelled), .fail(.cancelled),
  ]

  @Test func theTableIsComplete() {
    #expect(Self.table.map(\.0) == Start.allCases)
    #expect(Self.table.allSatisfy { $0.1.count == Fact.allCases.count })
  }

  @Test func everyStateIsReached() {
    for start in Start.allCases { #expect(Self.machine(at: start).state == start.state, "\(start)") }
  }

  @Test func everyStateByEveryFact() {
    for (start, cells) in Self.table {
      for (fact, cell) in zip(Fact.allCases, cells) {
        var machine = Self.machine(at: start)
        let actions = fact.apply(to: &machine)
        let (state, expected) = cell.outcome(from: start)
        #expect(machine.state == state, "\(start) x \(fact)")
        #expect(actions == expected, "\(start) x \(fact)")
      }
    }
  }

  @Test func onlyAnIdleConnectionBegins() {
    for start in Start.allCases {
      var machine = Self.machine(at: start)
      let begun = machine.start()
      #expect(begun == (start == .idle), "\(start)")
      #expect(machine.isIdle == false, "\(start)")
    }
  }

  /// In every walk of four facts, an exchange ends once, a connection closes once, and nothing follows the close.
  @Test func everyWalk() {
    var walks = 0
    func go(_ machine: ExchangeMachine, _ depth: Int, running: Bool, path: [Fact]) {
      guard depth > 0 else { return }
      for fact in Fact.allCases {
        var next = machine
        let actions = fact.apply(to: &next)
        let began = machine.isIdle && fact == .begin
        let ends = actions.count { action in
          switch action {
          case .complete, .fail, .handOver: true
          default: false
          }
        }
        let closes = actions.count { if case .close = $0 { true } else { false } }
        let isActive = if case .active = next.state { true } else { false }
        let isFine =
          // An exchange ends once, and only if it was running.
          ends == (running && !isActive ? 1 : 0)
          && (began || running || ends == 0)
          // The state becomes closed exactly when a close is requested.
          && closes == (next.state == .closed && machine.state != .closed ? 1 : 0)
          && (machine.state != .closed || next.state == .closed && actions.isEmpty)
          // The close is the last action.
          && (closes == 0 || actions.last.map { if case .close = $0 { true } else { false } } == true)
        if !isFine { Issue.record("\(path + [fact]) from \(machine.state) to \(next.state): \(actions)") }
        walks += 1
        go(next, depth - 1, running: isActive, path: path + [fact])
      }
    }
    // Four facts from the beginning, and three from each state.
    go(ExchangeMachine(), 4, running: false, path: [])
    for start in Start.allCases { go(Self.machine(at: start), 3, running: start.isActive, path: start.facts) }
    #expect(walks > 50_000)
  }
}
