import Testing

@testable import LarkspurTransfers

@Suite struct TransferTableTests {
  private static func record(
    _ state: TransferRecord.State = .running, events: [TransferRecord.Event] = []
  ) -> TransferRecord { Fixture.plain(state, events: events) }

  private let resumed = TransferRecord.Event.resumed(offset: 5, expected: 9)

  @Test func commandsChangeStates() {
    var table = TransferTable()
    #expect(!table.isWorking)
    table.apply(.create(Self.record()))
    #expect(table.isWorking && table.count == 1)
    table.apply(.suspend(task: 1))
    #expect(table[1]?.state == .suspended && !table.isWorking)
    // A record from before the suspension.
    table.apply(.changed(Self.record(.running)))
    #expect(table[1]?.state == .suspended)
    table.apply(.resume(task: 1))
    #expect(table[1]?.state == .running)
    table.apply(.cancel(task: 1, isKeepingContent: false))
    table.apply(.resume(task: 1))
    #expect(table[1]?.state == .canceling && table.isWorking)
    table.apply(.changed(Self.record(.completed, events: [.completed])))
    #expect(table[1]?.state == .completed && !table.isWorking && table.hasEnd)
    // A late record does not begin the task again.
    table.apply(.changed(Self.record(.running)))
    table.apply(.suspend(task: 1))
    #expect(table[1]?.state == .completed)
    table.apply(.acknowledge(task: 1, count: 1))
    #expect(table.records.isEmpty)
    table.apply(.changed(Self.record(.running)))
    #expect(table.records.isEmpty)
  }

  @Test func propertiesAreTheProgramsOwn() {
    var table = TransferTable([Self.record()])
    table.apply(
      .update(task: 1, TransferProperties(description: "new", priority: 1, clientExpectsToReceive: 3)))
    var counts = TransferRecord.Counts()
    counts.received = 4
    table.apply(.changed(Self.record()))
    table.apply(.progress(task: 1, counts))
    #expect(table[1]?.taskDescription == "new" && table[1]?.priority == 1)
    #expect(table[1]?.counts.received == 4 && table[1]?.counts.clientExpectsToReceive == 3)
  }

  /// An acknowledged event is not delivered again, whether or not the executor had seen the acknowledgement.
  @Test(arguments: [false, true]) func acknowledgedEvents(isSeen: Bool) {
    var table = TransferTable([Self.record(events: [resumed])])
    table.apply(.acknowledge(task: 1, count: 1))
    #expect(table[1]?.events == [])
    let later: [TransferRecord.Event] = [.downloaded, .completed]
    var record = Self.record(.completed, events: isSeen ? later : [resumed] + later)
    record.hasContentFile = true
    table.apply(.changed(record))
    #expect(table[1]?.events == later)
    table.apply(.acknowledge(task: 1, count: 99))
    #expect(table.count == 0)
  }

  @Test func unknownTasks() {
    var table = TransferTable()
    for command in Fixture.commands.dropFirst(2) { table.apply(command) }
    for notice in Fixture.notices { table.apply(notice) }
    #expect(table.count == 0)
  }
}
