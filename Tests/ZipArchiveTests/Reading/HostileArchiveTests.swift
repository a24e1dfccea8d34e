import Foundation
import TestKit
import Testing
import ZipArchive

/// Archives that would harm. Nothing of them is left behind.
@Suite(.ownThread) struct HostileArchiveTests {
  typealias Entry = ArchiveBytes.Entry

  @Test(arguments: [
    "../slip", "a/../../slip", "/tmp/larkspur-slip", "..\\slip", "a\\..\\..\\slip", "C:\\slip", "c:slip",
    "\\\\server\\slip", "./../slip", "a/..", "..",
  ])
  func slips(name: String) throws {
    let room = try Room()
    let error = try extract(ArchiveBytes(Entry("good.txt", "good"), Entry(name, "evil")), in: room)
    #expect(error?.archiveCode == .unsafeEntryName)
    #expect(room.names("") == ["made.zip"])
    #expect(!FileManager.default.fileExists(atPath: "/tmp/larkspur-slip"))
  }

  /// The names of the UTF-8 path extra field (0x7075) take the place of others.
  @Test func slipsByTheUnicodePathField() throws {
    let room = try Room()
    var entry = Entry("good", "evil")
    entry.flags = 0
    let name = Array("../slip".utf8)
    let field = [1] + ArchiveBytes.bytes(CRC.of(entry.name)) + name
    entry.extra = [0x75, 0x70] + ArchiveBytes.bytes(UInt16(field.count)) + field
    #expect(try extract(ArchiveBytes(entry), in: room)?.archiveCode == .unsafeEntryName)
    #expect(room.names("") == ["made.zip"])
  }

  @Test(arguments: ["../outside", "/etc/passwd", "a/../../b", "sub/..", "../../..", ""])
  func linksOut(target: String) throws {
    let room = try Room()
    let error = try extract(
      ArchiveBytes(Entry("good.txt", "good"), Entry("link", target, mode: 0o120777)), in: room)
    #expect(
      error?.archiveCode == (target.isEmpty ? .unsupportedEntryType : .symlinkEscapesTargetDirectory))
    #expect(room.names("") == ["made.zip"])
  }

  /// Entries that go through a link of the archive, in either order.
  @Test func writesThroughLinks() throws {
    let room = try Room()
    let entries = [Entry("d", "sub", mode: 0o120777), Entry("d/x", "evil")]
    for entries in [entries, entries.reversed()] {
      #expect(try extract(ArchiveBytes(entries), in: room)?.archiveCode == .conflictingEntryNames)
    }
    #expect(room.names("") == ["made.zip"])
  }

  @Test func keepsLinksInside() throws {
    let room = try Room()
    let error = try extract(
      ArchiveBytes(
        Entry("a/b.txt", "b"), Entry("a/link", "b.txt", mode: 0o120777), Entry("up", "a/b.txt", mode: 0o120777)),
      in: room)
    #expect(error == nil)
    #expect(room.text("out/a/link") == "b" && room.text("out/up") == "b")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: room.path("out/up")) == "a/b.txt")
  }

  @Test(arguments: [0o010644, 0o020666, 0o060660, 0o140755] as [UInt32]) func specialFiles(mode: UInt32) throws {
    let room = try Room()
    let error = try extract(ArchiveBytes(Entry("good.txt", "good"), Entry("special", "", mode: mode)), in: room)
    #expect(error?.archiveCode == .unsupportedEntryType)
    #expect(room.names("") == ["made.zip"])
  }

  @Test(arguments: [["Readme", "README"], ["ä", "a\u{308}"], ["a", "a"], ["a", "a/b"]])
  func conflictingNames(names: [String]) throws {
    let room = try Room()
    let error = try extract(ArchiveBytes(names.map { Entry($0, "x") }), in: room)
    #expect(error?.archiveCode == .conflictingEntryNames)
    #expect(room.names("") == ["made.zip"])
  }

  @Test func similarNamesIfPermitted() throws {
    let room = try Room()
    var limits = SSZipArchiveLimits()
    limits.permitsSimilarNames = true
    #expect(try extract(ArchiveBytes(Entry("Readme", "1"), Entry("README", "2")), in: room, limits: limits) == nil)
    #expect(room.names("out") == ["README", "Readme"])
  }

  @Test func neverSetsSetuid() throws {
    let room = try Room()
    #expect(
      try extract(ArchiveBytes(Entry("run", "#!", mode: 0o107755), Entry("d/", "", mode: 0o042750)), in: room) == nil)
    #expect(try room.permissions("out/run") == 0o755)
    #expect(try room.permissions("out/d") == 0o750)
  }

  // MARK: - Sizes

  /// Many entries that share one local header.
  @Test func overlappingEntries() throws {
    let room = try Room()
    let text = String(repeating: "x", count: 100_000)
    var entries = [Entry("0", text)]
    for number in 1..<100 {
      var entry = Entry("\(number)", text)
      entry.offset = 0
      entries.append(entry)
    }
    let error = try extract(ArchiveBytes(entries), in: room)
    #expect(error?.archiveCode == .overlappingEntries)
    #expect(room.names("") == ["made.zip"])
  }

  /// The contents of each entry are all entries behind it.
  @Test func entriesWithinEntries() throws {
    let room = try Room()
    var entries = [Entry("30", String(repeating: "x", count: 10_000))]
    for number in (0..<30).reversed() {
      var outer = Entry("\(number)")
      outer.data = ArchiveBytes.local(entries[0])
      entries.insert(outer, at: 0)
    }
    var offset = 0
    for index in entries.indices.dropFirst() {
      offset += 30 + entries[index - 1].name.count
      entries[index].offset = UInt32(offset)
    }
    #expect(try extract(ArchiveBytes(entries), in: room)?.archiveCode == .overlappingEntries)
    #expect(room.names("") == ["made.zip"])
  }

  @Test func wrongSizes() throws {
    for size in [1, 9, 11, 1000, UInt32.max - 1] {
      let room = try Room()
      var entry = Entry("lie", "0123456789")
      entry.size = size
      let error = try extract(ArchiveBytes(Entry("good.txt", "good"), entry), in: room)
      #expect([.inconsistentSize, .fileContentNotReadable, .expansionTooLarge].contains(error?.archiveCode), "\(size)")
      #expect(room.names("") == ["made.zip"], "\(size)")
    }
  }

  /// A deflated entry whose contents are larger than the archive says.
  @Test func deflatedEntryWithAWrongSize() throws {
    let room = try Room()
    let archive = SSZipArchive(path: room.path("big.zip"))
    #expect(
      archive.open() && archive.write(Data(count: 1_000_000), filename: "zeros", withPassword: nil) && archive.close())
    var bytes = Array(try Data(contentsOf: room.url.appending(path: "big.zip")))
    // The uncompressed size in the central directory.
    let directory = try #require(bytes.indices.last { bytes[$0...].starts(with: [0x50, 0x4B, 1, 2]) })
    bytes.replaceSubrange(directory + 24..<directory + 28, with: ArchiveBytes.bytes(UInt32(1000)))
    let error = try extract(room.write("lie.zip", Data(bytes)), in: room)
    #expect(error?.archiveCode == .inconsistentSize)
    #expect(room.names("out") == nil)
  }

  @Test func wrongChecksum() throws {
    let room = try Room()
    var entry = Entry("bad", "0123456789")
    entry.checksum = 1
    #expect(try extract(ArchiveBytes(entry), in: room)?.archiveCode == .fileInfoNotLoadable)
    #expect(room.names("") == ["made.zip"])
  }

  @Test func limits() throws {
    let archive = ArchiveBytes(Entry("a", "12345"), Entry("b", "67890"))
    var limits = SSZipArchiveLimits()
    limits.entryCountMax = 1
    let room = try Room()
    #expect(try extract(archive, in: room, limits: limits)?.archiveCode == .tooManyEntries)
    limits.entryCountMax = 2
    limits.totalSizeMax = 9
    #expect(try extract(archive, in: room, limits: limits)?.archiveCode == .totalSizeTooLarge)
    #expect(room.names("") == ["made.zip"])
    limits.totalSizeMax = 10
    #expect(try extract(archive, in: room, limits: limits) == nil)
    #expect(room.names("out") == ["a", "b"])
  }

  /// One file of zeros shrinks to a thousandth.
  @Test func compressionRatio() throws {
    let room = try Room()
    let archive = SSZipArchive(path: room.path("big.zip"))
    #expect(
      archive.open() && archive.write(Data(count: 4 << 20), filename: "zeros", withPassword: nil) && archive.close())
    var limits = SSZipArchiveLimits()
    limits.bytesOutAlways = 1 << 20
    #expect(extract(room.path("big.zip"), in: room, limits: limits)?.archiveCode == .expansionTooLarge)
    #expect(room.names("") == ["big.zip"])
    limits.expansionMax = 1032
    #expect(extract(room.path("big.zip"), in: room, limits: limits) == nil)
  }

  /// The shape of 42.zip: archives in archives, whose innermost files are zeros. Each archive alone is within the
  /// limits.
  @Test func nestedBomb() throws {
    let room = try Room()
    var data = Data(count: 4 << 20)
    for level in 0..<4 {
      let archive = SSZipArchive(path: room.path("bomb.zip"))
      archive.open()
      for number in 0..<8 {
        let name = level == 0 ? "\(number).txt" : "\(number)/inner.zip"
        #expect(archive.write(data, filename: name, withPassword: nil))
      }
      #expect(archive.close())
      data = try Data(contentsOf: room.url.appending(path: "bomb.zip"))
    }
    // All of it would have 4 MiB * 8^4 = 16 GiB.
    #expect(data.count < 100_000)
    for level in 0...1 { #expect(extract(room.path("bomb.zip"), in: room, nestedZipLevel: level) == nil) }
    try FileManager.default.removeItem(atPath: room.path("out"))
    #expect(extract(room.path("bomb.zip"), in: room, nestedZipLevel: 10)?.archiveCode == .expansionTooLarge)
    #expect(room.names("") == ["bomb.zip"])
  }

  // MARK: - Damage

  /// An archive that is cut off anywhere is refused, and leaves nothing.
  @Test func truncated() throws {
    let room = try Room()
    let whole = ArchiveBytes(Entry("a.txt", "hello"), Entry("b/c.txt", "world")).data
    for count in 0..<whole.count {
      let error = try extract(room.write("made.zip", whole.prefix(count)), in: room)
      #expect(error?.archiveCode == .failedOpenZipFile, "\(count)")
    }
    #expect(room.names("") == ["made.zip"])
  }

  /// Any byte is replaced by others: whatever happens, it ends, and nothing is left after an error.
  @Test func damaged() throws {
    let room = try Room()
    var first = Entry("a.txt", "hello")
    first.extra = [0x55, 0x54, 5, 0, 1, 1, 2, 3, 4]
    let whole = ArchiveBytes(first, Entry("b/", "", mode: 0o040755), Entry("b/c", "a.txt", mode: 0o120777)).data
    var refusals = 0
    for index in whole.indices {
      for value in [0, 0x2F, 0xFF] as [UInt8] {
        var data = whole
        data[index] = value
        if try extract(room.write("made.zip", data), in: room) == nil {
          try? FileManager.default.removeItem(atPath: room.path("out"))
        } else {
          refusals += 1
        }
        #expect(room.names("") == ["made.zip"], "\(index) \(value)")
      }
    }
    #expect(refusals > whole.count)
  }

  @Test func notAnArchive() throws {
    let room = try Room()
    try room.write("text", "no archive")
    #expect(extract(room.path("text"), in: room)?.archiveCode == .failedOpenZipFile)
    #expect(extract(room.path("missing"), in: room)?.archiveCode == .failedOpenZipFile)
    #expect(extract(room.path(""), in: room)?.archiveCode == .failedOpenZipFile)
    #expect(extract("", in: room)?.archiveCode == .invalidArguments)
    #expect(extract("/dev/zero", in: room)?.archiveCode == .failedOpenZipFile)
    // Opening a pipe would wait for a writer.
    #expect(try room.run("mkfifo", "pipe").status == 0)
    #expect(extract(room.path("pipe"), in: room)?.archiveCode == .failedOpenZipFile)
    #expect(!SSZipArchive.isFilePasswordProtected(atPath: room.path("text")))
    #expect(room.names("") == ["pipe", "text"])
  }

  @Test func unsupportedMethod() throws {
    let room = try Room()
    var entry = Entry("a", "0123456789")
    entry.method = 99
    #expect(try extract(ArchiveBytes(entry), in: room) != nil)
    entry.method = 14
    #expect(try extract(ArchiveBytes(entry), in: room) != nil)
    #expect(room.names("") == ["made.zip"])
  }
}
