import Foundation
import TestKit
import Testing
import ZipArchive

/// The rules of the extraction, where archives are written.
@Suite(.ownThread) struct ArchiveWriterTests {
  typealias Entry = ArchiveBytes.Entry

  @Test func reasons() throws {
    let room = try Room()
    try room.write("a", "a")
    try room.link("l", to: "../x")
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(!archive.write(Data(), filename: "a", withPassword: nil))
    #expect(archive.lastError?.archiveCode == .invalidArguments)
    #expect(archive.open() && archive.lastError == nil)
    #expect(!archive.open())
    #expect(archive.lastError?.archiveCode == .invalidArguments)
    #expect(archive.write(Data("1".utf8), filename: "README", withPassword: nil) && archive.lastError == nil)
    let calls: [(SSZipArchiveErrorCode, () -> Bool)] = [
      (.conflictingEntryNames, { archive.write(Data(), filename: "readme", withPassword: nil) }),
      (.conflictingEntryNames, { archive.write(Data(), filename: "README/x", withPassword: nil) }),
      (.conflictingEntryNames, { archive.writeFolder(atPath: "", withFolderName: "README", withPassword: nil) }),
      (.unsafeEntryName, { archive.writeFile(atPath: room.path("a"), withFileName: "../a", withPassword: nil) }),
      (.unsafeEntryName, { archive.writeFile(atPath: room.path("a"), withFileName: "d\\a", withPassword: nil) }),
      (.unsupportedEntryType, { archive.writeFile(atPath: room.path("a"), withFileName: "d/", withPassword: nil) }),
      (.unsupportedEntryType, { archive.write(Data(), filename: "__MACOSX/a", withPassword: nil) }),
      (.invalidArguments, { archive.write(Data(), filename: nil, withPassword: nil) }),
      (.fileContentNotReadable, { archive.writeFile(room.path("none"), withPassword: nil) }),
      (.fileContentNotReadable, { archive.writeFile("/dev/zero", withPassword: nil) }),
      (
        .fileContentNotReadable,
        {
          archive.writeSymlinkFile(
            atPath: room.path("a"), withFileName: nil, compressionLevel: -1, password: nil, aes: true)
        }
      ),
      (
        .symlinkEscapesTargetDirectory,
        {
          archive.writeSymlinkFile(
            atPath: room.path("l"), withFileName: nil, compressionLevel: -1, password: nil, aes: true)
        }
      ),
      (
        .failedToWriteFile,
        { archive.write(Data(), filename: "x", compressionLevel: 10, password: nil, aes: true) }
      ),
    ]
    for (code, call) in calls {
      #expect(!call())
      #expect(archive.lastError?.archiveCode == code)
    }
    #expect(archive.close() && archive.lastError == nil)
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out") == ["README"])
  }

  /// Names are written in the form in which they are extracted, so that one file has one entry.
  @Test func namesInAnotherForm() throws {
    let room = try Room()
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(archive.open())
    for (number, name) in ["d/a", "d//a", "./d/a", "//d/./a"].enumerated() {
      #expect(archive.write(Data("\(number)".utf8), filename: name, withPassword: nil), "\(name)")
    }
    #expect(archive.close())
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out") == ["d", "d/a"] && room.text("out/d/a") == "3")
  }

  @Test func filesOfOneName() throws {
    let room = try Room()
    let files = [try room.write("1/a", "1"), try room.write("2/a", "2")]
    let error = #expect(throws: NSError.self) {
      try SSZipArchive.createZipFile(
        atPath: room.path("made.zip"), withFilesAtPaths: files, limits: SSZipArchiveLimits())
    }
    #expect(error?.archiveCode == .conflictingEntryNames)
    #expect(!SSZipArchive.createZipFile(atPath: room.path("made.zip"), withFilesAtPaths: files))
    #expect(room.names("") == ["1", "1/a", "2", "2/a"])
  }

  /// Contents that shrink more than an extraction allows: the size of the archive is known at its end.
  @Test func contentsThatShrinkTooMuch() throws {
    let room = try Room()
    try room.write("made.zip", "old")
    try room.write("in/zeros", Data(count: 200_000))
    var limits = SSZipArchiveLimits()
    (limits.bytesOutAlways, limits.expansionMax) = (100_000, 100)
    func create(level: Int32) throws {
      try SSZipArchive.createZipFile(
        atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), compressionLevel: level,
        limits: limits, delegate: nil)
    }
    let error = #expect(throws: NSError.self) { try create(level: 9) }
    #expect(error?.archiveCode == .expansionTooLarge)
    #expect(room.text("made.zip") == "old" && room.names("") == ["in", "in/zeros", "made.zip"])
    try create(level: 0)
    #expect(extract(room.path("made.zip"), in: room, limits: limits) == nil)
  }

  /// The permissions of an archive that is replaced stay.
  @Test func permissionsOfTheArchive() throws {
    let room = try Room()
    try room.write("in/a", "a")
    let path = try room.write("made.zip", "old")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    #expect(SSZipArchive.createZipFile(atPath: path, withContentsOfDirectory: room.path("in")))
    #expect(try room.permissions("made.zip") == 0o600)
  }

  // MARK: - Appending

  /// An archive that would not be extracted is not appended to, and stays as it is.
  @Test(arguments: [["README", "readme"], ["../a", "b"], ["a", "a"]])
  func appendingToRefusedArchives(names: [String]) throws {
    let room = try Room()
    let data = ArchiveBytes(names.map { Entry($0, "x") }).data
    let path = try room.write("made.zip", data)
    let archive = SSZipArchive(path: path)
    #expect(!archive.openForAppending())
    #expect(archive.lastError?.domain == SSZipArchiveErrorDomain)
    #expect(!archive.close())
    #expect(FileManager.default.contents(atPath: path) == data)
  }

  @Test func appendingASimilarName() throws {
    let room = try Room()
    let path = try room.write("made.zip", ArchiveBytes(Entry("README", "1"), Entry("d\\x", "2")).data)
    let archive = SSZipArchive(path: path)
    #expect(archive.openForAppending())
    for name in ["readme", "d/x", "README/a"] {
      #expect(!archive.write(Data("3".utf8), filename: name, withPassword: nil))
      #expect(archive.lastError?.archiveCode == .conflictingEntryNames)
    }
    #expect(archive.write(Data("4".utf8), filename: "README", withPassword: nil) && archive.close())
    #expect(extract(path, in: room) == nil)
    #expect(room.text("out/README") == "4" && room.text("out/d/x") == "2")
  }

  /// libzip would leave out the bytes before the archive, and of two archives read the wrong one.
  @Test func appendingAfterAPrefix() throws {
    let room = try Room()
    let other = ArchiveBytes(Entry("other", "1")).data
    for prefix in [Data("#!/bin/sh\n".utf8), other] {
      let data = prefix + ArchiveBytes(Entry("a", "1")).data
      let archive = SSZipArchive(path: try room.write("made.zip", data))
      #expect(!archive.openForAppending())
      #expect(archive.lastError?.archiveCode == .failedOpenZipFile)
      #expect(FileManager.default.contents(atPath: room.path("made.zip")) == data)
    }
    // The offsets count from the start of the file.
    var entry = Entry("a", "1")
    entry.offset = 10
    let tail = ArchiveBytes(entry).data
    let directory = tail.count - 22
    var record = tail.suffix(22)
    let local = Data(ArchiveBytes.local(Entry("a", "1")))
    record.replaceSubrange(
      record.startIndex + 16..<record.startIndex + 20, with: ArchiveBytes.bytes(UInt32(10 + local.count)))
    let data = Data("#!/bin/sh\n".utf8) + local + tail.prefix(directory) + record
    let path = try room.write("made.zip", data)
    #expect(extract(path, in: room) == nil && room.text("out/a") == "1")
    #expect(!SSZipArchive(path: path).openForAppending())
  }
}
