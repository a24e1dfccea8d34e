import Foundation
import LarkspurIO
import Testing

@Suite struct OpenDirectoryTests {
  private let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-directory-\(UUID().uuidString)")

  private func withDirectory(_ body: (OpenDirectory) throws -> Void) throws {
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: url) }
    try body(OpenDirectory(path: url.path))
  }

  @Test func entries() throws {
    try withDirectory { directory in
      #expect(try directory.kind("none") == nil)
      try directory.makeDirectory("d")
      try directory.makeLink("l", to: "d")
      try directory.makeFile("f", permissions: 0o600).write("text")
      #expect(try directory.kind("d") == .directory)
      #expect(try directory.kind("l") == .symbolicLink)
      #expect(try directory.kind("f") == .regularFile)
      #expect(throws: Errno.fileExists) { try directory.makeFile("f") }
      #expect(throws: Errno.fileExists) { try directory.makeFile("l") }
      try directory.removeFile("l")
      #expect(throws: Errno.isDirectory) { try directory.removeFile("d") }
      try directory.removeDirectory("d")
      #expect(try FileManager.default.contentsOfDirectory(atPath: url.path) == ["f"])
    }
  }

  @Test func linksAreNotFollowed() throws {
    try withDirectory { directory in
      try directory.makeDirectory("d")
      try directory.makeLink("l", to: "d")
      _ = try directory.directory("d")
      #expect(throws: Errno.notDirectory) { try directory.directory("l") }
      #expect(throws: Errno.noSuchFile) { try directory.directory("none") }
    }
  }

  @Test func moves() throws {
    try withDirectory { directory in
      try directory.makeDirectory("d")
      let other = try directory.directory("d")
      try directory.makeFile("a").write("a")
      try other.makeFile("b").write("b")
      #expect(throws: Errno.fileExists) { try directory.move("a", to: other, as: "b", isReplacing: false) }
      try directory.move("a", to: other, as: "c", isReplacing: false)
      try other.move("c", to: other, as: "b", isReplacing: true)
      #expect(try String(contentsOf: url.appending(path: "d/b"), encoding: .utf8) == "a")
      #expect(try FileManager.default.contentsOfDirectory(atPath: url.appending(path: "d").path) == ["b"])
    }
  }

  /// Both entries are in use before and after, also a directory and a link.
  @Test func exchanges() throws {
    try withDirectory { directory in
      try directory.makeDirectory("d")
      let other = try directory.directory("d")
      try directory.makeFile("a").write("a")
      try other.makeFile("b").write("b")
      let identities = (try directory.identity("a"), try other.identity("b"))
      #expect(try directory.exchange("a", with: "b", in: other))
      #expect(try other.identity("b") == identities.0)
      #expect(try directory.identity("a") == identities.1)
      try directory.makeLink("l", to: "a")
      try directory.makeDirectory("e")
      #expect(try directory.exchange("l", with: "e", in: directory))
      #expect(try directory.kind("l") == .directory && directory.kind("e") == .symbolicLink)
      #expect(throws: Errno.noSuchFile) { try directory.exchange("a", with: "none", in: other) }
      #expect(throws: Errno.noSuchFile) { try directory.exchange("none", with: "b", in: other) }
    }
  }

  @Test func identities() throws {
    try withDirectory { directory in
      try directory.makeFile("a").write("a")
      try directory.makeFile("b").write("b")
      try directory.makeLink("l", to: "a")
      let identity = try directory.identity("a")
      #expect(try directory.identity("b") != identity)
      #expect(try directory.identity("l") != identity)
      #expect(throws: Errno.noSuchFile) { try directory.identity("none") }
      try directory.move("a", to: directory, as: "c", isReplacing: false)
      #expect(try directory.identity("c") == identity)
      // A number that is used again does not make a directory equal to a file.
      try directory.removeFile("c")
      try directory.makeDirectory("c")
      #expect(try directory.identity("c") != identity)
    }
  }

  @Test func attributes() throws {
    try withDirectory { directory in
      let file = try directory.makeFile("f")
      try file.setPermissions(0o640)
      try file.setModificationTime(1_700_000_000.5)
      #expect(try file.mode() == 0o100640)
      let attributes = try FileManager.default.attributesOfItem(atPath: url.appending(path: "f").path)
      #expect(attributes[.modificationDate] as? Date == Date(timeIntervalSince1970: 1_700_000_000.5))
      try directory.setPermissions(0o700)
      try directory.setModificationTime(-1)
      let own = try FileManager.default.attributesOfItem(atPath: url.path)
      #expect(own[.modificationDate] as? Date == Date(timeIntervalSince1970: -1))
      #expect((own[.posixPermissions] as? NSNumber)?.intValue == 0o700)
    }
  }
}
