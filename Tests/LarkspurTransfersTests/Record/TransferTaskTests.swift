import Testing

@testable import LarkspurTransfers

/// Tests the parts of a task's record that the program and the executor decide.
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

  /// An acknowledged event is not delivered again, whether or not the executor had seen the acknowledgement.
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

  /// Suspended tasks need no executor. A cancelled one runs no more.
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

  /// A task that the next executor does not have keeps what the program has given it, and nothing that attempts have
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
