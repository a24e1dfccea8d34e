import LarkspurHTTP
import TestKit
import Testing

@Suite struct EventSourceMachineTests {
  typealias Machine = EventSourceMachine
  typealias Action = EventSourceMachine.Action

  /// A fact with its arguments. The fraction is 0 everywhere, so that delays are the shortest ones.
  enum Fact: Hashable, CaseIterable {
    case start, eventStream, otherType, noContent, retriedStatus, otherStatus, received, ended, failed, failedFutilely
    case waited, left, close, gaveUp
  }

  static func apply(_ fact: Fact, to machine: inout Machine, fraction: Double = 0) -> Action? {
    func respond(_ status: Int, _ isEventStream: Bool) -> Action {
      machine.responded(status: status, isEventStream: isEventStream, retryAfter: nil, fraction: fraction)
    }
    func fail(_ isFutile: Bool) -> Action {
      machine.failed(isFutile: isFutile, lastEventID: "f", reconnectionMilliseconds: nil, fraction: fraction)
    }
    switch fact {
    case .start: return machine.start()
    case .eventStream: return respond(200, true)
    case .otherType: return respond(200, false)
    case .noContent: return respond(204, true)
    case .retriedStatus: return respond(503, true)
    case .otherStatus: return respond(404, true)
    case .received: return machine.received(lastEventID: "r", reconnectionMilliseconds: nil)
    case .ended: return machine.ended(lastEventID: "e", reconnectionMilliseconds: nil, fraction: fraction)
    case .failed: return fail(false)
    case .failedFutilely: return fail(true)
    case .waited: return machine.waited()
    case .gaveUp: return machine.gaveUp()
    case .left:
      machine.left()
      return nil
    case .close:
      machine.close()
      return nil
    }
  }

  static func machine(in state: Machine.State, _ settings: Machine.Settings = Machine.Settings()) -> Machine {
    var machine = Machine(settings: settings, lastEventID: "i")
    let way: [Fact] =
      switch state {
      case .idle: []
      case .connecting: [.start]
      case .open: [.start, .eventStream]
      case .waiting: [.start, .retriedStatus]
      case .closed: [.close]
      }
    for fact in way { _ = apply(fact, to: &machine) }
    return machine
  }

  struct Outcome: Hashable {
    var action: Action?
    var state: Machine.State
    var lastEventID = "i"
  }

  /// The outcome of each fact that fits a state. All others change nothing, and answer `finish`.
  static let fitting: [Machine.State: [Fact: Outcome]] = {
    let connect = Outcome(action: .connect(lastEventID: "i"), state: .connecting)
    let gone = Outcome(action: nil, state: .idle)
    let closed = Outcome(action: nil, state: .closed)
    let wait = Outcome(action: .wait(.seconds(3)), state: .waiting)
    let broken = Outcome(action: .fail(.connection), state: .closed)
    return [
      .idle: [.start: connect, .left: gone, .close: closed],
      .connecting: [
        .start: connect, .left: gone, .close: closed, .eventStream: Outcome(action: .read, state: .open),
        .otherType: Outcome(action: .fail(.contentType), state: .closed),
        .noContent: Outcome(action: .finish, state: .closed), .retriedStatus: wait,
        .otherStatus: Outcome(action: .fail(.status(404)), state: .closed), .failed: wait, .failedFutilely: broken,
        .gaveUp: broken,
      ],
      .open: [
        .start: Outcome(action: .read, state: .open), .left: gone, .close: closed,
        .received: Outcome(action: .read, state: .open, lastEventID: "r"),
        .ended: Outcome(action: .wait(.seconds(3)), state: .waiting, lastEventID: "e"),
        .failed: Outcome(action: .wait(.seconds(3)), state: .waiting, lastEventID: "f"),
        .failedFutilely: Outcome(action: .fail(.connection), state: .closed, lastEventID: "f"),
      ],
      .waiting: [
        .start: connect, .left: gone, .close: closed, .waited: connect, .gaveUp: broken,
      ],
      .closed: [.left: closed, .close: closed],
    ]
  }()

  @Test(arguments: Machine.State.allCases, Fact.allCases) func everyFactInEveryState(state: Machine.State, fact: Fact) {
    var machine = Self.machine(in: state)
    #expect(machine.state == state)
    let action = Self.apply(fact, to: &machine)
    let expected = Self.fitting[state]?[fact] ?? Outcome(action: .finish, state: state)
    #expect(Outcome(action: action, state: machine.state, lastEventID: machine.lastEventID) == expected)
  }

  /// Whatever happens, a closed machine stays closed, and an action fits the state that the machine is in.
  @Test func randomFacts() {
    var random = SeededGenerator(for: "EventSourceMachineTests.randomFacts")
    for _ in 0..<2000 {
      var machine = Machine()
      for _ in 0..<30 {
        let wasClosed = machine.state == .closed
        guard let fact = Fact.allCases.randomElement(using: &random) else { continue }
        let action = Self.apply(fact, to: &machine, fraction: .random(in: 0...1, using: &random))
        if wasClosed { #expect(machine.state == .closed && (action == nil || action == .finish)) }
        switch action {
        case .connect(let id): #expect(machine.state == .connecting && id == machine.lastEventID)
        case .read: #expect(machine.state == .open)
        case .wait(let delay): #expect(machine.state == .waiting && .seconds(3)...Duration.seconds(60) ~= delay)
        case .fail: #expect(machine.state == .closed)
        case .finish, nil: break
        }
      }
    }
  }

  @Test(arguments: [200, 201, 204, 205, 301, 304, 400, 401, 404, 429, 500, 501, 502, 503, 504, 505, 999])
  func statuses(status: Int) {
    var machine = Self.machine(in: .connecting)
    let action = machine.responded(status: status, isEventStream: true, retryAfter: nil, fraction: 0)
    switch status {
    case 200: #expect(action == .read)
    case 204: #expect(action == .finish)
    case 429, 500, 502, 503, 504: #expect(action == .wait(.seconds(3)))
    default: #expect(action == .fail(.status(status)))
    }
  }

  @Test func theProgramChoosesTheStatuses() {
    var settings = Machine.Settings()
    settings.retriedStatuses = [404]
    var machine = Self.machine(in: .connecting, settings)
    #expect(Self.apply(.otherStatus, to: &machine) == .wait(.seconds(3)))
    machine = Self.machine(in: .connecting, settings)
    #expect(Self.apply(.retriedStatus, to: &machine) == .fail(.status(503)))
  }

  // MARK: - Delays

  /// The shortest and the longest delay of the next failure.
  private static func delays(_ machine: Machine, _ fact: Fact = .failed) -> [Action?] {
    [0, 1].map { fraction in
      var copy = machine
      return apply(fact, to: &copy, fraction: fraction)
    }
  }

  @Test func theDelayDoubles() {
    var machine = Self.machine(in: .connecting)
    var delays: [[Action?]] = []
    for _ in 0..<8 {
      delays.append(Self.delays(machine))
      _ = Self.apply(.failed, to: &machine)
      _ = machine.waited()
    }
    let seconds: [(Double, Double)] = [(3, 4.5), (3, 9), (6, 18), (12, 36), (24, 60), (30, 60), (30, 60), (30, 60)]
    #expect(delays == seconds.map { [.wait(.seconds($0)), .wait(.seconds($1))] })
    // A connection that opens and brings no event is a failure; an event makes an end of it.
    _ = Self.apply(.eventStream, to: &machine)
    #expect(Self.delays(machine, .ended) == [.wait(.seconds(30)), .wait(.seconds(60))])
    _ = Self.apply(.received, to: &machine)
    #expect(Self.delays(machine, .ended) == [.wait(.seconds(3)), .wait(.seconds(4.5))])
    #expect(machine.failureCount == 0)
    _ = Self.apply(.ended, to: &machine)
    #expect(machine.failureCount == 0)
  }

  @Test func fractionsOutOfRange() {
    for (fraction, seconds) in [(-1, 3), (2, 4.5), (.nan, 3), (.infinity, 4.5), (0.5, 3.75)] as [(Double, Double)] {
      var machine = Self.machine(in: .connecting)
      #expect(Self.apply(.failed, to: &machine, fraction: fraction) == .wait(.seconds(seconds)))
    }
  }

  @Test func theServersReconnectionTime() {
    for (milliseconds, low, high) in [
      (0, 0.5, 0.75), (499, 0.5, 0.75), (1500, 1.5, 2.25), (60_000, 60, 90), (300_000, 300, 450), (.max, 3600, 5400),
    ] as [(UInt64, Double, Double)] {
      var machine = Self.machine(in: .open)
      #expect(machine.received(lastEventID: "", reconnectionMilliseconds: milliseconds) == .read)
      #expect(Self.delays(machine, .ended) == [.wait(.seconds(low)), .wait(.seconds(high))])
      // The end of a stream reports it, too.
      var other = Self.machine(in: .open)
      let action = other.ended(lastEventID: "", reconnectionMilliseconds: milliseconds, fraction: 0)
      #expect(action == .wait(.seconds(low)))
    }
  }

  /// A `retry` of 0 leaves a pause before each connection, also if each one brings an event, and the pause grows with
  /// failures.
  @Test(arguments: [(3000, 500), (250, 250), (0, 100)])
  func noReconnectionTime(ofProgram own: Int, least: Int) {
    var settings = Machine.Settings()
    settings.reconnectionTime = .milliseconds(own)
    var machine = Self.machine(in: .open, settings)
    for _ in 0..<3 {
      _ = machine.received(lastEventID: "", reconnectionMilliseconds: 0)
      #expect(Self.apply(.ended, to: &machine) == .wait(.milliseconds(least)))
      _ = machine.waited()
      _ = Self.apply(.eventStream, to: &machine)
    }
    var delays: [Action?] = []
    for _ in 0..<4 {
      delays.append(Self.apply(.failed, to: &machine))
      _ = machine.waited()
    }
    // Half of the doubled time at least.
    #expect(delays == [1, 1, 2, 4].map { .wait(.milliseconds(least * $0)) })
  }

  @Test func retryAfter() {
    for (seconds, low, high) in [
      (0, 3, 4.5), (10, 10, 11.5), (59, 59, 60), (600, 600, 601.5), (1e20, 3600, 3601.5), (-5, 3, 4.5), (.nan, 3, 4.5),
    ] as [(Double, Double, Double)] {
      for (fraction, expected) in [(0, low), (1, high)] as [(Double, Double)] {
        var machine = Self.machine(in: .connecting)
        let action = machine.responded(status: 503, isEventStream: false, retryAfter: seconds, fraction: fraction)
        #expect(action == .wait(.seconds(expected)), "\(seconds)")
      }
    }
  }

  @Test func settingsOutOfRange() {
    var settings = Machine.Settings()
    settings.reconnectionTime = .seconds(-5)
    settings.delayMax = .seconds(-1)
    settings.serverDelayMax = .seconds(-1)
    var machine = Self.machine(in: .connecting, settings)
    #expect(Self.apply(.failed, to: &machine) == .wait(.milliseconds(100)))
    settings.reconnectionTime = .seconds(Int64.max)
    settings.delayMax = .seconds(Int64.max)
    machine = Self.machine(in: .connecting, settings)
    #expect(Self.apply(.failed, to: &machine, fraction: 1) == .wait(.seconds(1e9)))
  }

  // MARK: - An end

  @Test func tooManyFailures() {
    var settings = Machine.Settings()
    settings.failuresMax = 2
    for (fact, failure) in [
      (.failed, .connection), (.retriedStatus, .status(503)),
    ] as [(Fact, Machine.Failure)] {
      var machine = Self.machine(in: .connecting, settings)
      #expect(Self.apply(fact, to: &machine) == .wait(.seconds(3)))
      _ = machine.waited()
      #expect(Self.apply(fact, to: &machine) == .fail(failure))
    }
    var machine = Self.machine(in: .open, settings)
    // The end of a connection that has brought an event is no failure.
    for _ in 0..<5 {
      _ = Self.apply(.received, to: &machine)
      #expect(Self.apply(.ended, to: &machine) == .wait(.seconds(3)))
      _ = machine.waited()
      _ = Self.apply(.eventStream, to: &machine)
    }
    #expect(Self.apply(.ended, to: &machine) == .wait(.seconds(3)))
    _ = machine.waited()
    _ = Self.apply(.eventStream, to: &machine)
    #expect(Self.apply(.ended, to: &machine) == .fail(.ended))
    settings.failuresMax = 0
    machine = Self.machine(in: .connecting, settings)
    #expect(Self.apply(.failed, to: &machine) == .fail(.connection))
  }

  @Test func anotherReaderResumes() {
    var machine = Self.machine(in: .open)
    _ = Self.apply(.received, to: &machine)
    machine.left()
    #expect(machine.start() == .connect(lastEventID: "r"))
  }
}
