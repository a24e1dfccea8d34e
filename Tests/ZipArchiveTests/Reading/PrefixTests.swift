import Foundation
import TestKit
import Testing
import ZipArchive

/// Archives with a program before them, as self-extracting archives have it, whose offsets count from the archive's start.
@Suite(.ownThread) struct PrefixTests {
  typealias Entry = ArchiveBytes.Entry

  @Test(arguments: [1, 22, 1000, 70_000]) func programsBeforeArchives(count: Int) throws {
    let room = try Room()
    let data = Data(repeating: 0x78, count: count) + ArchiveBytes(Entry("a", "1"), Entry("d/b", "22")).data
    let path = try room.write("made.zip", data)
    #expect(extract(path, in: room) == nil)
    #expect(room.names("out") == ["a", "d", "d/b"] && room.text("out/d/b") == "22")
    #expect(SSZipArchive.payloadSizeForArchive(atPath: path, error: nil) == 3)
    #expect(!SSZipArchive.isFilePasswordProtected(atPath: path))
  }

  /// Info-ZIP and Python read these, too.
  @Test func othersReadThem() throws {
    let room = try Room()
    try room.write("in/a", String(repeating: "text ", count: 1000))
    let made = try room.run(
      "sh", "-c", "cd in && zip -q ../x.zip a && cd .. && { printf '#!/bin/sh\nexit 0\n'; cat x.zip; } >made.zip")
    #expect(made.status == 0, "\(made.output)")
    // 1 is Info-ZIP's warning about the bytes before the archive.
    #expect(try room.run("unzip", "-q", "made.zip", "-d", "theirs").status == 1)
    let python = try room.run("python3", "-c", "import zipfile; zipfile.ZipFile('made.zip').extractall('theirs2')")
    #expect(python.status == 0, "\(python.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    for name in ["theirs/a", "theirs2/a", "out/a"] { #expect(room.text(name) == room.text("in/a")) }
  }

  /// Of two archives, the last one counts, as for others.
  @Test func twoArchives() throws {
    let room = try Room()
    let data = ArchiveBytes(Entry("first", "1")).data + ArchiveBytes(Entry("second", "2")).data
    #expect(extract(try room.write("made.zip", data), in: room) == nil)
    #expect(room.names("out") == ["second"])
    let python = try room.run("python3", "-c", "import zipfile; print(zipfile.ZipFile('made.zip').namelist())")
    #expect(python.output == "['second']\n")
  }

  @Test func nestedArchives() throws {
    let room = try Room()
    let inner = Data("program".utf8) + ArchiveBytes(Entry("a", "1")).data
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(archive.open() && archive.write(inner, filename: "d/inner.zip", withPassword: nil) && archive.close())
    #expect(extract(room.path("made.zip"), in: room, nestedZipLevel: 1) == nil)
    #expect(room.names("out") == ["d", "d/a"])
  }

  /// A 64-bit archive with a password, of another program.
  @Test func encryptedArchives() throws {
    let room = try Room()
    try room.write("in/a", "secret")
    let made = try room.run(
      "sh", "-c",
      "7z a -tzip -ppassword -mem=AES256 x.zip ./in/a >/dev/null && { printf program; cat x.zip; } >made.zip")
    #expect(made.status == 0, "\(made.output)")
    #expect(SSZipArchive.isFilePasswordProtected(atPath: room.path("made.zip")))
    #expect(extract(room.path("made.zip"), in: room, password: "password") == nil)
    #expect(room.text("out/a") ?? room.text("out/in/a") == "secret")
  }

  /// The bytes before an archive do not count as its own.
  @Test func entriesThatShareBytes() throws {
    let room = try Room()
    var second = Entry("b", String(repeating: "x", count: 200))
    second.offset = 0
    let archive = ArchiveBytes(Entry("a", String(repeating: "x", count: 200)), second)
    let path = try room.write("made.zip", Data(count: 10_000) + archive.data)
    #expect(extract(path, in: room)?.archiveCode == .overlappingEntries)
    #expect(room.names("") == ["made.zip"])
  }

  /// Places in and before the archive that overflow, or are somewhere else.
  @Test(arguments: [1, 30, 0x7FFF_FFFF, 0xFFFF_FC18, 0xFFFF_FFFE, 0xFFFF_FFFF] as [UInt32])
  func placesOutside(offset: UInt32) throws {
    let room = try Room()
    var entry = Entry("lie", "0123456789")
    entry.offset = offset
    let archive = ArchiveBytes(Entry("good", String(repeating: "x", count: 200)), entry)
    let error = extract(try room.write("made.zip", Data(repeating: 0x78, count: 1000) + archive.data), in: room)
    #expect(error?.domain == SSZipArchiveErrorDomain, "\(offset)")
    #expect(room.names("") == ["made.zip"])
  }

  /// Every byte of the end record is changed, after a program: an error, or the right contents.
  @Test func damagedEndRecords() throws {
    let room = try Room()
    let whole = Data(repeating: 0x78, count: 300) + ArchiveBytes(Entry("a", "1"), Entry("b", "2")).data
    for index in whole.count - 22..<whole.count {
      for value in [0, 1, 0x7F, 0xFF] as [UInt8] where whole[index] != value {
        var data = whole
        data[index] = value
        let error = extract(try room.write("made.zip", data), in: room)
        #expect(error == nil || error?.domain == SSZipArchiveErrorDomain, "\(index)")
        if error == nil {
          #expect(room.names("out") == ["a", "b"] && room.text("out/a") == "1", "\(index)")
          try FileManager.default.removeItem(atPath: room.path("out"))
        }
        #expect(room.names("") == ["made.zip"], "\(index)")
      }
    }
  }
}
