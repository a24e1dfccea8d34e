import Foundation
import TestKit
import Testing
import ZipArchive

/// Archives with names that other systems, other programs or the kernel would take for something else.
@Suite(.ownThread) struct HostileNameTests {
  typealias Entry = ArchiveBytes.Entry

  /// A name of 65,535 bytes, a part of 256, too many parts.
  @Test(arguments: [
    String(repeating: "a", count: 65_535), String(repeating: "a", count: 256), String(repeating: "ä", count: 128),
    String(repeating: "d/", count: 100) + "f", String(repeating: "../", count: 21_845),
    String(repeating: "x/", count: 32_767),
    String(repeating: String(repeating: "a", count: 250) + "/", count: 13),
  ])
  func longNames(name: String) throws {
    let room = try Room()
    let error = try extract(ArchiveBytes(Entry("good", "good"), Entry(name, "")), in: room)
    #expect(error?.archiveCode == .unsafeEntryName)
    #expect(room.names("") == ["made.zip"])
  }

  /// The longest names and the deepest path that are permitted.
  @Test func permittedLengths() throws {
    let room = try Room()
    let names = [String(repeating: "a", count: 255), String(repeating: "d/", count: 99) + "f"]
    #expect(try extract(ArchiveBytes(names.map { Entry($0, "x") }), in: room) == nil)
    for name in names { #expect(room.text("out/" + name) == "x") }
  }

  /// Names of devices on Windows are files here.
  @Test(arguments: [
    "CON", "nul", "aux.txt", "COM1", "LPT9.log", "PRN", "a.", "a ", "ab:stream", "CONIN$", "~", "-rf", "*",
  ])
  func namesOfDevices(name: String) throws {
    let room = try Room()
    #expect(try extract(ArchiveBytes(Entry(name, "text")), in: room) == nil)
    #expect(room.names("") == ["made.zip", "out", "out/\(name)"] && room.text("out/\(name)") == "text")
  }

  /// Paths that Windows takes for a device or another computer.
  @Test(arguments: [
    "\\\\.\\PhysicalDrive0", "\\\\?\\C:\\a", "//?/C:/a", "\\\\server\\share\\a", "c:", "Z:/a", "z:..\\a", "a:stream",
  ])
  func pathsOfWindows(name: String) throws {
    let room = try Room()
    #expect(try extract(ArchiveBytes(Entry("good", ""), Entry(name, "")), in: room)?.archiveCode == .unsafeEntryName)
    #expect(room.names("") == ["made.zip"])
  }

  /// A slash, backslash or dot that is hidden: an overlong form of UTF-8, a full-width form, an escape.
  @Test func hiddenSeparators() throws {
    for bytes in [[0x2E, 0x2E, 0xC0, 0xAF, 0x61], [0x2E, 0x2E, 0xE0, 0x80, 0xAF, 0x61], [0xC0, 0xAE, 0x2F], [0xFF]] {
      let room = try Room()
      let entry = Entry(bytes: bytes.map { UInt8($0) }, host: 3, flags: 1 << 11)
      #expect(try extract(ArchiveBytes(entry), in: room) != nil, "\(bytes)")
      #expect(room.names("") == ["made.zip"])
    }
    for name in ["%2e%2e%2fslip", "..\u{FF0F}slip", "\u{FF0E}\u{FF0E}\u{2215}slip", "..;slip"] {
      let room = try Room()
      #expect(try extract(ArchiveBytes(Entry(name, "x")), in: room) == nil)
      #expect(room.names("") == ["made.zip", "out", "out/\(name)"], "\(name)")
    }
  }

  /// A link and entries through another spelling of its name, and links that lead through one another.
  @Test(arguments: [
    [("D", "sub", true), ("d/x", "evil", false)], [("ä", ".", true), ("a\u{308}/x", "evil", false)],
    [("l", ".", true), ("l/l/x", "evil", false)], [("a/l", "..", true), ("a/l/x", "evil", false)],
    [("l", "a", true), ("l", "evil", false)], [("l", "a", true), ("l/", "", false)],
  ])
  func throughLinks(entries: [(name: String, text: String, isLink: Bool)]) throws {
    let made = entries.map { Entry($0.name, $0.text, mode: $0.isLink ? 0o120777 : 0) }
    for entries in [made, made.reversed()] {
      let room = try Room()
      #expect(try extract(ArchiveBytes(entries), in: room)?.archiveCode == .conflictingEntryNames)
      #expect(room.names("") == ["made.zip"])
    }
  }

  /// A second archive cannot write through the link of a first one.
  @Test func throughTheLinkOfAnEarlierArchive() throws {
    let room = try Room()
    #expect(try extract(ArchiveBytes(Entry("sub/kept", "kept"), Entry("l", "sub", mode: 0o120777)), in: room) == nil)
    for name in ["l/x", "l/kept", "l/d/x"] {
      #expect(try extract(ArchiveBytes(Entry(name, "evil")), in: room)?.archiveCode == .failedToWriteFile)
    }
    #expect(room.names("out") == ["l", "sub", "sub/kept"] && room.text("out/sub/kept") == "kept")
  }

  /// libzip replaces each NUL by a space: the name is not cut off, and is checked as it is used.
  @Test func namesWithANUL() throws {
    let room = try Room()
    let conflict = ArchiveBytes(Entry("a\0b", "1"), Entry("a b", "2"))
    #expect(try extract(conflict, in: room)?.archiveCode == .conflictingEntryNames)
    #expect(try extract(ArchiveBytes(Entry("../a\0b", "1")), in: room)?.archiveCode == .unsafeEntryName)
    #expect(room.names("") == ["made.zip"])
    #expect(try extract(ArchiveBytes(Entry("a.txt\0.png", "1"), Entry("..\0/a", "2")), in: room) == nil)
    #expect(room.names("") == ["made.zip", "out", "out/.. ", "out/.. /a", "out/a.txt .png"])
  }

  /// A link whose target contains a NUL, or is longer than the kernel accepts.
  @Test(arguments: ["a\0/../../b", String(repeating: "a", count: 4096)]) func targets(target: String) throws {
    let room = try Room()
    let error = try extract(ArchiveBytes(Entry("l", target, mode: 0o120777)), in: room)
    #expect([.symlinkEscapesTargetDirectory, .unsupportedEntryType].contains(error?.archiveCode))
    #expect(room.names("") == ["made.zip"])
  }

  /// A wrong password leaves nothing, neither of entries that are encrypted nor of others.
  @Test func aWrongPassword() throws {
    let room = try Room()
    try room.write("out/plain", "old")
    let path = room.path("made.zip")
    for aes in [true, false] {
      let archive = SSZipArchive(path: path)
      #expect(archive.open() && archive.write(Data("plain".utf8), filename: "plain", withPassword: nil))
      #expect(
        archive.write(
          Data(String(repeating: "secret", count: 1000).utf8), filename: "secret", compressionLevel: 9,
          password: "right", aes: aes))
      #expect(archive.close())
      for password in [nil, "", "wrong", "Right", String(repeating: "w", count: 100_000)] {
        #expect(extract(path, in: room, password: password)?.domain == SSZipArchiveErrorDomain)
        #expect(room.names("out") == ["plain"] && room.text("out/plain") == "old")
      }
    }
    #expect(extract(path, in: room, password: "right") == nil)
    #expect(room.text("out/plain") == "plain")
  }
}
