import Testing
import ZipArchive

@Suite struct EntryNameTests {
  @Test(arguments: [
    ("a", ["a"], false), ("a/b/c.txt", ["a", "b", "c.txt"], false), ("a/", ["a"], true), ("a//b", ["a", "b"], false),
    ("./a/./b", ["a", "b"], false), ("a\\b\\", ["a", "b"], true), ("a/.", ["a"], true), ("./", [], true),
    ("...", ["..."], false), (" ", [" "], false), ("ab:c", ["ab:c"], false), ("1:b", ["1:b"], false),
    ("..a/b..", ["..a", "b.."], false), ("~/x", ["~", "x"], false),
  ])
  func paths(name: String, components: [String], isDirectory: Bool) throws {
    let path = try EntryPath(name)
    #expect(path.components == components)
    #expect(path.isDirectory == isDirectory)
  }

  /// The ways out of a directory.
  static let waysOut = [
    "../a", "a/../../b", "a/..", "..", "/a", "//server/share/a", "\\a", "..\\a", "a\\..\\..\\b", "C:\\a", "c:a",
    "./../a", "a/../b",
  ]

  @Test(arguments: waysOut) func refusedPaths(name: String) {
    #expect(throws: ArchiveRefusal(.nameLeavesDestination, name)) { try EntryPath(name) }
  }

  /// A slash and the combining character after it are one `Character`.
  @Test func combiningCharacters() throws {
    #expect(throws: ArchiveRefusal.self) { try EntryPath("a/..\u{2F}\u{338}b") }
    #expect(try EntryPath("a/\u{338}b").components == ["a", "\u{338}b"])
    #expect(try EntryPath("a\\\u{338}b").components == ["a", "\u{338}b"])
  }

  @Test func lengths() throws {
    let longest = String(repeating: "a", count: 255)
    #expect(try EntryPath(longest).components == [longest])
    #expect(throws: ArchiveRefusal(.nameTooLong, longest + "a")) { try EntryPath(longest + "a") }
    let deepest = Array(repeating: "d", count: 100).joined(separator: "/")
    #expect(try EntryPath(deepest).components.count == 100)
    #expect(throws: ArchiveRefusal(.nameTooLong, deepest + "/d")) { try EntryPath(deepest + "/d") }
    let long = Array(repeating: longest, count: 13).joined(separator: "/")
    #expect(throws: ArchiveRefusal(.nameTooLong, long)) { try EntryPath(long) }
    #expect(throws: ArchiveRefusal(.unreadableName, "a\0b")) { try EntryPath("a\0b") }
  }

  @Test func characterSets() throws {
    let utf8 = Array("größe".utf8)
    let cp437: [UInt8] = [0x67, 0x72, 0x94, 0xE1, 0x65]
    #expect(try EntryName.text(utf8, isUTF8: true, host: 0) == "größe")
    #expect(try EntryName.text(utf8, isUTF8: false, host: 3) == "größe")
    // MS-DOS has no UTF-8 without the flag.
    #expect(try EntryName.text(utf8, isUTF8: false, host: 0) == "gr├╢├ƒe")
    #expect(try EntryName.text(cp437, isUTF8: false, host: 0) == "größe")
    #expect(try EntryName.text(cp437, isUTF8: false, host: 3) == "größe")
    #expect(throws: ArchiveRefusal.self) { try EntryName.text(cp437, isUTF8: true, host: 3) }
    // An overlong form of a slash.
    #expect(throws: ArchiveRefusal.self) { try EntryName.text([0x2E, 0x2E, 0xC0, 0xAF, 0x61], isUTF8: true, host: 3) }
    #expect(throws: ArchiveRefusal.self) { try EntryName.text([], isUTF8: false, host: 3) }
    #expect(throws: ArchiveRefusal.self) { try EntryName.text([0x61, 0], isUTF8: false, host: 3) }
  }

  /// Every byte has a character, the first half that of ASCII, and no byte of the second half becomes one of the first.
  @Test func codePage437() {
    let text = CP437.text(0...255)
    #expect(text.unicodeScalars.count == 256)
    #expect(Set(text.unicodeScalars).count == 256)
    #expect(text.unicodeScalars.prefix(128).elementsEqual((0..<128).map { Unicode.Scalar($0) }))
    #expect(CP437.text([0x80, 0x9F, 0xE0, 0xFE, 0xFF]) == "Çƒα■\u{A0}")
  }
}
