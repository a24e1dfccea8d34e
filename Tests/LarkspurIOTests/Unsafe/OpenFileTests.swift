import Foundation
import LarkspurIO
import TestKit
import Testing

@Suite struct OpenFileTests {
  private let temporary: TemporaryDirectory
  private let directory: Directory

  init() throws {
    temporary = try TemporaryDirectory()
    directory = try Directory.ofOwner(at: temporary.url.path)
  }

  /// A file without a name gets one, once, and has its bytes then.
  @Test func filesWithoutNames() throws {
    let file = try OpenFile(namelessIn: temporary.url.path)
    try file.write("text")
    #expect(try directory.list().isEmpty)
    try file.link(to: temporary.path("name"))
    #expect(throws: Errno.fileExists) { try file.link(to: temporary.path("name")) }
    #expect(try String(contentsOf: temporary.file("name"), encoding: .utf8) == "text")
    let other = try OpenFile(namelessIn: temporary.url.path)
    try other.write(contentsOf: OpenFile(reading: temporary.path("name")))
    try directory.link(other, as: "other")
    #expect(try directory.read("other", atMost: 10) == Array("text".utf8))
    #expect(throws: Errno.noSuchFile) { try OpenFile(namelessIn: temporary.path("none")) }
  }

  /// An attribute stays with the file, and a longer value than the caller takes is none.
  @Test func attributes() throws {
    let file = try OpenFile(creating: temporary.path("name"))
    #expect(file.attribute("user.version", atMost: 8) == nil)
    try file.setAttribute("user.version", to: "12345678")
    try file.setAttribute("user.empty", to: "")
    let same = try OpenFile(reading: temporary.path("name"))
    #expect(same.attribute("user.version", atMost: 8) == Array("12345678".utf8))
    #expect(same.attribute("user.version", atMost: 7) == nil)
    #expect(same.attribute("user.empty", atMost: 8) == [])
    #expect(throws: Errno.self) { try OpenFile.standardInput.setAttribute("none", to: "x") }
  }

  @Test func locks() throws {
    let file = try #require(try directory.createLocked("name"))
    #expect(try directory.lock("name") == nil)
    let same = try OpenFile(updatingRegular: temporary.path("name"))
    #expect(try !same.lock())
    file.unlock()
    #expect(try same.lock())
    #expect(throws: Errno.fileExists) { try directory.createLocked("name") }
  }
}
