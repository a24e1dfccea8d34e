import Testing

@testable import LarkspurTransfers

@Suite struct TransferOutboxTests {
  private static func counts(_ received: Int64) -> TransferRecord.Counts {
    var counts = TransferRecord.Counts()
    counts.received = received
    return counts
  }

  private static func all(_ outbox: TransferOutbox) -> [TransferNotice] {
    var (outbox, notices) = (outbox, [TransferNotice]())
    while let notice = outbox.next() { notices.append(notice) }
    return notices
  }

  @Test func latestWins() {
    var outbox = TransferOutbox()
    #expect(outbox.isEmpty)
    for number in 1...3 { _ = outbox.add(.progress(task: 1, Self.counts(Int64(number)))) }
    #expect(Self.all(outbox) == [.progress(task: 1, Self.counts(3))])
    // A record takes the place of counts, and later counts are put into the record.
    _ = outbox.add(.changed(Fixture.plain(.running)))
    _ = outbox.add(.progress(task: 2, Self.counts(1)))
    _ = outbox.add(.progress(task: 1, Self.counts(9)))
    var record = Fixture.plain(.running)
    record.counts = Self.counts(9)
    #expect(Self.all(outbox) == [.changed(record), .progress(task: 2, Self.counts(1))])
    _ = outbox.add(.changed(Fixture.plain(.completed, events: [.completed])))
    #expect(Self.all(outbox).first == .changed(Fixture.plain(.completed, events: [.completed])))
  }

  @Test func theSizeIsBounded() {
    var outbox = TransferOutbox()
    for round in 0..<1_000 {
      for task in 1...10 {
        _ = outbox.add(.progress(task: task, Self.counts(Int64(round))))
        _ = outbox.add(.changed(Fixture.plain(.running, task: task)))
      }
    }
    #expect(outbox.count == 10)
    for number in 0..<UInt64(TransferOutbox.questionsMax) {
      let isTaken = outbox.add(.question(number, task: 1, .beginDelayed))
      #expect(isTaken)
    }
    let isTaken = outbox.add(.question(.max, task: 1, .beginDelayed))
    #expect(!isTaken)
    #expect(outbox.count == 10 + TransferOutbox.questionsMax)
  }

  @Test func takingAndAddingInTurn() {
    var outbox = TransferOutbox()
    var taken: [TransferNotice] = []
    for number in 1...1_000 {
      _ = outbox.add(.progress(task: number, Self.counts(1)))
      if number % 3 != 0, let notice = outbox.next() { taken.append(notice) }
    }
    taken += Self.all(outbox)
    #expect(taken == (1...1_000).map { .progress(task: $0, Self.counts(1)) })
  }
}
