import LarkspurHTTP
import Testing

@testable import LarkspurTransfers

/// The machine of a task in its runner as a table: every phase, of a task that runs and of one that is suspended, crossed
/// with every fact.
@Suite struct TransferAttemptMachineTests {
  typealias Machine = TransferAttemptMachine

  static let now = moment(1_000)

  static func moment(_ seconds: Double) -> TransferMoment {
    TransferMoment(wallSeconds: 2_000_000_000 + seconds, bootSeconds: seconds, boot: 1)
  }

  static func machine(
    _ phase: Machine.Phase, _ state: TransferRecord.State = .running, task: Int = 1, isDiscretionary: Bool = false,
    _ change: (inout TransferRecord) -> Void = { _ in }
  ) -> Machine {
    var record = Fixture.plain(phase == .over ? .completed : .running, task: task)
    record.createdSeconds = now.wallSeconds
    record.adjust(to: now)
    record.isDiscretionary = isDiscretionary
    change(&record)
    var machine = Machine(record, secondsForResource: 5_000)
    switch phase {
    case .waiting, .over: break
    case .asking: machine.asked()
    case .looking: machine.looked(isQuiet: false)
    case .loading: _ = machine.began()
    }
    if state == .suspended { machine.task.apply(.suspended(at: now)) }
    return machine
  }

  enum Fact: CaseIterable, Sendable {
    case asked, answered, quiet, busy, began, stopped, failed, ended, resumed, suspended, cancelled

    func report(_ machine: inout Machine) {
      switch self {
      case .asked: machine.asked()
      case .answered: _ = machine.answered(.continueLoading)
      case .quiet: machine.looked(isQuiet: true)
      case .busy: machine.looked(isQuiet: false)
      case .began: _ = machine.began()
      case .stopped: machine.stopped()
      case .failed: machine.failed(delay: nil, fraction: 1, at: now)
      case .ended: _ = machine.ended(nil)
      case .resumed: machine.task.apply(.resumed(at: now))
      case .suspended: machine.task.apply(.suspended(at: now))
      case .cancelled: machine.task.apply(.cancelled(isKeepingContent: true))
      }
    }
  }

  /// The phases after the facts in the order of `Fact.allCases`, up to `ended`: asked, answered, quiet, busy, began, stopped,
  /// failed, ended.
  static let phases: [(Machine.Phase, [Machine.Phase])] = [
    (.waiting, [.asking, .waiting, .waiting, .looking, .loading, .waiting, .waiting, .over]),
    (.asking, [.asking, .waiting, .asking, .asking, .asking, .asking, .waiting, .over]),
    (.looking, [.asking, .looking, .waiting, .looking, .loading, .looking, .waiting, .over]),
    (.loading, [.loading, .loading, .loading, .loading, .loading, .waiting, .waiting, .over]),
    (.over, [.over, .over, .over, .over, .over, .over, .over, .over]),
  ]

  @Test(arguments: phases.indices, [TransferRecord.State.running, .suspended])
  func everyFact(row: Int, state: TransferRecord.State) {
    let (phase, cells) = Self.phases[row]
    for (fact, cell) in zip(Fact.allCases, cells) {
      var machine = Self.machine(phase, state)
      fact.report(&machine)
      #expect(machine.phase == cell, "\(phase), \(state), \(fact)")
    }
    // Commands change the state, and no phase.
    let states: [(Fact, TransferRecord.State)] = [
      (.resumed, .running), (.suspended, .suspended), (.cancelled, .canceling),
    ]
    for (fact, next) in states {
      var machine = Self.machine(phase, state)
      fact.report(&machine)
      #expect(machine.phase == phase && machine.record.state == (phase == .over ? .completed : next))
    }
  }

  // MARK: - What is due

  /// A change of a record, and what is due for the task then.
  static let steps: [(String, @Sendable (inout TransferRecord) -> Void, Machine.Step)] = [
    ("nothing to wait for", { _ in }, .load),
    ("no time left", { $0.createdSeconds -= 5_000 }, .timeOut),
    ("a pause that does not count", { ($0.createdSeconds, $0.pausedSeconds) = ($0.createdSeconds - 5_000, 10) }, .load),
    (
      "a retry", { $0.nextAttemptSeconds = now.wallSeconds + 9 },
      .wait(seconds: 9, byWallClock: false)
    ),
    ("a retry that is due", { $0.nextAttemptSeconds = now.wallSeconds }, .load),
    (
      "an earliest time", { $0.earliestBeginSeconds = now.wallSeconds + 9 },
      .wait(seconds: 9, byWallClock: true)
    ),
    (
      "an earliest time after the end", { $0.earliestBeginSeconds = now.wallSeconds + 9_000 },
      .wait(seconds: 5_000, byWallClock: true)
    ),
    ("an earliest time that is over", { $0.earliestBeginSeconds = now.wallSeconds }, .ask),
    ("a task for a quiet machine", { $0.isDiscretionary = true }, .look),
  ]

  @Test(arguments: steps.indices, Machine.Phase.allCases) func whatIsDue(row: Int, phase: Machine.Phase) {
    let (name, change, step) = Self.steps[row]
    let machine = Self.machine(phase, .running, change)
    // The suspension begins and ends at one moment.
    let suspended = Self.machine(phase, .suspended, change)
    #expect(suspended.next(at: Self.now, among: [suspended]) == .nothing)
    let expected: Machine.Step =
      switch (phase, step) {
      case (.over, _), (.loading, _): .nothing
      // An answer is being waited for, as long as there is time.
      case (.asking, .load), (.asking, .ask), (.asking, .look):
        .wait(seconds: machine.secondsLeft(at: Self.now), byWallClock: false)
      default: step
      }
    #expect(machine.next(at: Self.now, among: [machine]) == expected, "\(name), \(phase)")
  }

  /// One discretionary task is loaded at a time: the oldest that is due. An older one that is due is begun, and the
  /// younger one does not wait for a timer that is late.
  @Test func turns() {
    let older = Self.machine(.waiting, task: 1, isDiscretionary: true) {
      $0.nextAttemptSeconds = Self.now.wallSeconds + 5
    }
    let younger = Self.machine(.waiting, task: 2, isDiscretionary: true)
    #expect(younger.next(at: Self.now, among: [older, younger]) == .look)
    let later = Self.moment(1_005)
    #expect(younger.next(at: later, among: [older, younger]) == .queue(isDue: true))
    #expect(Machine.firstDiscretionary(at: later, among: [younger, older]) == older)
    var looking = older
    looking.looked(isQuiet: false)
    #expect(younger.next(at: later, among: [looking, younger]) == .queue(isDue: false))
    // Each phase and state of the older one.
    for phase in Machine.Phase.allCases {
      for state in [TransferRecord.State.running, .suspended] {
        let older = Self.machine(phase, state, task: 1, isDiscretionary: true)
        let expected: Machine.Step =
          switch (phase, state) {
          case (.loading, .running), (.looking, .running): .queue(isDue: false)
          case (.waiting, .running): .queue(isDue: true)
          default: .look
          }
        #expect(younger.next(at: Self.now, among: [older, younger]) == expected, "\(phase), \(state)")
      }
    }
    let other = Self.machine(.loading, task: 3)
    #expect(younger.next(at: Self.now, among: [other, younger]) == .queue(isDue: false))
  }

  // MARK: - Times

  @Test func theWaitDoublesUpToALimit() {
    #expect((1...10).map { Machine.wait(failures: $0, fraction: 1) } == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300])
    #expect((1...3).map { Machine.wait(failures: $0, fraction: 0) } == [0.5, 1, 2])
    #expect(Machine.wait(failures: .max, fraction: 1) == 300)
    #expect(Machine.wait(failures: 0, fraction: 1) == 1)
  }

  /// The wait is short again after an advance, and never shorter than the server's own.
  @Test func failures() {
    var machine = Self.machine(.loading)
    var waits: [Double] = []
    for (offset, delay) in [(0, nil), (0, nil), (Machine.advanceMin - 1, nil), (Machine.advanceMin, 7.0), (0, 0.1)] {
      machine.task.apply(.redirected(url: "http://example.com/"))
      machine.task.apply(.resumePoint(ResumePoint(validator: "\"a\"", offset: offset, total: nil, coding: nil)))
      machine.failed(delay: delay, fraction: 1, at: Self.now)
      #expect(machine.record.redirects == [])
      waits.append((machine.record.nextAttemptSeconds ?? 0) - Self.now.wallSeconds)
      machine.task.apply(.resumePoint(nil))
      #expect(machine.began() && machine.record.nextAttemptSeconds == nil && !machine.began())
    }
    #expect(waits == [1, 2, 4, 7, 2])
  }

  @Test func suspensionsDoNotCount() {
    var machine = Self.machine(.waiting)
    machine.task.apply(.suspended(at: Self.moment(1_100)))
    machine.task.apply(.resumed(at: Self.moment(1_400)))
    #expect(machine.secondsLeft(at: Self.moment(1_500)) == 4_800)
  }

  // MARK: - Records

  @Test func newRequests() {
    var machine = Self.machine(.asking) { ($0.earliestBeginSeconds, $0.hasContentFile) = (1, true) }
    let point = ResumePoint(validator: "\"a\"", offset: 5, total: nil, coding: nil)
    machine.task.apply(.resumePoint(point))
    machine.task.apply(.uploadPoint([1]))
    var request = machine.record.originalRequest
    request.method = "PUT"
    #expect(machine.answered(.useNewRequest(request)) == .begin)
    #expect(machine.record.resumePoint == point && machine.record.uploadPoint == nil)
    #expect(machine.record.currentRequest == request && machine.record.earliestBeginSeconds == nil)
    request.url = "https://example.com/other"
    #expect(machine.answered(.useNewRequest(request)) == .begin && machine.record.resumePoint == nil)
    request.body = [UInt8](repeating: 0, count: TransferRecord.newBytesMax)
    #expect(machine.answered(.useNewRequest(request)) == .tooLarge && machine.record.currentRequest != request)
    #expect(machine.answered(.cancel) == .cancel)
  }

  @Test(arguments: [true, false]) func ends(isFailed: Bool) {
    let failure = isFailed ? TransferRecord.Failure(domain: "d", code: 1, message: "m") : nil
    var machine = Self.machine(.loading) { $0.hasContentFile = true }
    #expect(machine.ended(failure) == isFailed)
    #expect(machine.record.failure == failure && machine.record.hasContentFile != isFailed)
    #expect(machine.record.events == (isFailed ? [.completed] : [.downloaded, .completed]))
    machine.task.apply(.cancelled(isKeepingContent: false))
    #expect(machine.record.state == .completed && !machine.task.isOver)
    machine.task.apply(.acknowledged(99))
    #expect(machine.task.isOver)
    // The bytes of a failed download stay if another task can continue from them.
    var kept = Self.machine(.loading) { $0.hasContentFile = true }
    kept.task.apply(.resumePoint(ResumePoint(validator: "\"a\"", offset: 5, total: nil, coding: nil)))
    #expect(!kept.ended(failure) && kept.record.hasContentFile)
  }
}
