import Foundation
import Glibc
import LarkspurIO
import TestKit
import Testing

@Suite struct DirectoryTests {
  /// A process that another thread is starting has copies of all descriptors for a moment.
  @Test func aCopyOfTheDescriptorDoesNotHoldTheLock() throws {
    let temporary = try TemporaryDirectory()
    let url = temporary.url
    let directory = try Directory.ofOwner(at: url.path)
    var lock = try directory.lock("lock")
    let second = try directory.lock("lock")
    #expect(lock != nil && second == nil)
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").filter { name in
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
      return target?.hasSuffix("/\(url.lastPathComponent)/lock") ?? false
    }
    let copies = descriptors.compactMap { Int32($0) }.map { dup($0) }
    defer { for copy in copies { close(copy) } }
    #expect(copies.count == 1)
    lock = nil
    let third = try directory.lock("lock")
    #expect(third != nil)
  }
}
