import Testing

@testable import AFNetworking

/// Applies facts in every order up to a length, and checks the decision after each step.
@Suite struct OperationMachineTests {
  typealias Machine = OperationMachine

  enum Fact: CaseIterable {
    case started, startedTooEarly, paused, resumed, cancelled, loadEnded
  }

  static func apply(_ fact: Fact, to machine: inout Machine) -> Machine.Action {
    switch fact {
    case .started: machine.started(isReady: true)
    case .startedTooEarly: machine.started(isReady: false)
    case .paused: machine.paused()
    case .resumed: machine.resumed()
    case .cancelled: machine.cancelled()
    case .loadEnded: machine.loadEnded()
    }
  }

  /// The machine's state and the loads that its actions have started.
  struct Observed: Hashable {
    var machine = Machine()
    var loads = 0
    var isFinished = false
  }

  static let reachable: Set<Observed> = {
    var seen: Set<Observed> = [Observed()]
    var next = seen
    while !next.isEmpty {
      var found: Set<Observed> = []
      for state in next {
        for fact in Fact.allCases where fact != .loadEnded || state.loads > 0 {
          let after = step(state, fact).0
          if seen.insert(after).inserted { found.insert(after) }
        }
      }
      next = found
    }
    return seen
  }()

  static func step(_ state: Observed, _ fact: Fact) -> (Observed, Machine.Action) {
    var after = state
    let action = apply(fact, to: &after.machine)
    if fact == .loadEnded { after.loads -= 1 }
    if action == .load { after.loads += 1 }
    if action == .finish || action == .finishCancelled { after.isFinished = true }
    return (after, action)
  }

  @Test func thereAreManyStates() { #expect(Self.reachable.count > 10 && Self.reachable.count < 100) }

  @Test func atMostOneLoad() {
    for state in Self.reachable { #expect((0...1).contains(state.loads), "\(state)") }
  }

  @Test func itFinishesOnce() {
    for state in Self.reachable {
      #expect(state.isFinished == (state.machine.state == .finished), "\(state)")
      guard state.isFinished else { continue }
      #expect(state.loads == 0)
      for fact in Fact.allCases where fact != .loadEnded {
        let (after, action) = Self.step(state, fact)
        #expect(action == .nothing && after.machine.state == .finished, "\(state) \(fact)")
      }
    }
  }

  /// From every reachable state, an operation that is cancelled, whose load ends and that is started has finished.
  @Test func aCancelledOneEnds() {
    for var state in Self.reachable {
      state = Self.step(state, .cancelled).0
      #expect(state.isFinished || state.machine.isCancelled)
      if state.loads > 0 { state = Self.step(state, .loadEnded).0 }
      state = Self.step(state, .started).0
      #expect(state.isFinished, "\(state)")
    }
  }

  /// From every reachable state without a cancellation, an operation that is resumed and started, and whose loads end,
  /// has finished.
  @Test func aResumedOneEnds() {
    for var state in Self.reachable where !state.machine.isCancelled {
      state = Self.step(state, .resumed).0
      state = Self.step(state, .started).0
      for _ in 0..<2 where state.loads > 0 { state = Self.step(state, .loadEnded).0 }
      #expect(state.isFinished, "\(state)")
    }
  }

  @Test func aPausedOneDoesNotEnd() {
    for state in Self.reachable where !state.machine.isCancelled && !state.isFinished {
      var after = Self.step(state, .paused).0
      #expect(after.machine.state == .paused && !after.machine.needsLoad)
      if after.loads > 0 {
        let (ended, action) = Self.step(after, .loadEnded)
        #expect(action == .nothing)
        after = ended
      }
      #expect(!after.isFinished && Self.step(after, .started).1 == .nothing)
    }
  }

  @Test func aLoadWaitsForTheOneBefore() {
    var machine = Machine()
    #expect(machine.started(isReady: false) == .nothing && machine.state == .ready)
    #expect(machine.started(isReady: true) == .load && machine.state == .executing && machine.needsLoad)
    #expect(machine.paused() == .stopLoad && machine.paused() == .nothing)
    #expect(machine.resumed() == .loadLater && machine.state == .executing && !machine.needsLoad)
    #expect(machine.paused() == .nothing && machine.resumed() == .loadLater)
    #expect(machine.loadEnded() == .load && machine.needsLoad)
    #expect(machine.loadEnded() == .finish)
  }

  /// Pausing after the load has delivered everything has no effect.
  @Test func whatIsThereIsNotLoadedAgain() {
    var machine = Machine()
    #expect(machine.started(isReady: true) == .load)
    var isWanted = machine.loadEnds()
    #expect(isWanted)
    #expect(machine.paused() == .nothing)
    #expect(machine.resumed() == .nothing)
    isWanted = machine.loadEnds()
    #expect(isWanted)
    #expect(machine.loadEnded() == .finish && machine.state == .finished)
  }

  @Test(arguments: [false, true]) func whatIsStoppedBringsNothing(isCancelled: Bool) {
    var machine = Machine()
    _ = machine.started(isReady: true)
    let action = isCancelled ? machine.cancelled() : machine.paused()
    #expect(action == (isCancelled ? .cancelLoad : .stopLoad))
    let isWanted = machine.loadEnds()
    #expect(!isWanted)
    #expect(machine.loadEnded() == (isCancelled ? .finishCancelled : .nothing))
  }

  @Test func whatIsThereMayBeCancelled() {
    var machine = Machine()
    _ = machine.started(isReady: true)
    let isWanted = machine.loadEnds()
    #expect(isWanted)
    #expect(machine.cancelled() == .cancelLoad)
    #expect(machine.loadEnded() == .finishCancelled)
  }

  @Test func oneThatIsPausedBeforeItsStartBecomesReady() {
    var machine = Machine()
    #expect(machine.paused() == .notifyReadiness && machine.started(isReady: false) == .nothing)
    #expect(machine.resumed() == .notifyReadiness && machine.started(isReady: true) == .load)
    machine = Machine()
    _ = machine.paused()
    #expect(machine.cancelled() == .notifyReadiness && machine.state == .ready)
    #expect(machine.started(isReady: false) == .finishCancelled)
  }

  /// An operation that is paused before its start does not run when its queue starts it, but when it is resumed.
  @Test func oneThatIsPausedOnItsWayToTheStartBeginsLater() {
    var machine = Machine()
    #expect(machine.paused() == .notifyReadiness && machine.started(isReady: true) == .nothing)
    #expect(machine.resumed() == .load)
    machine = Machine()
    _ = machine.paused()
    _ = machine.started(isReady: true)
    #expect(machine.cancelled() == .finishCancelled)
  }

  @Test func archivedStates() {
    #expect(Machine(state: .finished).state == .finished && Machine().state == .ready)
    #expect(Machine.State(rawValue: -1) == .paused && Machine.State(rawValue: 3) == .finished)
  }
}
