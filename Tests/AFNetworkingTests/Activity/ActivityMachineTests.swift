import Testing

@testable import AFNetworking

/// Every state of the machine crossed with every event. Times are numbers: nothing waits.
@Suite struct ActivityMachineTests {
  typealias State = ActivityMachine.State

  static let start: UInt64 = 100
  static let end: UInt64 = 30

  /// A machine in each of its states at time 1000.
  static func machine(in state: String) -> ActivityMachine {
    var machine = ActivityMachine()
    machine.activationDelay = start
    machine.completionDelay = end
    guard state != "disabled" else { return machine }
    machine.enable(true, now: 0)
    guard state != "idle" else { return machine }
    machine.increment(now: 1000)
    guard state != "delayingStart" else { return machine }
    machine.expire(now: 1000 + start)
    guard state != "active" else { return machine }
    machine.decrement(now: 1000 + start)
    return machine
  }

  @Test func statesOfTheFixture() {
    #expect(Self.machine(in: "idle").state == .idle && Self.machine(in: "disabled").state == .idle)
    #expect(Self.machine(in: "delayingStart").state == .delayingStart(until: 1100))
    #expect(Self.machine(in: "active").state == .active && Self.machine(in: "active").isVisible)
    #expect(Self.machine(in: "delayingEnd").state == .delayingEnd(until: 1130))
    #expect(Self.machine(in: "delayingEnd").isVisible && !Self.machine(in: "delayingStart").isVisible)
  }

  /// Each event at time 1110, which is after the delay of the start and before that of the end.
  @Test(arguments: [
    ("disabled", State.idle, State.idle, State.idle, State.idle),
    ("idle", .delayingStart(until: 1210), .idle, .idle, .idle),
    ("delayingStart", .active, .idle, .active, .idle),
    ("active", .active, .delayingEnd(until: 1140), .active, .idle),
    ("delayingEnd", .active, .delayingEnd(until: 1130), .delayingEnd(until: 1130), .idle),
  ])
  func everyEvent(state: String, increment: State, decrement: State, expire: State, disable: State) {
    var machine = Self.machine(in: state)
    machine.increment(now: 1110)
    #expect(machine.state == increment)
    machine = Self.machine(in: state)
    machine.decrement(now: 1110)
    #expect(machine.state == decrement)
    machine = Self.machine(in: state)
    machine.expire(now: 1110)
    #expect(machine.state == expire)
    machine = Self.machine(in: state)
    machine.enable(false, now: 1110)
    #expect(machine.state == disable && machine.deadline == nil)
  }

  /// A delaying state is left at its deadline, and not before.
  @Test func deadlines() {
    var machine = Self.machine(in: "delayingStart")
    #expect(machine.deadline == 1100)
    machine.expire(now: 1099)
    #expect(machine.state == .delayingStart(until: 1100))
    machine.decrement(now: 1099)
    #expect(machine.state == .delayingStart(until: 1100))
    machine.expire(now: 1100)
    #expect(machine.state == .idle)
    machine = Self.machine(in: "delayingEnd")
    machine.expire(now: 1129)
    #expect(machine.isVisible)
    machine.expire(now: 1130)
    #expect(!machine.isVisible && machine.deadline == nil)
  }

  @Test func withoutDelays() {
    var machine = ActivityMachine()
    machine.activationDelay = 0
    machine.completionDelay = 0
    machine.enable(true, now: 5)
    machine.increment(now: 5)
    #expect(machine.state == .active)
    machine.decrement(now: 5)
    #expect(machine.state == .idle)
  }

  /// Activity is counted while the machine is disabled, and shown when it is enabled.
  @Test func counts() {
    var machine = ActivityMachine()
    machine.decrement(now: 0)
    #expect(machine.activityCount == 0)
    machine.increment(now: 0)
    machine.increment(now: 0)
    #expect(machine.activityCount == 2 && machine.state == .idle)
    machine.enable(true, now: 7)
    #expect(machine.state == .delayingStart(until: 1_000_000_007))
    machine.activationDelay = .max
    machine.enable(false, now: 8)
    machine.enable(true, now: 8)
    #expect(machine.state == .delayingStart(until: .max))
  }
}
