import Testing

@testable import LarkspurTransfers

@Suite struct SendQueueTests {
  private static func counts(_ received: Int64) -> TransferRecord.Counts {
    var counts = TransferRecord.Counts()
    counts.received = received
    return counts
  }

  private static func all(_ sendQueue: SendQueue) -> [TransferNotice] {
    var (sendQueue, notices) = (sendQueue, [TransferNotice]())
    while let notice = sendQueue.next() { notices.append(notice) }
    return notices
  }

  @Test func latestWins() {
    var sendQueue = SendQueue()
    #expect(sendQueue.isEmpty)
    for number in 1...3 { _ = sendQueue.add(.progress(task: 1, Self.counts(Int64(number)))) }
    #expect(Self.all(sendQueue) == [.progress(task: 1, Self.counts(3))])
    // A record takes the place of counts, and later counts are put into the record.
    _ = sendQueue.add(.changed(Fixture.plain(.running)))
    _ = sendQueue.add(.progress(task: 2, Self.counts(1)))
    _ = sendQueue.add(.progress(task: 1, Self.counts(9)))
    var record = Fixture.plain(.running)
    record.counts = Self.counts(9)
    #expect(Self.all(sendQueue) == [.changed(record), .progress(task: 2, Self.counts(1))])
    _ = sendQueue.add(.changed(Fixture.plain(.completed, events: [.completed])))
    #expect(Self.all(sendQueue).first == .changed(Fixture.plain(.completed, events: [.completed])))
  }

  @Test func theSizeIsBounded() {
    var sendQueue = SendQueue()
    for round in 0..<1_000 {
      for task in 1...10 {
        _ = sendQueue.add(.progress(task: task, Self.counts(Int64(round))))
        _ = sendQueue.add(.changed(Fixture.plain(.running, task: task)))
      }
    }
    #expect(sendQueue.count == 10)
    for number in 0..<UInt64(SendQueue.questionsMax) {
      let isTaken = sendQueue.add(.question(number, task: 1, .beginDelayed))
      #expect(isTaken)
    }
    let isTaken = sendQueue.add(.question(.max, task: 1, .beginDelayed))
    #expect(!isTaken)
    #expect(sendQueue.count == 10 + SendQueue.questionsMax)
  }

  @Test func takingAndAddingInTurn() {
    var sendQueue = SendQueue()
    var taken: [TransferNotice] = []
    for number in 1...1_000 {
      _ = sendQueue.add(.progress(task: number, Self.counts(1)))
      if number % 3 != 0, let notice = sendQueue.next() { taken.append(notice) }
    }
    taken += Self.all(sendQueue)
    #expect(taken == (1...1_000).map { .progress(task: $0, Self.counts(1)) })
  }
}
