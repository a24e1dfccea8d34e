import Foundation
import LarkspurIO
import LarkspurTransfers
import Synchronization
import Testing

/// Tests journals in real directories.
@Suite struct TransferDirectoryTests {
  /// A temporary directory for one test. Deinitialization removes it.
  private final class Place {
    let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-journal-\(UUID().uuidString)")

    deinit { try? FileManager.default.removeItem(at: url) }

    var path: String { url.path + "/deep/er" }

    func journal() throws(TransferJournalError) -> TransferJournal {
      try TransferJournal(path: path, session: Fixture.session) { _ in }
    }

    func freeJournal() throws -> TransferJournal { try .waiting(at: path) }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    func permissions(_ name: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path + name)[.posixPermissions] as? Int
    }
  }

  @Test func recordsOutliveTheJournal() throws {
    let place = Place()
    for record in Fixture.all { try place.freeJournal().write(record) }
    #expect(try place.freeJournal().content().records == Fixture.all)
    #expect(place.names == ["1.task", "7.task", "8.task", "lock"])
    for name in ["/1.task", "/lock"] { #expect(try place.permissions(name) == 0o600) }
    #expect(try place.permissions("") == 0o700)
    #expect(try place.permissions("/..") == 0o700)
    let journal = try place.freeJournal()
    _ = try journal.content()
    for record in Fixture.all { try journal.remove(task: record.task) }
    #expect(place.names == ["lock"])
  }

  @Test func oneOwner() throws {
    let place = Place()
    var journal: TransferJournal? = try place.journal()
    #expect(throws: TransferJournalError.inUse) { try place.journal() }
    withExtendedLifetime(journal) {}
    journal = nil
    _ = try place.freeJournal()
  }

  /// A directory that others may enter is closed to them.
  @Test func permissionsOfOthersAreRemoved() throws {
    let place = Place()
    try FileManager.default.createDirectory(
      atPath: place.path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o777])
    _ = try place.journal()
    #expect(try place.permissions("") == 0o700)
  }

  /// CVE-2022-32207: symbolic links in place of the directory, its files or the lock are not followed.
  @Test func linksAreNotFollowed() throws {
    let place = Place()
    try FileManager.default.createDirectory(atPath: place.path, withIntermediateDirectories: true)
    let target = place.url.path + "/target"
    try Data("precious".utf8).write(to: URL(filePath: target))
    for name in ["1.new", "1.task"] {
      try FileManager.default.createSymbolicLink(atPath: place.path + "/" + name, withDestinationPath: target)
    }
    let journal = try place.journal()
    #expect(try journal.content().records.isEmpty)
    try journal.write(Fixture.plain())
    #expect(try journal.content().records == [Fixture.plain()])
    #expect(try String(contentsOfFile: target, encoding: .utf8) == "precious")
    try FileManager.default.createSymbolicLink(atPath: place.url.path + "/link", withDestinationPath: place.path)
    #expect(throws: TransferJournalError.unavailable(.notDirectory)) {
      try TransferJournal(path: place.url.path + "/link", session: Fixture.session) { _ in }
    }
    try FileManager.default.createDirectory(atPath: place.url.path + "/other", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: place.url.path + "/other/lock", withDestinationPath: target)
    #expect(throws: TransferJournalError.unavailable(.tooManyLinks)) {
      try TransferJournal(path: place.url.path + "/other", session: Fixture.session) { _ in }
    }
  }

  @Test func placesThatCannotBeUsed() throws {
    let place = Place()
    try Data().write(to: place.url)
    #expect(throws: TransferJournalError.unavailable(.notDirectory)) { try place.journal() }
  }

  /// Changes from several threads come one after another.
  @Test func manyThreads() async throws {
    let place = Place()
    let journal = try place.journal()
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        group.addTask {
          for number in 0..<10 {
            let record = Fixture.plain(task: 1 + worker * 10 + number)
            #expect(throws: Never.self) { try journal.write(record) }
            if number % 2 == 0 { #expect(throws: Never.self) { try journal.remove(task: record.task) } }
          }
        }
      }
    }
    #expect(try journal.content().records.map(\.task) == (1...40).filter { $0 % 2 == 0 })
  }

  // MARK: - The end

  /// A program may name each of its sessions anew: no directory is left of a session without tasks.
  @Test func aDirectoryWithoutTasksIsRemoved() throws {
    let place = FileManager.default.temporaryDirectory.appending(path: "larkspur-journal-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: place) }
    let path = place.path + "/session"
    for _ in 0..<2 {
      let journal = try TransferJournal(path: path, session: Fixture.session) { _ in }
      try TransferSessionFile.write(TransferSession(identifier: Fixture.session, directory: path, settings: [1]))
      try journal.write(Fixture.plain(task: 1))
      try journal.remove(task: 1)
      #expect(FileManager.default.fileExists(atPath: path + "/session"))
      journal.close()
      #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).isEmpty)
      journal.close()
    }
  }

  @Test(arguments: ["1.task", "1.damaged", "1.part", "other"])
  func aDirectoryWithFilesStays(name: String) throws {
    let place = FileManager.default.temporaryDirectory.appending(path: "larkspur-journal-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: place) }
    let journal = try TransferJournal(path: place.path, session: Fixture.session) { _ in }
    try TransferSessionFile.write(TransferSession(identifier: Fixture.session, directory: place.path, settings: [1]))
    try Data().write(to: place.appending(path: name))
    journal.close()
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: place.path).sorted() == [name, "lock", "session"].sorted())
    // The lock is free.
    _ = try TransferJournal(path: place.path, session: Fixture.session) { _ in }
  }

  private final class Count: Sendable {
    let number = Atomic(0)
  }

  /// At no time two journals have one directory, while it is removed again and again.
  @Test func oneOwnerWhileDirectoriesAreRemoved() throws {
    let path = FileManager.default.temporaryDirectory.path + "/larkspur-journal-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let owners = Count()
    let ended = Happenings<String>()
    for _ in 0..<4 {
      try SystemThread(name: "owner") {
        var wrong: Set<String> = []
        for _ in 0..<100 {
          do throws(TransferJournalError) {
            let journal = try TransferJournal(path: path, session: Fixture.session) { _ in }
            if owners.number.add(1, ordering: .relaxed).oldValue != 0 { wrong.insert("two owners") }
            owners.number.subtract(1, ordering: .relaxed)
            journal.close()
          } catch .inUse {
          } catch {
            wrong.insert("\(error)")
          }
        }
        ended.add(wrong.sorted().joined(separator: ", "))
      }.detach()
    }
    #expect(try ended.wait(for: 4) == ["", "", "", ""])
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
