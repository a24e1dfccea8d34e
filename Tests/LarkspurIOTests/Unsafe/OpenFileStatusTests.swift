import Foundation
import LarkspurBytes
import LarkspurIO
import Testing

/// The facts that recognize a file.
@Suite struct OpenFileStatusTests {
  @Test func aChangeShows() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: url) }
    try Data("hello".utf8).write(to: url)
    let time = Date(timeIntervalSince1970: 1_000_000_000.25)
    try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: url.path)
    let file = try OpenFile(readingRegular: url.path)
    let before = try file.status()
    #expect(before.size == 5 && before.modificationSeconds == 1_000_000_000)
    #expect(before.modificationNanoseconds == 250_000_000 && before.inode != 0)
    #expect(try file.status() == before)
    let writer = try FileHandle(forUpdating: url)
    try writer.write(contentsOf: Data("H".utf8))
    try writer.close()
    let after = try file.status()
    #expect(after.size == 5 && after.inode == before.inode && after.modificationSeconds > 1_000_000_000)
    // A file that replaces this one has another inode.
    let other = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try Data("hello".utf8).write(to: other)
    #expect(rename(other.path, url.path) == 0)
    #expect(try OpenFile(readingRegular: url.path).status().inode != before.inode)
    #expect(try file.status().inode == before.inode)
  }
}
