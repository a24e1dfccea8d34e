import Foundation
import TestKit
import Testing
import ZipArchive

/// Archives of directories that hold more than files. What is written is extracted, and compared.
@Suite(.ownThread) struct DirectoryContentsTests {
  private final class Recorder: NSObject, SSZipArchiveDelegate {
    var leftOut: [String: SSZipArchiveErrorCode?] = [:]
    var archivePaths: Set<String> = []

    func zipArchiveDidLeaveOutFile(atPath filePath: String, archivePath: String, error: NSError) {
      leftOut[URL(filePath: filePath).lastPathComponent] = .some(error.archiveCode)
      archivePaths.insert(archivePath)
    }
  }

  /// Makes a directory `in` with files and with entries that are no files.
  private func filled() throws -> Room {
    let room = try Room()
    try room.write("in/d/a", "a")
    try room.write("in/b", "b")
    try room.link("in/toFile", to: "d/a")
    try room.link("in/toDirectory", to: "d")
    try room.link("in/toNothing", to: "none")
    try room.link("in/d/up", to: "../b")
    try room.link("in/itself", to: "itself")
    try room.link("in/outsideFile", to: "../secret")
    try room.link("in/outsideDirectory", to: "..")
    try room.link("in/absolute", to: "/")
    try room.write("secret", "secret")
    try room.write("in/__MACOSX/._a", "x")
    let made = try room.run(
      "sh", "-c", "mkfifo in/pipe && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"in/socket\")'")
    #expect(made.status == 0, "\(made.output)")
    return room
  }

  private func create(_ room: Room, keepSymlinks: Bool? = nil) throws -> Recorder {
    let recorder = Recorder()
    try SSZipArchive.createZipFile(
      atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), keepSymlinks: keepSymlinks,
      delegate: recorder)
    #expect(recorder.archivePaths == [room.path("made.zip")])
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.text("out/d/a") == "a" && room.text("out/b") == "b")
    return recorder
  }

  private func target(_ room: Room, _ name: String) -> String? {
    try? FileManager.default.destinationOfSymbolicLink(atPath: room.path(name))
  }

  private static let never: [String: SSZipArchiveErrorCode?] = [
    "pipe": .unsupportedEntryType, "socket": .unsupportedEntryType, "._a": .unsupportedEntryType,
    "outsideDirectory": .symlinkEscapesTargetDirectory, "absolute": .symlinkEscapesTargetDirectory,
  ]

  @Test func linksAreKept() throws {
    let room = try filled()
    let recorder = try create(room, keepSymlinks: true)
    let outside = ["outsideFile": Optional(SSZipArchiveErrorCode.symlinkEscapesTargetDirectory)]
    #expect(recorder.leftOut == Self.never.merging(outside) { $1 })
    for (name, text) in [
      ("toFile", "d/a"), ("toDirectory", "d"), ("toNothing", "none"), ("d/up", "../b"), ("itself", "itself"),
    ] {
      #expect(target(room, "out/" + name) == text, "\(name)")
    }
  }

  /// Without the option, a link to a file is that file, and any other link is a link.
  @Test func linksAreFollowedToFiles() throws {
    let room = try filled()
    #expect(try create(room).leftOut == Self.never)
    for (name, text) in [("toDirectory", "d"), ("toNothing", "none"), ("itself", "itself")] {
      #expect(target(room, "out/" + name) == text, "\(name)")
    }
    for (name, text) in [("toFile", "a"), ("d/up", "b"), ("outsideFile", "secret")] {
      #expect(target(room, "out/" + name) == nil && room.text("out/" + name) == text, "\(name)")
    }
  }

  @Test func linksAreLeftOut() throws {
    let room = try filled()
    let leftOut = try create(room, keepSymlinks: false).leftOut
    let links = ["toDirectory", "toNothing", "itself", "outsideDirectory", "absolute"]
    for name in links { #expect(leftOut[name] == .some(.unsupportedEntryType), "\(name)") }
    #expect(Set(leftOut.keys) == Set(Self.never.keys).union(links))
    #expect(room.names("out") == ["b", "d", "d/a", "d/up", "outsideFile", "toFile"])
  }

  /// The forms of SSZipArchive have no reports, and make these archives as well.
  @Test func formsWithoutADelegate() throws {
    let room = try filled()
    #expect(SSZipArchive.createZipFile(atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in")))
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(target(room, "out/toDirectory") == "d" && room.text("out/b") == "b")
    for keepSymlinks in [true, false] {
      #expect(
        SSZipArchive.createZipFile(
          atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), keepParentDirectory: true,
          compressionLevel: -1, password: nil, aes: true, progressHandler: nil, keepSymlinks: keepSymlinks))
      #expect(extract(room.path("made.zip"), in: room) == nil)
      #expect((target(room, "out/in/toDirectory") == "d") == keepSymlinks)
      try FileManager.default.removeItem(atPath: room.path("out"))
    }
  }

  @Test func aLinkToTheDirectoryItself() throws {
    let room = try Room()
    try room.write("releases/1/a", "a")
    try room.link("current", to: "releases/1")
    try SSZipArchive.createZipFile(
      atPath: room.path("made.zip"), withContentsOfDirectory: room.path("current"), keepParentDirectory: true,
      delegate: nil)
    #expect(extract(room.path("made.zip"), in: room) == nil)
    #expect(room.names("out") == ["current", "current/a"])
  }

  /// What holds contents is not left out: the archive is not made, and the error has the reason.
  @Test(
    arguments: [
      (["README", "readme"], .conflictingEntryNames), (["ä", "a\u{308}"], .conflictingEntryNames),
      (["D/a", "d/b"], .conflictingEntryNames), (["a\\b"], .unsafeEntryName), (["..\\b"], .unsafeEntryName),
      (["c:x"], .unsafeEntryName), ([String(repeating: "d/", count: 100) + "a"], .unsafeEntryName),
    ] as [([String], SSZipArchiveErrorCode)])
  func refusals(names: [String], code: SSZipArchiveErrorCode) throws {
    let room = try Room()
    try room.write("made.zip", "old")
    for name in names { try room.write("in/" + name, name) }
    let error = #expect(throws: NSError.self) {
      try SSZipArchive.createZipFile(
        atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), delegate: nil)
    }
    #expect(error?.archiveCode == code)
    #expect(error?.localizedDescription.contains(names.last ?? "") == true)
    #expect(!SSZipArchive.createZipFile(atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in")))
    #expect(room.text("made.zip") == "old")
  }

  /// Equal limits at both ends: similar names come back where both permit them.
  @Test func similarNames() throws {
    let room = try Room()
    var limits = SSZipArchiveLimits()
    limits.permitsSimilarNames = true
    for name in ["README", "readme", "d/ä", "d/a\u{308}"] { try room.write("in/" + name, name) }
    try SSZipArchive.createZipFile(
      atPath: room.path("made.zip"), withContentsOfDirectory: room.path("in"), limits: limits, delegate: nil)
    #expect(extract(room.path("made.zip"), in: room, limits: limits) == nil)
    #expect(room.text("out/README") == "README" && room.text("out/readme") == "readme")
    #expect(room.names("out")?.count == 5)
  }

  @Test func directoriesThatCannotBeRead() throws {
    let room = try Room()
    try room.write("file", "file")
    for name in ["none", "file", ""] {
      let error = #expect(throws: NSError.self) {
        try SSZipArchive.createZipFile(
          atPath: room.path("made.zip"), withContentsOfDirectory: room.path("x") + "/" + name, delegate: nil)
      }
      #expect(error?.archiveCode == .fileContentNotReadable)
    }
    #expect(room.names("") == ["file"])
  }
}
