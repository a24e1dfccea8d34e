import Testing

@testable import LarkspurTransfers

/// Tests the parts of a task's record that the program and the runner decide.
@Suite struct TransferTaskTests {
  private static let properties = TransferProperties(description: "mine", priority: 1)

  /// A notice may be older than the program's latest changes.
  @Test(arguments: [TransferTask.Event.suspended(), .cancelled(isKeepingContent: true)])
  func theProgramsChangesWin(event: TransferTask.Event) {
    var task = TransferTask(.running(1), isNew: false)
    task.apply(event)
    task.apply(.updated(Self.properties))
    let state = task.record.state
    task.apply(.changed(.running(1)))
    task.apply(.progressed(TransferRecord.Counts()))
    #expect(task.record.state == state && state != .running)
    #expect(TransferProperties(task.record) == Self.properties)
    task.apply(.changed(.running(1, .completed, [.completed])))
    #expect(task.record.state == .completed && task.phase == .ending)
  }

  @Test(arguments: [TransferTask.Phase.ending, .left, .kept]) func anEndIsFinal(phase: TransferTask.Phase) {
    var task = TransferTask(.running(1, .completed, [.completed]), isNew: false)
    if phase == .left { task.apply(.fileLeft) }
    if phase == .kept { task.apply(.kept) }
    let before = task.record
    for event in [TransferTask.Event.changed(.running(1)), .progressed(.init()), .resumed(), .suspended()] {
      task.apply(event)
    }
    #expect(task.record == before && task.phase == phase)
  }

  /// An acknowledged event is not delivered again, whether or not the runner had seen the acknowledgement.
  @Test(arguments: [false, true]) func acknowledgedEvents(isSeen: Bool) {
    let resumed = TransferRecord.Event.resumed(offset: 5, expected: 9)
    var task = TransferTask(.running(1, .running, [resumed]), isNew: false)
    task.apply(.acknowledged(1))
    #expect(task.record.events.isEmpty && !task.isOver)
    let later: [TransferRecord.Event] = [.downloaded, .completed]
    task.apply(.changed(.running(1, .completed, isSeen ? later : [resumed] + later)))
    #expect(task.record.events == later && !task.isOver)
    task.apply(.acknowledged(99))
    #expect(task.isOver)
  }

  /// Suspended tasks need no runner. A cancelled one runs no more.
  @Test func statesOfCommands() {
    let commands: [TransferCommand] = [
      .suspend(task: 1), .resume(task: 1), .cancel(task: 1, isKeepingContent: false), .resume(task: 1),
      .suspend(task: 1),
    ]
    let states: [TransferRecord.State] = [.suspended, .running, .canceling, .canceling, .canceling]
    var task = TransferTask(.running(1), isNew: false)
    for (command, state) in zip(commands, states) {
      guard let (number, event) = command.change else { return #expect(Bool(false), "\(command)") }
      task.apply(event)
      #expect(number == 1 && task.record.state == state && task.isWorking == (state != .suspended), "\(command)")
    }
  }

  private static let request = TransferRequest(url: "https://example.com/other")

  /// The events of a runner, each with the parts of the record that it changes.
  static let changes: [(event: TransferTask.Event, change: @Sendable (inout TransferRecord) -> Void)] = [
    (.startAnswered(nil), { $0.earliestBeginSeconds = nil }),
    (.attemptBegan, { $0.nextAttemptSeconds = nil }),
    (.attemptFailed(failures: 4, next: 9), { ($0.redirects, $0.failedAttempts, $0.nextAttemptSeconds) = ([], 4, 9) }),
    (.redirected(url: "http://a/"), { $0.redirects.append("http://a/") }),
    (.redirected(url: String(repeating: "a", count: TransferRecord.redirectsBytesMax)), { _ in }),
    (.continued(offset: 5, expected: -7), { $0.events.append(.resumed(offset: 5, expected: -1)) }),
    (.resumePoint(nil), { $0.resumePoint = nil }), (.uploadPoint([1]), { $0.uploadPoint = [1] }),
    (.contentFile(isThere: false), { $0.hasContentFile = false }),
    (.loaded(nil), { ($0.response, $0.failedAttempts, $0.resumePoint) = (nil, 0, nil) }),
    (.reached(request), { $0.currentRequest = request }),
    (.cancelled(isKeepingContent: true), { $0.state = .canceling }),
    (.cancelled(isKeepingContent: false), { ($0.state, $0.resumePoint) = (.canceling, nil) }),
  ]

  @Test(arguments: changes.indices) func anEventChangesItsParts(row: Int) {
    var record = Fixture.fullDownload()
    (record.state, record.events, record.failure, record.underlyingFailure) = (.running, [], nil, nil)
    var task = TransferTask(record, isNew: false)
    task.apply(Self.changes[row].event)
    Self.changes[row].change(&record)
    #expect(task.record == record && task.phase == .sent, "\(Self.changes[row].event)")
  }

  /// A task that the next runner does not have keeps what the program has given it, and nothing that attempts have
  /// brought.
  @Test func aTaskStartsOver() {
    var record = Fixture.fullDownload(task: 1)
    record.state = .suspended
    (record.failure, record.underlyingFailure) = (nil, nil)
    var task = TransferTask(record, isNew: false)
    task.apply(.sent)
    let now = task.record
    #expect(now.originalRequest == record.originalRequest && now.cookies == record.cookies && now.state == .suspended)
    #expect(TransferProperties(now) == TransferProperties(record) && now.createdSeconds == record.createdSeconds)
    #expect(now.events.isEmpty && now.redirects.isEmpty && now.response == nil && now.resumePoint == nil)
    #expect(!now.hasContentFile && now.counts.received == 0 && now.counts.expectedToReceive == -1)
    #expect((try? now.encoded()) != nil)
  }
}
