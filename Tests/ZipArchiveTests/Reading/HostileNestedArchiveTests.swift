import Foundation
import TestKit
import Testing
import ZipArchive

/// Archives in archives that would harm, and archives that are replaced by what is in them.
@Suite(.ownThread) struct HostileNestedArchiveTests {
  typealias Entry = ArchiveBytes.Entry

  /// Makes an entry of an archive.
  private func nested(_ name: String, _ entries: Entry...) -> Entry {
    var entry = Entry(name)
    entry.data = Array(ArchiveBytes(entries).data)
    return entry
  }

  private func extractNested(_ room: Room, _ entries: Entry...) throws -> NSError? {
    extract(try room.write("made.zip", ArchiveBytes(entries).data), in: room, nestedZipLevel: 3)
  }

  @Test(arguments: ["../slip", "../../slip", "/tmp/larkspur-slip", "..\\slip", "C:\\slip"]) func slips(name: String)
    throws
  {
    let room = try Room()
    let error = try extractNested(
      room, Entry("good", "good"), nested("a/b/inner.zip", Entry("good", "good"), Entry(name, "evil")))
    #expect(error?.archiveCode == .unsafeEntryName)
    #expect(room.names("") == ["made.zip"])
    #expect(!FileManager.default.fileExists(atPath: "/tmp/larkspur-slip"))
  }

  /// The outer archive does not write through a link of the inner one, nor the other way round.
  @Test func throughLinksOfOneAnother() throws {
    let room = try Room()
    let link = Entry("d", ".", mode: 0o120777)
    let pairs = [
      [nested("inner.zip", link), Entry("d/x", "evil")], [nested("inner.zip", Entry("d/x", "evil")), link],
      [link, nested("inner.zip", Entry("d/x", "evil"))],
      [link, nested("inner.zip", nested("d/in.zip", Entry("x", "evil")))],
      [nested("a.zip", link), nested("b.zip", Entry("d/x", "evil"))],
    ]
    for (index, entries) in pairs.enumerated() {
      let path = try room.write("made.zip", ArchiveBytes(entries).data)
      #expect(extract(path, in: room, nestedZipLevel: 3)?.archiveCode == .failedToWriteFile, "\(index)")
      #expect(room.names("") == ["made.zip"], "\(index)")
    }
  }

  /// A damaged inner archive undoes all that came before, also what it has replaced.
  @Test func damage() throws {
    let room = try Room()
    try room.write("out/good", "old")
    var bad = Entry("bad", "bad")
    bad.checksum = 1
    let error = try extractNested(room, nested("inner.zip", Entry("good", "new"), Entry("d/new", "new"), bad))
    #expect(error?.archiveCode == .fileInfoNotLoadable)
    #expect(room.names("out") == ["good"] && room.text("out/good") == "old")
  }

  /// Inner archives count as a part of the outer one.
  @Test func entriesInAll() throws {
    let room = try Room()
    var limits = SSZipArchiveLimits()
    limits.entryCountMax = 5
    let inner = nested("b.zip", Entry("3", ""), Entry("4", ""))
    let made = try room.write("made.zip", ArchiveBytes(Entry("1", ""), nested("a.zip", Entry("2", ""), inner)).data)
    #expect(extract(made, in: room, nestedZipLevel: 3, limits: limits)?.archiveCode == .tooManyEntries)
    #expect(room.names("") == ["made.zip"])
    limits.entryCountMax = 6
    #expect(extract(made, in: room, nestedZipLevel: 3, limits: limits) == nil)
    #expect(room.names("out") == ["1", "2", "3", "4"])
  }

  /// An archive in its own destination, with an entry of its own name.
  @Test func anArchiveThatReplacesItself() throws {
    let room = try Room()
    let archive = ArchiveBytes(Entry("first", "1"), Entry("made.zip", "new"), Entry("last", "2"))
    let path = try room.write("out/made.zip", archive.data)
    #expect(extract(path, in: room) == nil)
    #expect(room.names("out") == ["first", "last", "made.zip"])
    #expect(room.text("out/made.zip") == "new" && room.text("out/last") == "2")
  }

  /// Two end records: an archive in the comment of another one. One of the two is extracted, and not a mixture.
  @Test func anArchiveInAComment() throws {
    let room = try Room()
    let comment = ArchiveBytes(Entry("b", "b")).data
    var data = ArchiveBytes(Entry("a", "a")).data
    data.replaceSubrange(data.count - 2..<data.count, with: ArchiveBytes.bytes(UInt16(comment.count)))
    let error = extract(try room.write("made.zip", data + comment), in: room)
    let names = room.names("out") ?? []
    #expect(error == nil ? names == ["a"] || names == ["b"] : names == [])
  }
}
