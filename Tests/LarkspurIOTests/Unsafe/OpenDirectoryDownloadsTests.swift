import Foundation
import LarkspurIO
import TestKit
import Testing

@Suite struct OpenDirectoryDownloadsTests {
  private let place: TemporaryDirectory
  private let files: OpenDirectory

  init() throws {
    place = try TemporaryDirectory()
    files = try OpenDirectory(path: place.url.path)
  }

  private func part(_ name: String, _ use: DownloadPartUse = .create) throws -> any DownloadPart {
    try #require(try files.openPart(name, use))
  }

  @Test func bytesArriveInAnyOrder() throws {
    let part = try part("p")
    try part.write([5, 6].span, at: 5)
    try part.write([1, 2].span, at: 1)
    let nothing: [UInt8] = []
    try part.write(nothing.span, at: 100)
    try part.sync()
    #expect(try part.read(at: 0, atMost: 100) == [0, 1, 2, 0, 0, 5, 6])
    #expect(try part.read(at: 5, atMost: 1) == [5])
    #expect(try part.read(at: 7, atMost: 1) == [])
    try part.cut(toBytes: 3)
    #expect(try part.facts().size == 3)
    #expect(try files.facts("p")?.size == 3)
    #expect(try files.facts("p")?.inode == part.facts().inode)
    #expect(throws: Errno.self) { try part.write([1].span, at: -1) }
    #expect(throws: Errno.self) { try part.read(at: -1, atMost: 1) }
  }

  /// Reserved room neither changes the size nor shows bytes.
  @Test func reservedRoomIsNoSize() throws {
    let part = try part("p")
    try part.reserve(0)
    try part.reserve(1 << 20)
    try part.write([7].span, at: 0)
    #expect(try part.facts().size == 1)
    #expect(try part.read(at: 0, atMost: 10) == [7])
    #expect(throws: Errno.self) { try part.reserve(.max) }
    try part.cut(toBytes: 1)
    #expect(try part.facts().allocated < 1 << 20)
    #expect(try files.freeBytes() > 0)
  }

  @Test func permissions() throws {
    let part = try part("p")
    try part.setPermissions(0o640)
    #expect(try files.facts("p")?.permissions == 0o640)
    try files.create("r").append([1])
    #expect(try files.facts("r")?.permissions == 0o600)
  }

  // MARK: - The lock

  @Test func aPartHasOneHolder() throws {
    var first: (any DownloadPart)? = try part("p")
    #expect(try files.openPart("p", .update) == nil)
    #expect(throws: Errno.fileExists) { try files.openPart("p", .create) }
    _ = try part("p", .read)
    first?.unlock()
    _ = try part("p", .update)
    first = try part("p", .update)
    #expect(try files.openPart("p", .update) == nil)
    first = nil
    _ = try part("p", .update)
  }

  @Test func aPartWithItsNameIsReadOn() throws {
    let part = try part("p")
    try part.write([1].span, at: 0)
    try files.rename("p", to: "name")
    #expect(throws: Errno.noSuchFile) { try files.openPart("p", .update) }
    #expect(try part.read(at: 0, atMost: 1) == [1])
    #expect(try part.facts().inode == files.facts("name")?.inode)
  }

  // MARK: - Other kinds of entries

  private func makeOthers() throws {
    try Data([1]).write(to: place.file("target"))
    try files.makeLink("link", to: "target")
    try files.makeLink("nowhere", to: "none")
    try FileManager.default.linkItem(at: place.file("target"), to: place.file("name2"))
    try files.makeDirectory("directory")
    #expect(mkfifo(place.path("pipe"), 0o600) == 0)
  }

  @Test(arguments: ["link", "nowhere", "target", "name2", "directory", "pipe"])
  func onlyTheUsersOwnFilesAreUsed(name: String) throws {
    try makeOthers()
    #expect(throws: Errno.notPermitted) { try files.openPart(name, .update) }
    #expect(throws: Errno.notPermitted) { try files.read(name, atMost: 1) }
    #expect(throws: Errno.fileExists) { try files.openPart(name, .create) }
    // Only reading allows more than one name.
    if name == "target" || name == "name2" {
      #expect(try part(name, .read).read(at: 0, atMost: 9) == [1])
    } else {
      #expect(throws: Errno.notPermitted) { try files.openPart(name, .read) }
    }
    #expect(try Data(contentsOf: place.file("target")) == Data([1]))
  }

  @Test func kinds() throws {
    try makeOthers()
    #expect(try files.facts("none") == nil)
    #expect(try files.facts("link")?.kind == .symbolicLink)
    #expect(try files.facts("directory")?.kind == .directory)
    #expect(try files.facts("pipe")?.kind == .other)
    #expect(try files.facts("target")?.kind == .regularFile)
    #expect(throws: Errno.noSuchFile) { try files.openPart("none", .update) }
    #expect(throws: Errno.noSuchFile) { try files.openPart("none", .read) }
    #expect(throws: Errno.noSuchFile) { try files.read("none", atMost: 1) }
  }

  /// A name replaces a link, and not what the link leads to.
  @Test func renamingReplacesALink() throws {
    try makeOthers()
    try part("p").write([9].span, at: 0)
    try files.rename("p", to: "link")
    #expect(try files.facts("link")?.kind == .regularFile)
    #expect(try Data(contentsOf: place.file("target")) == Data([1]))
    try part("p").write([9].span, at: 0)
    #expect(throws: Errno.isDirectory) { try files.rename("p", to: "directory") }
  }
}
