import Foundation
import Glibc
import LarkspurIO
import TestKit
import Testing

@Suite struct OpenDirectoryGuardTests {
  private let temporary: TemporaryDirectory
  /// The path without symbolic links.
  private let path: String

  init() throws {
    temporary = try TemporaryDirectory()
    path = try FilePaths.resolved(temporary.url.path)
    try FileManager.default.createDirectory(atPath: path + "/a/b", withIntermediateDirectories: true)
    for name in ["", "/a", "/a/b"] { try setMode(0o755, name) }
  }

  private func setMode(_ mode: mode_t, _ name: String) throws { try #require(chmod(path + name, mode) == 0) }

  private func refusal(_ name: String = "/a/b") -> DirectoryRefusal? {
    do throws(DirectoryRefusal) {
      _ = try OpenDirectory.guarded(at: path + name)
      return nil
    } catch {
      return error
    }
  }

  @Test func directoriesOfTheUserAreGuarded() throws {
    #expect(refusal() == nil && refusal("//a/./b/") == nil)
    #expect(throws: Never.self) { try OpenDirectory.guarded(at: "/") }
    // The directory on the way need not be readable.
    try setMode(0o711, "/a")
    #expect(refusal() == nil)
  }

  /// In each directory on the way another user could replace the next one.
  @Test(arguments: ["", "/a", "/a/b"]) func othersMayWrite(name: String) throws {
    for mode: mode_t in [0o777, 0o757] {
      try setMode(mode, name)
      let refusal = try #require(self.refusal())
      #expect(refusal.directory == path + name && refusal.reason == .writableByOthers)
      #expect(refusal.description.hasPrefix(path + name))
      // With the sticky bit only its owner replaces an entry.
      try setMode(mode | 0o1000, name)
      #expect(self.refusal() == nil)
    }
  }

  @Test func linksAreNotFollowed() throws {
    try FileManager.default.createSymbolicLink(atPath: path + "/l", withDestinationPath: path + "/a")
    #expect(refusal("/l")?.directory == path + "/l" && refusal("/l/b")?.directory == path + "/l")
    #expect(refusal("/a/../a")?.reason == .unreachable(.invalidArgument))
    #expect(refusal("/none")?.reason == .unreachable(.noSuchFile))
    #expect(throws: DirectoryRefusal.self) { try OpenDirectory.guarded(at: "a") }
  }

  @Test(.enabled(if: geteuid() == 0)) func otherOwnersAndGroups() throws {
    try #require(chown(path + "/a/b", 12_345, 0) == 0)
    #expect(refusal()?.reason == .ofAnotherUser)
    try #require(chown(path + "/a/b", 0, 12_345) == 0)
    #expect(refusal() == nil)
    try setMode(0o775, "/a/b")
    #expect(refusal()?.reason == .writableByOthers)
    try #require(chown(path + "/a/b", 0, 0) == 0)
    #expect(refusal() == nil)
    let file = path + "/a/b/file"
    #expect(FileManager.default.createFile(atPath: file, contents: nil))
    try #require(chmod(file, 0o4640) == 0)
    let directory = try OpenDirectory.guarded(at: path + "/a/b")
    #expect(try directory.permissions("file") == 0o640)
    try #require(chown(file, 12_345, 0) == 0)
    #expect(try directory.permissions("file") == nil)
  }

  /// A link of the name is replaced, and its target stays.
  @Test func movesReplaceLinks() throws {
    let (file, target) = (path + "/file", path + "/target")
    #expect(FileManager.default.createFile(atPath: file, contents: Data("new".utf8)))
    #expect(FileManager.default.createFile(atPath: target, contents: Data("old".utf8)))
    try FileManager.default.createSymbolicLink(atPath: path + "/a/b/name", withDestinationPath: target)
    let directory = try OpenDirectory.guarded(at: path + "/a/b")
    #expect(try directory.permissions("name") == nil)
    // What takes the place of the directory meanwhile gets nothing.
    try FileManager.default.moveItem(atPath: path + "/a/b", toPath: path + "/a/moved")
    try FileManager.default.createSymbolicLink(atPath: path + "/a/b", withDestinationPath: path)
    try directory.moveIn(file, as: "name")
    #expect(try directory.kind("name") == .regularFile)
    #expect(try String(contentsOfFile: path + "/a/moved/name", encoding: .utf8) == "new")
    #expect(try String(contentsOfFile: target, encoding: .utf8) == "old")
  }
}
