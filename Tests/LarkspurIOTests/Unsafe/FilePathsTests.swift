import Foundation
import LarkspurIO
import TestKit
import Testing

@Suite struct FilePathsTests {
  /// A slash with a combining character after it is another `Character`, and still a slash.
  @Test(arguments: [
    ("/a/b", "/a", "b"), ("/a", "", "a"), ("a", ".", "a"), ("a/", "a", ""), ("a/\u{301}b", "a", "\u{301}b"),
  ])
  func parts(path: String, directory: String, name: String) {
    #expect(FilePaths.directory(of: path) == directory && FilePaths.name(of: path) == name)
  }

  @Test(arguments: ["link", "\u{301}link"]) func theDestinationOfALink(name: String) throws {
    let temporary = try TemporaryDirectory()
    let link = temporary.url.path + "/" + name
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "target")
    #expect(try FilePaths.destination(of: link) == temporary.url.path + "/target")
  }
}
