import Foundation
import LarkspurIO
import Testing

@Suite struct DirectoryOwnerTests {
  private let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-owner-\(UUID().uuidString)")

  private func permissions(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  @Test(arguments: ["", "/a", "/a/b/c", "/a//b/"]) func missingDirectories(path: String) throws {
    defer { try? FileManager.default.removeItem(at: url) }
    for _ in 0..<2 {
      let directory = try Directory.ofOwner(at: url.path + path)
      #expect(try directory.list().isEmpty)
      #expect(try permissions(url.path) == 0o700)
      #expect(try permissions(url.path + path) == 0o700)
    }
  }

  @Test func permissionsOfOthersAreRemoved() throws {
    defer { try? FileManager.default.removeItem(at: url) }
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    _ = try Directory.ofOwner(at: url.path)
    #expect(try permissions(url.path) == 0o700)
  }

  @Test func impossiblePlaces() throws {
    defer { try? FileManager.default.removeItem(at: url) }
    #expect(throws: Errno.noSuchFile) { try Directory.ofOwner(at: "") }
    try Data().write(to: url)
    #expect(throws: Errno.notDirectory) { try Directory.ofOwner(at: url.path + "/a/b") }
  }
}
