import Foundation
import LarkspurTransfers
import TestKit
import Testing

/// Tests journals whose owners are killed.
@Suite(.serialized, .ownThread) struct TransferProcessTests {
  @Test func killedAtAnyMoment() throws {
    var generator = SeededGenerator(for: "journal owners killed")
    for _ in 0..<25 {
      let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-journal-\(UUID().uuidString)")
      defer { try? FileManager.default.removeItem(at: url) }
      let writer = try SiblingProcess("journal-writer", [url.path, Fixture.session, "1000000"])
      let line = writer.read(lines: Int.random(in: 1...40, using: &generator))
      let last = try #require(line.flatMap { Int($0) })
      // The owner's lock keeps this process out.
      #expect(throws: TransferJournalError.inUse) {
        try TransferJournal(path: url.path, session: Fixture.session) { _ in }
      }
      writer.kill()
      let journal = try TransferJournal.waiting(at: url.path)
      let content = try journal.content()
      #expect(content.problems.isEmpty)
      // The latest number is in its record, and those before it in theirs.
      let numbers = content.records.filter { $0.task < 100 }.map { Int($0.failedAttempts) }.sorted()
      let greatest = try #require(numbers.last)
      #expect(greatest >= last)
      #expect(numbers == Array(max(0, greatest - 3)...greatest))
      // At most one change of the other records was under way.
      let others = content.records.map(\.task).filter { $0 >= 100 }
      #expect([[99 + greatest], [99 + greatest, 100 + greatest], [100 + greatest], []].contains(others))
      #expect(!others.isEmpty || greatest == 0)
      let names = content.records.map { "\($0.task).task" } + ["lock"]
      #expect(try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() == names.sorted())
    }
  }
}
