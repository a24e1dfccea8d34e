import Foundation
import TestKit
import Testing
import ZipArchive

@Suite(.ownThread) struct WritingTests {
  @Test func entryByEntry() throws {
    let room = try Room()
    try room.write("file.txt", "file")
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(archive.open())
    #expect(!archive.open())
    #expect(archive.writeFile(room.path("file.txt"), withPassword: nil))
    #expect(archive.writeFile(atPath: room.path("file.txt"), withFileName: "/d/copy.txt", withPassword: nil))
    #expect(archive.write(Data("data".utf8), filename: "d/data.txt", withPassword: nil))
    #expect(archive.writeFolder(atPath: room.path("none"), withFolderName: "hollow", withPassword: "unused"))
    #expect(
      archive.write(Data("secret".utf8), filename: "s", compressionLevel: 9, password: "password", aes: false))
    #expect(!FileManager.default.fileExists(atPath: room.path("made.zip")))
    #expect(archive.close())
    #expect(!archive.close())
    #expect(extract(room.path("made.zip"), in: room, password: "password") == nil)
    #expect(room.names("out") == ["d", "d/copy.txt", "d/data.txt", "file.txt", "hollow", "s"])
    #expect(room.text("out/d/copy.txt") == "file" && room.text("out/s") == "secret")
  }

  @Test func refusals() throws {
    let room = try Room()
    let closed = SSZipArchive(path: room.path("made.zip"))
    #expect(!closed.write(Data(), filename: "a", withPassword: nil))
    #expect(!closed.writeFile(room.path("none"), withPassword: nil))
    #expect(!closed.writeFolder(atPath: room.path(""), withFolderName: "d", withPassword: nil))
    #expect(!closed.close())
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(archive.open())
    #expect(!archive.writeFile(room.path("none"), withPassword: nil))
    #expect(!archive.writeFile(room.path(""), withPassword: nil))
    #expect(!archive.writeFile("/dev/zero", withPassword: nil))
    for name in ["../a", "a/../../b", "", "/", "C:\\a"] {
      #expect(!archive.write(Data("x".utf8), filename: name, withPassword: nil), "\(name)")
    }
    #expect(!archive.write(Data("x".utf8), filename: nil, withPassword: nil))
    for level in [-2, 10] as [Int32] {
      #expect(!archive.write(Data("x".utf8), filename: "a", compressionLevel: level, password: nil, aes: true))
    }
    // Nothing of the refused entries is in the archive.
    #expect(archive.write(Data("good".utf8), filename: "good", withPassword: nil))
    #expect(archive.close())
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out") == ["good"])
    #expect(!SSZipArchive(path: room.path("none/made.zip")).open() || !SSZipArchive(path: "").open())
  }

  @Test func appending() throws {
    let room = try Room()
    for (name, text) in [("a", "1"), ("b", "2"), ("a", "3")] {
      let archive = SSZipArchive(path: room.path("made.zip"))
      #expect(archive.openForAppending())
      #expect(archive.write(Data(text.utf8), filename: name, withPassword: nil))
      #expect(archive.close())
    }
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out") == ["a", "b"])
    #expect(room.text("out/a") == "3" && room.text("out/b") == "2")
    try room.write("text", "no archive")
    #expect(!SSZipArchive(path: room.path("text")).openForAppending())
  }

  /// An entry that is refused does not take away the one of its name.
  @Test func refusedReplacements() throws {
    let room = try Room()
    try room.write("a", "new")
    let path = try room.write("made.zip", ArchiveBytes(ArchiveBytes.Entry("a", "old")).data)
    let archive = SSZipArchive(path: path)
    #expect(archive.openForAppending())
    for level in [-2, 10] as [Int32] {
      #expect(
        !archive.writeFile(
          atPath: room.path("a"), withFileName: "a", compressionLevel: level, password: nil, aes: true))
      #expect(!archive.write(Data("new".utf8), filename: "a", compressionLevel: level, password: "p", aes: false))
    }
    #expect(archive.close())
    #expect(extract(path, in: room) == nil)
    #expect(room.text("out/a") == "old")
    // A new archive without entries is an empty archive.
    let empty = SSZipArchive(path: path)
    #expect(empty.open())
    #expect(!empty.write(Data("new".utf8), filename: "a", compressionLevel: 10, password: nil, aes: true))
    #expect(empty.close())
    #expect(SSZipArchive.payloadSizeForArchive(atPath: path, error: nil) == 0)
    #expect(room.names("") == ["a", "made.zip", "out", "out/a"])
  }

  /// An entry without a password replaces an encrypted one, and the other way round.
  @Test func replacedEncryption() throws {
    let room = try Room()
    let path = room.path("made.zip")
    for password in ["p", nil, "q"] {
      let archive = SSZipArchive(path: path)
      #expect(archive.openForAppending())
      #expect(archive.write(Data("text".utf8), filename: "a", withPassword: password))
      #expect(archive.close())
      #expect(SSZipArchive.isFilePasswordProtected(atPath: path) == (password != nil))
      #expect(extract(path, in: room, password: password) == nil)
      #expect(room.text("out/a") == "text")
    }
  }

  /// A file that goes before `close()` is still in the archive.
  @Test func filesMayGo() throws {
    let room = try Room()
    try room.write("gone", "gone")
    let archive = SSZipArchive(path: room.path("made.zip"))
    #expect(archive.open() && archive.writeFile(room.path("gone"), withPassword: nil))
    try FileManager.default.removeItem(atPath: room.path("gone"))
    #expect(archive.close())
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.text("out/gone") == "gone")
  }

  @Test func aFailedArchiveLeavesTheOldOne() throws {
    let room = try Room()
    try room.write("made.zip", "old")
    #expect(
      !SSZipArchive.createZipFile(atPath: room.path("made.zip"), withFilesAtPaths: [room.path("none")]))
    #expect(!SSZipArchive.createZipFile(atPath: room.path("made.zip"), withContentsOfDirectory: room.path("none")))
    #expect(room.text("made.zip") == "old")
    #expect(room.names("") == ["made.zip"])
  }

  @Test func manyFiles() throws {
    let room = try Room()
    for number in 0..<300 { try room.write("in/\(number)", "\(number)") }
    let before = Footprint.now().descriptors
    var progress: [UInt] = []
    #expect(
      SSZipArchive.createZipFile(
        atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), keepParentDirectory: true,
        withPassword: nil, andProgressHandler: { done, total in progress.append(done * 1000 + total) }))
    #expect(progress == (1...300).map { $0 * 1000 + 300 })
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out")?.count == 301)
    #expect(room.text("out/in/299") == "299")
    // Other tests open files at the same time.
    #expect(Footprint.now().descriptors < before + 100)
  }

  @Test func links() throws {
    let room = try Room()
    try room.write("in/a", "a")
    try room.link("in/l", to: "a")
    for (keeps, isLink) in [(true, true), (false, false)] {
      #expect(
        SSZipArchive.createZipFile(
          atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), keepParentDirectory: false,
          compressionLevel: -1, password: nil, aes: true, progressHandler: nil, keepSymlinks: keeps))
      #expect(extract(room.path("made.zip"), in: room) == nil)
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: room.path("out/l"))
      #expect((target == "a") == isLink)
      #expect(room.text("out/l") == "a")
    }
    #expect(
      SSZipArchive.createZipFile(
        atPath: room.path("made.zip"), withFilesAtPaths: [room.path("in/a"), room.path("in/l")], withPassword: nil,
        keepSymlinks: true))
    #expect(SSZipArchive.payloadSizeForArchive(atPath: room.path("made.zip"), error: nil) == 2)
  }

  @Test func emptyArchives() throws {
    let room = try Room()
    try FileManager.default.createDirectory(atPath: room.path("in"), withIntermediateDirectories: true)
    #expect(SSZipArchive.createZipFile(atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in")))
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out") == [])
    #expect(
      SSZipArchive.createZipFile(
        atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), keepParentDirectory: true))
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out") == ["in"])
  }

  /// An archive in the directory that it is made of is not a part of itself.
  @Test func anArchiveInItsOwnDirectory() throws {
    let room = try Room()
    try room.write("in/a", "a")
    for _ in 0..<2 {
      #expect(SSZipArchive.createZipFile(atPath: room.path("in/made.zip"), withContentsOfDirectory: room.path("in")))
    }
    #expect(extract(room.path("in/made.zip"), in: room) == nil)
    #expect(room.names("out") == ["a"])
  }
}
