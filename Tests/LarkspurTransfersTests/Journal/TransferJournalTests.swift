import LarkspurBytes
import LarkspurIO
import LarkspurSimulation
import Testing

@testable import LarkspurTransfers

@Suite struct TransferJournalTests {
  @Test func recordsAreListedInOrder() throws {
    let journal = try TransferJournal(ScriptedDisk())
    #expect(try journal.content().records.isEmpty)
    let records = [10, 2, 1].map { Fixture.plain(task: $0) }
    for record in records { try journal.write(record) }
    #expect(try journal.content().records == records.reversed())
    try journal.remove(task: 10)
    try journal.remove(task: 10)
    #expect(try journal.content().records.map(\.task) == [1, 2])
  }

  @Test func oneOwner() throws {
    let disk = ScriptedDisk()
    var journal: TransferJournal? = try TransferJournal(disk)
    try journal?.write(Fixture.plain())
    #expect(throws: TransferJournalError.inUse) { try TransferJournal(disk) }
    #expect(try journal?.content().records.count == 1)
    journal = nil
    #expect(try TransferJournal(disk).content().records == [Fixture.plain()])
  }

  @Test func sessionsThatAreNone() {
    for session in ["", "a\nb", String(repeating: "x", count: TransferRecord.sessionBytesMax + 1)] {
      #expect(throws: TransferJournalError.record(.invalid("the session identifier"))) {
        try TransferJournal(files: ScriptedDisk(), session: session) { _ in }
      }
    }
  }

  @Test func recordsThatDoNotBelongHere() throws {
    let disk = ScriptedDisk()
    let journal = try TransferJournal(disk)
    #expect(throws: TransferJournalError.otherSession("other")) {
      try journal.write(Fixture.plain(session: "other"))
    }
    var record = Fixture.plain()
    record.priority = 2
    #expect(throws: TransferJournalError.record(.invalid("the priority"))) { try journal.write(record) }
    #expect(disk.names.isEmpty)
  }

  // MARK: - Damage

  /// Each prefix and each changed byte of a file: the task is reported once with what is wrong, its file is set aside,
  /// and the other tasks stay.
  @Test func damagedFilesAreSetAside() throws {
    let good = try Fixture.plain(task: 1).encoded()
    let other = Fixture.fullDownload(task: 2)
    var damaged = [good + [0], [UInt8](repeating: 1, count: TransferRecord.bytesMax + 1)]
    for index in good.indices {
      damaged.append(Array(good[..<index]))
      var changed = good
      changed[index] ^= 1
      damaged.append(changed)
    }
    let line = "set 1.task of session \"\(Fixture.session)\" aside as 1.damaged: "
    for bytes in damaged {
      let disk = ScriptedDisk()
      disk.put("1.task", bytes)
      disk.put("1.part", [1])
      disk.put("2.task", try other.encoded())
      let lines = LogLines()
      let journal = try TransferJournal(disk, lines)
      let content = try journal.content()
      #expect(content.records == [other])
      #expect(content.problems.map(\.task) == [1])
      switch content.problems.first?.reason {
      case .damaged(.damaged), .damaged(.tooLarge): break
      case let reason: Issue.record("\(String(describing: reason))")
      }
      #expect(disk.names == ["1.damaged", "1.part", "2.task"])
      #expect(disk.bytes("1.damaged") == bytes)
      #expect(lines.all.count == 1)
      #expect(lines.all.allSatisfy { $0.hasPrefix(line) })
      #expect(try journal.content().problems.isEmpty)
    }
  }

  /// A record under the name of another task, or of another session, is not taken for this one's.
  @Test func filesThatWereMoved() throws {
    let disk = ScriptedDisk()
    disk.put("3.task", try Fixture.plain(task: 1).encoded())
    disk.put("4.task", try Fixture.plain(task: 4, session: "other").encoded())
    let content = try TransferJournal(disk).content()
    #expect(content.records.isEmpty)
    #expect(
      content.problems == [
        TransferJournal.Problem(task: 3, reason: .damaged(.damaged("the record belongs to task 1"))),
        TransferJournal.Problem(task: 4, reason: .damaged(.damaged("the record belongs to another session"))),
      ])
  }

  @Test func aDamagedFileThatCannotBeSetAside() throws {
    let disk = ScriptedDisk()
    disk.put("1.task", [1])
    let lines = LogLines()
    let journal = try TransferJournal(disk, lines)
    for round in 1...2 {
      // The list and the read succeed, and the renaming fails.
      disk.fail(after: 2, with: .readOnlyFileSystem)
      #expect(try journal.content().problems.count == 1)
      #expect(disk.names == ["1.task"])
      #expect(lines.all.count == round)
    }
    #expect(lines.all.allSatisfy { $0.contains("cannot set 1.task") && $0.contains("EROFS") })
  }

  /// Damaged files do not fill the disk.
  @Test func damagedFilesAreLimited() throws {
    let disk = ScriptedDisk()
    for task in 1...(TransferJournal.damagedMax + 2) {
      disk.put("\(task).damaged", [1])
      disk.put("\(task).part", [1])
    }
    let lines = LogLines()
    _ = try TransferJournal(disk, lines)
    #expect(disk.names.filter { $0.hasSuffix("damaged") }.count == TransferJournal.damagedMax)
    #expect(disk.names.filter { $0.hasSuffix("part") }.count == TransferJournal.damagedMax)
    #expect(!disk.names.contains("1.damaged") && !disk.names.contains("2.part") && disk.names.contains("3.part"))
    #expect(lines.all.count == 4)
  }

  // MARK: - Other versions

  /// The file of another version is reported with its version, and stays for that version.
  @Test(arguments: [1, TransferRecord.formatVersion + 1, .max]) func otherVersions(version: UInt32) throws {
    let disk = ScriptedDisk()
    let file = RecordEnvelope(name: "LKTR", version: version).wrapped([1, 2, 3])
    disk.put("5.task", file)
    disk.put("5.part", [1])
    let lines = LogLines()
    let journal = try TransferJournal(disk, lines)
    for _ in 0..<2 {
      let content = try journal.content()
      #expect(content.records.isEmpty)
      #expect(
        content.problems == [
          TransferJournal.Problem(
            task: 5, reason: .otherVersion(.otherVersion(version, known: TransferRecord.formatVersion)))
        ])
    }
    #expect(throws: TransferJournalError.unreadableRecord(task: 5)) { try journal.write(Fixture.plain(task: 5)) }
    #expect(throws: TransferJournalError.unreadableRecord(task: 5)) { try journal.remove(task: 5) }
    #expect(disk.names == ["5.part", "5.task"])
    #expect(disk.bytes("5.task") == file)
    #expect(lines.all.isEmpty)
    try journal.write(Fixture.plain(task: 6))
    #expect(try journal.content().records.map(\.task) == [6])
  }

  /// A record of an earlier process is not replaced before it has been read.
  @Test func recordsThatWereNotRead() throws {
    let disk = ScriptedDisk()
    disk.put("1.task", try Fixture.plain().encoded())
    let journal = try TransferJournal(disk)
    #expect(throws: TransferJournalError.unreadableRecord(task: 1)) { try journal.write(Fixture.plain()) }
    _ = try journal.content()
    try journal.write(Fixture.plain())
  }

  // MARK: - What the next owner removes

  @Test func filesOfInterruptedWrites() throws {
    let disk = ScriptedDisk()
    disk.put("1.task", try Fixture.plain().encoded())
    disk.put("1.part", [1])
    disk.put("1.new", [1])
    disk.put("2.new", [1])
    disk.put("3.part", [1])
    disk.put("4.part", [1])
    disk.put("4.damaged", [1])
    for name in ["other", "01.new", "+1.new", "0.new", "1.new.new", ".new", "4294967296.new", "1.News"] {
      disk.put(name, [1])
    }
    let lines = LogLines()
    _ = try TransferJournal(disk, lines)
    #expect(
      disk.names == [
        "+1.new", ".new", "0.new", "01.new", "1.News", "1.new.new", "1.part", "1.task", "4.damaged", "4.part",
        "4294967296.new", "other",
      ])
    #expect(lines.all.count == 3)
    #expect(lines.all.allSatisfy { $0.hasPrefix("removed ") })
  }

  // MARK: - Limits

  @Test func tasksAreLimited() throws {
    let disk = ScriptedDisk()
    for task in 1...TransferJournal.tasksMax { disk.put("\(task).task", []) }
    let journal = try TransferJournal(disk)
    let next = Fixture.plain(task: TransferJournal.tasksMax + 1)
    #expect(throws: TransferJournalError.full) { try journal.write(next) }
    disk.put("\(TransferJournal.tasksMax + 1).task", [])
    #expect(throws: TransferJournalError.full) { try journal.content() }
  }

  /// A file that is too large for a record concerns its task only.
  @Test func aHugeFileIsDamaged() throws {
    let disk = ScriptedDisk()
    disk.put("1.task", try Fixture.plain(task: 1).encoded())
    disk.put("2.task", [UInt8](repeating: 0, count: TransferJournal.grownBytesMax + 1))
    let content = try TransferJournal(disk).content()
    #expect(content.records.map(\.task) == [1] && content.problems.map(\.task) == [2])
  }

  @Test func bytesAreLimited() throws {
    let disk = ScriptedDisk()
    let journal = try TransferJournal(disk)
    var record = Fixture.plain(task: 1)
    record.originalRequest.body = [UInt8](repeating: 1, count: TransferRecord.bytesMax - 1024)
    var written = 0
    while written <= 2 * TransferJournal.bytesMax / TransferRecord.bytesMax {
      do throws(TransferJournalError) {
        try journal.write(record)
      } catch {
        #expect(error == .full)
        break
      }
      written += 1
      record.task += 1
    }
    #expect(written == TransferJournal.bytesMax / TransferRecord.bytesMax)
    // A record that is replaced counts once, and may grow although no task can be added.
    record.task = 1
    try journal.write(record)
    record.originalRequest.body = [UInt8](repeating: 1, count: TransferRecord.bytesMax - 512)
    try journal.write(record)
    record.task = written + 1
    #expect(throws: TransferJournalError.full) { try journal.write(record) }
    try journal.remove(task: 1)
    try journal.write(record)
  }

  /// Reading a thousand records lists the directory once and reads each file once.
  @Test func callsGrowWithTheTasks() throws {
    let disk = ScriptedDisk()
    for task in 1...1_000 { disk.put("\(task).task", try Fixture.plain(task: task).encoded()) }
    let journal = try TransferJournal(disk)
    let before = disk.calls.count
    #expect(try journal.content().records.count == 1_000)
    #expect(disk.calls.count - before == 1_001)
  }
}
