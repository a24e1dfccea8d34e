import LarkspurIO
import LarkspurSimulation
import TestKit
import Testing

@testable import LarkspurTransfers

/// Tests a journal whose disk fails at each call, and whose process or machine ends there.
@Suite struct TransferJournalFaultTests {
  enum Operation: CaseIterable, Sendable {
    case writeFirst, replace, remove
  }

  private static let old = Fixture.plain(task: 1, "https://example.com/old")
  private static let new = Fixture.plain(task: 1, "https://example.com/new/and/longer")
  /// A task that no operation concerns.
  private static let other = Fixture.fullDownload(task: 2)

  private static func before(_ operation: Operation) -> TransferRecord? { operation == .writeFirst ? nil : old }

  private static func after(_ operation: Operation) -> TransferRecord? { operation == .remove ? nil : new }

  private static func disk(_ operation: Operation) throws -> ScriptedDisk {
    let disk = ScriptedDisk()
    if let record = before(operation) {
      disk.put("1.task", try record.encoded())
      disk.put("1.part", [1, 2, 3])
    }
    disk.put("2.task", try other.encoded())
    disk.put("2.part", [4])
    return disk
  }

  private static func perform(_ operation: Operation, _ journal: TransferJournal) throws(TransferJournalError) {
    switch operation {
    case .writeFirst, .replace: try journal.write(new)
    case .remove: try journal.remove(task: 1)
    }
  }

  /// Performs an operation on a disk that fails at a call.
  ///
  /// - Returns: The error, or `nil` if the operation has succeeded.
  private static func attempt(_ operation: Operation, _ journal: TransferJournal) -> TransferJournalError? {
    do throws(TransferJournalError) {
      try perform(operation, journal)
      return nil
    } catch {
      return error
    }
  }

  /// Returns the first task's record on a disk, which is to have no problem and the other task unchanged.
  private static func found(_ journal: TransferJournal, _ place: Comment) throws -> TransferRecord? {
    let content = try journal.content()
    #expect(content.problems.isEmpty, place)
    #expect(content.records.filter { $0.task != 1 } == [other], place)
    return content.records.first { $0.task == 1 }
  }

  /// A call that fails once, as on a full disk: the error says which state is there, and the next attempt succeeds.
  @Test(arguments: Operation.allCases) func failsAtEachCall(operation: Operation) throws {
    var failures = 0
    for step in 0..<100 {
      let place: Comment = "\(operation), step \(step)"
      let disk = try Self.disk(operation)
      let lines = LogLines()
      let journal = try TransferJournal(disk, lines)
      _ = try journal.content()
      disk.fail(after: step, once: true)
      let error = Self.attempt(operation, journal)
      disk.fail(after: .max)
      let record = try Self.found(journal, place)
      switch error {
      case nil, .unsynced(.noSpace): #expect(record == Self.after(operation), place)
      case .unwritten(.noSpace): #expect(record == Self.before(operation), place)
      case let error: Issue.record("\(place): \(String(describing: error))")
      }
      if error != nil { failures += 1 }
      #expect(Self.attempt(operation, journal) == nil, place)
      #expect(try Self.found(journal, place) == Self.after(operation), place)
      #expect(!disk.names.contains("1.new"), place)
      if operation == .remove { #expect(!disk.names.contains("1.part"), place) }
      // With `error == nil`, the failing call was one whose failure changes nothing, or there was no such call.
      if error == nil, step > 12 { break }
    }
    // Removing the earlier `.new`, creating, appending twice, syncing, renaming and syncing; or removing and syncing.
    #expect(failures == (operation == .remove ? 2 : 7))
  }

  /// The tasks of a batch share one sync, which is repeated until it succeeds. After it a loss of power takes none.
  @Test func newTasksShareASync() throws {
    let disk = ScriptedDisk()
    let journal = try TransferJournal(disk)
    let earlier = disk.calls.count { $0 == "sync" }
    for task in 1...1_000 { try journal.add(Fixture.plain(task: task)) }
    #expect(disk.calls.count { $0 == "sync" } == earlier)
    disk.fail(after: 0, once: true)
    #expect(throws: TransferJournalError.unsynced(.noSpace)) { try journal.sync() }
    try journal.sync()
    try journal.sync()
    #expect(disk.calls.count { $0 == "sync" } == earlier + 2)
    var generator = SeededGenerator(seed: 1)
    #expect(try TransferJournal(disk.afterPowerLoss(&generator)).content().records.count == 1_000)
  }

  /// A loss of power takes nothing that a journal has read, although the process that wrote it was killed before its sync.
  @Test(arguments: Operation.allCases) func whatIsReadIsOnTheDisk(operation: Operation) throws {
    for step in 0..<8 {
      let disk = try Self.disk(operation)
      let journal = try TransferJournal(disk)
      _ = try journal.content()
      disk.fail(after: step)
      _ = Self.attempt(operation, journal)
      let next = disk.afterKill()
      let record = try Self.found(try TransferJournal(next), "step \(step)")
      for left in next.afterPowerLoss() {
        #expect(try Self.found(try TransferJournal(left), "step \(step)") == record, "step \(step)")
      }
    }
  }

  /// Content whose storage was confirmed survives a loss of power, and other content stays whole until then.
  @Test func contentIsStoredAsAWhole() throws {
    for step in 0..<12 {
      let disk = try Self.disk(.replace)
      let journal = try TransferJournal(disk)
      disk.fail(after: step)
      let isDone = (try? journal.storeContent([7, 8], of: 1)) != nil
      for left in disk.afterPowerLoss() {
        let bytes = left.bytes("1.part")
        #expect(bytes == [7, 8] || !isDone && bytes == [1, 2, 3], "step \(step)")
      }
      #expect(isDone == (step > 6), "step \(step)")
    }
  }

  /// A loss of power before the sync leaves whole records only, and a journal that is closed has them all.
  @Test func addedRecordsAreWholeOrAbsent() throws {
    let disk = ScriptedDisk()
    let journal = try TransferJournal(disk)
    for task in 1...2 { try journal.add(Fixture.plain(task: task)) }
    var counts: Set<Int> = []
    for left in disk.afterPowerLoss() {
      let content = try TransferJournal(left).content()
      #expect(content.problems.isEmpty)
      counts.insert(content.records.count)
    }
    #expect(counts == [0, 1, 2])
    journal.close()
    for left in disk.afterPowerLoss() { #expect(try TransferJournal(left).content().records.count == 2) }
  }

  /// A process that is killed at a call leaves the earlier state or the new one, and the next owner can go on.
  @Test(arguments: Operation.allCases) func killedAtEachCall(operation: Operation) throws {
    for step in 0..<12 {
      let place: Comment = "\(operation), step \(step)"
      let disk = try Self.disk(operation)
      let journal = try TransferJournal(disk)
      _ = try journal.content()
      disk.fail(after: step)
      let error = Self.attempt(operation, journal)
      try Self.check(disk.afterKill(), operation, isDone: error == nil, place)
    }
  }

  /// A loss of power at a call leaves the earlier state or the new one. An operation that has succeeded is there.
  @Test(arguments: Operation.allCases) func powerLostAtEachCall(operation: Operation) throws {
    var count = 0
    for step in 0..<12 {
      let disk = try Self.disk(operation)
      let journal = try TransferJournal(disk)
      _ = try journal.content()
      disk.fail(after: step)
      let error = Self.attempt(operation, journal)
      for left in disk.afterPowerLoss() {
        try Self.check(left, operation, isDone: error == nil, "\(operation), step \(step), disk \(count)")
        count += 1
      }
    }
    #expect(count > 50)
  }

  private static func check(
    _ disk: ScriptedDisk, _ operation: Operation, isDone: Bool, _ place: Comment
  ) throws {
    let journal = try TransferJournal(disk)
    let record = try found(journal, place)
    #expect(record == before(operation) || record == after(operation), place)
    if isDone { #expect(record == after(operation), place) }
    // Nothing of the interrupted operation is left, and a task's bytes are there exactly if its record is.
    let own = record == nil ? [] : operation == .writeFirst ? ["1.task"] : ["1.part", "1.task"]
    #expect(disk.names == own + ["2.part", "2.task"], place)
    if let record {
      let bytes = try record.encoded()
      #expect(disk.bytes("1.task") == bytes, place)
    }
    try journal.write(new)
    try journal.remove(task: 1)
    #expect(disk.names == ["2.part", "2.task"], place)
  }

  /// A record whose removal did not reach the disk finds its bytes, also if another owner saw no record meanwhile.
  @Test func aRecordThatComesBackHasItsBytes() throws {
    var comebacks = 0
    for step in 0..<4 {
      let disk = try Self.disk(.remove)
      let journal = try TransferJournal(disk)
      _ = try journal.content()
      disk.fail(after: step)
      _ = Self.attempt(.remove, journal)
      let killed = disk.afterKill()
      for calls in 0..<6 {
        let next = killed.afterKill()
        next.fail(after: calls)
        _ = try? TransferJournal(next)
        for left in next.afterPowerLoss() where left.names.contains("1.task") {
          comebacks += 1
          #expect(left.names.contains("1.part"), "step \(step), call \(calls)")
        }
      }
    }
    #expect(comebacks > 10)
  }

  /// The order of the calls is what makes a write safe.
  @Test func theCallsOfAWrite() throws {
    let disk = ScriptedDisk()
    let journal = try TransferJournal(disk)
    try journal.write(Self.new)
    #expect(
      disk.calls == [
        "lock", "list", "remove 1.new", "create 1.new", "append", "append", "sync file", "rename 1.new 1.task", "sync",
      ])
  }

  /// A full disk on which not even the incomplete file can be removed. The next write removes it first.
  @Test func aDiskOnWhichNothingSucceeds() throws {
    let disk = ScriptedDisk()
    let journal = try TransferJournal(disk)
    disk.fail(after: 3)
    #expect(throws: TransferJournalError.unwritten(.noSpace)) { try journal.write(Self.new) }
    #expect(disk.names == ["1.new"])
    disk.fail(after: .max)
    try journal.write(Self.new)
    #expect(disk.names == ["1.task"])
    #expect(try journal.content().records == [Self.new])
  }

  /// A disk that cannot be opened, listed or read at all.
  @Test func disksThatCannotBeRead() throws {
    let disk = ScriptedDisk()
    disk.put("1.task", try Self.old.encoded())
    for step in 0..<2 {
      disk.fail(after: step, with: .inputOutput)
      #expect(throws: TransferJournalError.unavailable(.inputOutput)) { try TransferJournal(disk) }
    }
    disk.fail(after: .max)
    let lines = LogLines()
    let journal = try TransferJournal(disk, lines)
    disk.setUnreadable(["1.task"])
    // The record may be right: nothing is set aside, and nothing can replace it.
    let content = try journal.content()
    #expect(content.records.isEmpty)
    #expect(content.problems == [TransferJournal.Problem(task: 1, reason: .unreadable(.inputOutput))])
    #expect(throws: TransferJournalError.unreadableRecord(task: 1)) { try journal.write(Self.new) }
    #expect(throws: TransferJournalError.unreadableRecord(task: 1)) { try journal.remove(task: 1) }
    disk.setUnreadable([])
    #expect(try journal.content().records == [Self.old])
    try journal.write(Self.new)
    #expect(lines.all.isEmpty)
  }
}
