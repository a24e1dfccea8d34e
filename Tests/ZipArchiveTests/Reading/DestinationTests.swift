import Foundation
import TestKit
import Testing
import ZipArchive

/// What is in the destination already.
@Suite(.ownThread) struct DestinationTests {
  typealias Entry = ArchiveBytes.Entry

  @Test func links() throws {
    let room = try Room()
    try room.write("outside/kept", "kept")
    try room.write("out/plain", "plain")
    try room.link("out/d", to: room.path("outside"))
    try room.link("out/f", to: room.path("outside/kept"))
    // A directory on the way is a link.
    let error = try extract(ArchiveBytes(Entry("new", "new"), Entry("d/evil", "evil")), in: room)
    #expect(error?.archiveCode == .failedToWriteFile)
    #expect(room.names("out") == ["d", "f", "plain"])
    #expect(room.names("outside") == ["kept"])
    // A file is a link: the link is replaced, and the file behind it stays.
    #expect(try extract(ArchiveBytes(Entry("f", "new")), in: room) == nil)
    #expect(room.text("outside/kept") == "kept" && room.text("out/f") == "new")
    // A directory's own entry is a link.
    #expect(try extract(ArchiveBytes(Entry("d/", "", mode: 0o040700)), in: room)?.archiveCode == .failedToWriteFile)
  }

  @Test func existingFilesStay() throws {
    let room = try Room()
    try room.write("out/a", "old")
    try room.link("out/l", to: "nowhere")
    let archive = ArchiveBytes(Entry("a", "new"), Entry("b", "new"), Entry("l", "new"))
    #expect(try extract(archive, in: room, overwrite: false) == nil)
    #expect(room.text("out/a") == "old" && room.text("out/b") == "new")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: room.path("out/l")) == "nowhere")
    #expect(try extract(archive, in: room, overwrite: true) == nil)
    #expect(room.text("out/a") == "new" && room.text("out/l") == "new")
    #expect(room.names("out") == ["a", "b", "l"])
  }

  /// After an error, replaced files are back, and new ones and new directories are gone.
  @Test func everythingIsUndone() throws {
    let room = try Room()
    try room.write("out/a", "old")
    try room.write("out/d/b", "old")
    var bad = Entry("z", "bad")
    bad.checksum = 1
    let archive = ArchiveBytes(
      Entry("a", "new"), Entry("d/b", "new"), Entry("d/e/c", "new"), Entry("l", "a", mode: 0o120777),
      Entry("n/", "", mode: 0o040755), bad)
    #expect(try extract(archive, in: room)?.archiveCode == .fileInfoNotLoadable)
    #expect(room.names("out") == ["a", "d", "d/b"])
    #expect(room.text("out/a") == "old" && room.text("out/d/b") == "old")
  }

  /// Directories above the destination that were made for it go, too.
  @Test func missingDirectories() throws {
    let room = try Room()
    var bad = Entry("z", "bad")
    bad.checksum = 1
    let archive = try room.write("made.zip", ArchiveBytes(Entry("a", "new"), bad).data)
    #expect(!SSZipArchive.unzipFile(atPath: archive, toDestination: room.path("x/y/z")))
    #expect(room.names("") == ["made.zip"])
    let good = try room.write("made.zip", ArchiveBytes(Entry("a", "new")).data)
    #expect(SSZipArchive.unzipFile(atPath: good, toDestination: room.path("x/y/z")))
    #expect(room.names("x") == ["y", "y/z", "y/z/a"])
  }

  @Test func filesAndDirectoriesDoNotReplaceOneAnother() throws {
    let room = try Room()
    try room.write("out/d/kept", "kept")
    try room.write("out/f", "kept")
    #expect(try extract(ArchiveBytes(Entry("d", "new")), in: room)?.archiveCode == .failedToWriteFile)
    #expect(try extract(ArchiveBytes(Entry("f/x", "new")), in: room)?.archiveCode == .failedToWriteFile)
    #expect(room.names("out") == ["d", "d/kept", "f"])
    let archive = try room.write("made.zip", ArchiveBytes(Entry("a", "new")).data)
    #expect(!SSZipArchive.unzipFile(atPath: archive, toDestination: room.path("out/f")))
    #expect(room.text("out/f") == "kept")
  }

  @Test func attributes() throws {
    let room = try Room()
    var file = Entry("d/run", "#!", mode: 0o100555)
    file.extra = [0x55, 0x54, 5, 0, 1] + ArchiveBytes.bytes(UInt32(1_700_000_000))
    var directory = Entry("d/", "", mode: 0o040755)
    directory.extra = file.extra
    let archive = ArchiveBytes(directory, file)
    #expect(try extract(archive, in: room) == nil)
    // The owner can always write.
    #expect(try room.permissions("out/d/run") == 0o755)
    #expect(try room.modified("out/d/run") == Date(timeIntervalSince1970: 1_700_000_000))
    #expect(try room.modified("out/d") == Date(timeIntervalSince1970: 1_700_000_000))
    try SSZipArchive.unzipFile(
      atPath: room.path("made.zip"), toDestination: room.path("plain"), preserveAttributes: false,
      limits: SSZipArchiveLimits())
    #expect(try #require(try room.modified("plain/d/run")) > Date(timeIntervalSince1970: 1_700_000_001))
    let mode = try #require(try room.permissions("plain/d/run"))
    #expect(mode & 0o111 == 0)
  }

  /// The group and others cannot write, whatever the archive says.
  @Test func permissionsOfOthers() throws {
    let room = try Room()
    let archive = ArchiveBytes(
      Entry("d/", "", mode: 0o040777), Entry("f", "", mode: 0o100666), Entry("run", "", mode: 0o100777))
    #expect(try extract(archive, in: room) == nil)
    #expect(try room.permissions("out/d") == 0o755)
    #expect(try room.permissions("out/f") == 0o644)
    #expect(try room.permissions("out/run") == 0o755)
  }

  @Test func nestedArchives() throws {
    let room = try Room()
    var inner = Entry("sub/inner.ZIP")
    inner.data = Array(ArchiveBytes(Entry("x/a.txt", "inner")).data)
    let archive = ArchiveBytes(inner, Entry("text.zip", "no archive"))
    let path = try room.write("made.zip", archive.data)
    #expect(extract(path, in: room) == nil)
    #expect(room.names("out") == ["sub", "sub/inner.ZIP", "text.zip"])
    try FileManager.default.removeItem(atPath: room.path("out"))
    #expect(extract(path, in: room, nestedZipLevel: 1) == nil)
    #expect(room.names("out") == ["sub", "sub/x", "sub/x/a.txt", "text.zip"])
    #expect(room.text("out/sub/x/a.txt") == "inner")
  }

  /// A link of a nested archive is judged from its own place.
  @Test func nestedLinks() throws {
    let room = try Room()
    for (target, isFine) in [("../a", true), ("../../a", false)] {
      var inner = Entry("sub/inner.zip")
      inner.data = Array(ArchiveBytes(Entry("l", target, mode: 0o120777)).data)
      let path = try room.write("made.zip", ArchiveBytes(inner).data)
      let error = extract(path, in: room, nestedZipLevel: 1)
      #expect(error?.archiveCode == (isFine ? nil : .symlinkEscapesTargetDirectory))
    }
  }
}
