import Foundation
import TestKit
import Testing
import ZipArchive

/// Times of modification, which do not depend on the time zones of the archiver and of the extraction.
@Suite(.ownThread) struct TimeTests {
  typealias Entry = ArchiveBytes.Entry

  /// An odd number of seconds, which the time of MS-DOS does not have.
  private static let date = Date(timeIntervalSince1970: 1_700_000_001)
  private static let field: [UInt8] = [0x55, 0x54, 5, 0, 1] + ArchiveBytes.bytes(UInt32(1_700_000_001))

  private func made() throws -> Room {
    let room = try Room()
    for name in ["in/a", "in/d/b"] {
      try FileManager.default.setAttributes([.modificationDate: Self.date], ofItemAtPath: try room.write(name, name))
    }
    try FileManager.default.createDirectory(
      at: room.url.appending(path: "in/hollow"), withIntermediateDirectories: true)
    try FileManager.default.setAttributes([.modificationDate: Self.date], ofItemAtPath: room.path("in/hollow"))
    #expect(SSZipArchive.createZipFile(atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in")))
    return room
  }

  @Test func bothHeadersHaveTheField() throws {
    let room = try made()
    let bytes = try Array(Data(contentsOf: room.url.appending(path: "made.zip")))
    let places = bytes.indices.filter { bytes[$0...].starts(with: Self.field) }
    #expect(places.count == 6)
    #expect(extract(room.path("made.zip"), in: room) == nil)
    for name in ["out/a", "out/d/b", "out/hollow"] { #expect(try room.modified(name) == Self.date, "\(name)") }
  }

  /// The local time of MS-DOS is that of another time zone.
  @Test func anotherLocalTime() throws {
    let room = try made()
    var data = try Data(contentsOf: room.url.appending(path: "made.zip"))
    for index in data.indices.dropLast(30) where data[index...].starts(with: [0x50, 0x4B, 1, 2]) {
      data[index + 13] ^= 0x10
    }
    #expect(extract(try room.write("made.zip", data), in: room) == nil)
    #expect(try room.modified("out/a") == Self.date)
  }

  @Test(arguments: ["unzip -q made.zip -d copy", "7z x -ocopy made.zip"])
  func othersReadOurs(command: String) throws {
    let room = try made()
    let run = try room.run("sh", "-c", "TZ=Europe/Berlin \(command)")
    #expect(run.status == 0, "\(run.output)")
    for name in ["copy/a", "copy/d/b"] { #expect(try room.modified(name) == Self.date, "\(name)") }
  }

  @Test func pythonReadsOurs() throws {
    let room = try made()
    let run = try room.run("python3", "-c", "import zipfile; print(zipfile.ZipFile('made.zip').testzip())")
    #expect(run.output == "None\n")
  }

  @Test(arguments: ["zip -q -r ../made.zip .", "7z a -tzip ../made.zip ."])
  func readsOthers(command: String) throws {
    let room = try made()
    let run = try room.run("sh", "-c", "rm made.zip && cd in && TZ=America/New_York \(command)")
    #expect(run.status == 0, "\(run.output)")
    #expect(extract(room.path("made.zip"), in: room) == nil)
    for name in ["out/a", "out/d/b"] {
      let time = try #require(try room.modified(name)).timeIntervalSince(Self.date)
      #expect(abs(time) < 0.01, "\(name)")
    }
  }

  /// A file that replaces one of an archive has the new time, and no field of the old one.
  @Test func replacedEntries() throws {
    let room = try made()
    let file = room.path("in/a")
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 1_600_000_001)], ofItemAtPath: file)
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(archive.openForAppending() && archive.writeFile(file, withPassword: nil) && archive.close())
    let bytes = try Array(Data(contentsOf: room.url.appending(path: "made.zip")))
    #expect(bytes.indices.count { bytes[$0...].starts(with: Self.field) } == 4)
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(try room.modified("out/a") == Date(timeIntervalSince1970: 1_600_000_001))
    #expect(try room.modified("out/d/b") == Self.date)
  }

  /// The time of a link's file is that of the file.
  @Test func followedLinks() throws {
    let room = try made()
    try room.link("in/l", to: "a")
    #expect(SSZipArchive.createZipFile(atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in")))
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(try room.modified("out/l") == Self.date)
  }

  /// A time that 32 bits do not hold has no field.
  @Test func farTimes() throws {
    let room = try Room()
    let file = try room.write("in/a", "a")
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: 2_500_000_000)], ofItemAtPath: file)
    #expect(SSZipArchive.createZipFile(atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in")))
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(try room.modified("out/a") == Date(timeIntervalSince1970: 2_500_000_000))
  }

  /// Fields that are cut off or empty do not count; the time of MS-DOS does. A field whose size is wrong is an error.
  @Test func cutFields() throws {
    for count in 0..<5 {
      let room = try Room()
      var entry = Entry("a", "1")
      entry.extra = [0x55, 0x54, UInt8(count), 0] + Self.field.dropFirst(4).prefix(count)
      #expect(try extract(ArchiveBytes(entry), in: room) == nil, "\(count)")
      #expect(try room.modified("out/a") != Self.date)
      entry.extra[2] = 200
      try FileManager.default.removeItem(atPath: room.path("out"))
      #expect(try extract(ArchiveBytes(entry), in: room)?.archiveCode == .failedOpenZipFile)
      #expect(room.names("") == ["made.zip"])
    }
  }
}
