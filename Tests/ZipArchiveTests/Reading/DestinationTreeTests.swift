import Dispatch
import Foundation
import LarkspurIO
import Synchronization
import TestKit
import Testing

@testable import ZipArchive

/// Other programs and other extractions change the destination during an extraction.
@Suite(.ownThread) struct DestinationTreeTests {
  typealias Entry = ArchiveBytes.Entry

  /// Runs a closure when the entry before the last one has been extracted.
  private final class Meddler: NSObject, SSZipArchiveDelegate {
    let action: () throws -> Void

    init(_ action: @escaping () throws -> Void) { self.action = action }

    func zipArchiveDidUnzipFile(at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info) {
      if fileIndex == totalFiles - 2 { #expect(throws: Never.self) { try action() } }
    }
  }

  /// Extracts an archive whose last entry is bad.
  private func extractBad(_ entries: [Entry], in room: Room, _ action: @escaping () throws -> Void) throws -> NSError? {
    var bad = Entry("z", "bad")
    bad.checksum = 1
    let path = try room.write("made.zip", ArchiveBytes(entries + [bad]).data)
    do {
      try SSZipArchive.unzipFile(
        atPath: path, toDestination: room.path("out"), overwrite: true, password: nil, delegate: Meddler(action))
      return nil
    } catch {
      return error as NSError
    }
  }

  /// Checks that one file is left in the staging directory, and that the error tells where.
  private func checkKept(_ text: String, _ error: NSError?, in room: Room) throws {
    let name = try #require(room.names("out")?.first { $0.hasPrefix(".ziparchive-") && $0.contains("/") })
    #expect(room.text("out/\(name)") == text)
    #expect(error?.archiveCode == .failedToWriteFile)
    #expect((error?.userInfo[NSUnderlyingErrorKey] as? NSError)?.archiveCode == .fileInfoNotLoadable)
    let parts = name.split(separator: "/")
    let message = error?.localizedDescription ?? ""
    #expect(message.contains("/out/\(parts[0]): ") && message.hasSuffix(" is \(parts[1])."), "\(message)")
  }

  @Test func theDirectoryOfAReplacedFileIsGone() throws {
    let room = try Room()
    try room.write("out/d/a", "old")
    let error = try extractBad([Entry("d/a", "new"), Entry("f", "new")], in: room) {
      try FileManager.default.moveItem(atPath: room.path("out/d"), toPath: room.path("moved"))
    }
    try checkKept("old", error, in: room)
    #expect(room.names("out")?.count == 2)
  }

  @Test func thePlaceOfAReplacedFileIsADirectory() throws {
    let room = try Room()
    try room.write("out/a", "old")
    let error = try extractBad([Entry("a", "new")], in: room) {
      try FileManager.default.removeItem(atPath: room.path("out/a"))
      try room.write("out/a/b", "other")
    }
    try checkKept("old", error, in: room)
    #expect(room.text("out/a/b") == "other")
  }

  /// A file that another extraction has put in the place of a new file stays.
  @Test func filesOfOthersStay() throws {
    let room = try Room()
    let other = try room.write("other.zip", ArchiveBytes(Entry("a", "other")).data)
    let error = try extractBad([Entry("a", "new")], in: room) { #expect(extract(other, in: room) == nil) }
    #expect(error?.archiveCode == .fileInfoNotLoadable)
    #expect(room.text("out/a") == "other")
    #expect(room.names("out") == ["a"])
  }

  @Test func filesOfOthersStayInPlaceOfReplacedOnes() throws {
    let room = try Room()
    try room.write("out/a", "old")
    let other = try room.write("other.zip", ArchiveBytes(Entry("a", "other")).data)
    let error = try extractBad([Entry("a", "new")], in: room) { #expect(extract(other, in: room) == nil) }
    #expect(room.text("out/a") == "other")
    try checkKept("old", error, in: room)
  }

  /// A file appears after the extraction has looked for it.
  @Test func filesThatAppearStay() throws {
    let room = try Room()
    let tree = try DestinationTree(room.path("out"))
    let staged = try tree.stageFile().name
    try room.write("out/a", "old")
    try room.write("out/l", "old")
    #expect(try !tree.place(staged, at: ["a"], isReplacing: false))
    #expect(try !tree.placeLink(to: "a", at: ["l"], isReplacing: false))
    let second = try tree.stageFile().name
    #expect(try tree.place(second, at: ["b"], isReplacing: false))
    #expect(try tree.placeLink(to: "a", at: ["m"], isReplacing: false))
    tree.finish([])
    #expect(room.text("out/a") == "old" && room.text("out/l") == "old" && room.text("out/b") == "")
    #expect(room.names("out") == ["a", "b", "l", "m"])
  }

  // MARK: - Replacing

  /// A program that opens a file while an extraction replaces it finds the old one or the new one.
  @Test func replacingIsAtomic() throws {
    let room = try Room()
    try room.write("out/a", "old")
    let tree = try DestinationTree(room.path("out"))
    let isOver = Atomic(false)
    let misses = Atomic(0)
    let (begun, ended) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let path = room.path("out/a")
    Thread {
      begun.signal()
      while !isOver.load(ordering: .acquiring) {
        if !FileManager.default.fileExists(atPath: path) { misses.add(1, ordering: .relaxed) }
      }
      ended.signal()
    }.start()
    begun.wait()
    for _ in 0..<2000 {
      let (_, name) = try tree.stageFile()
      #expect(try tree.place(name, at: ["a"], isReplacing: true))
    }
    #expect(tree.rollBack(after: ArchiveRefusal(.tooLarge)) is ArchiveRefusal)
    isOver.store(true, ordering: .releasing)
    ended.wait()
    #expect(misses.load(ordering: .acquiring) == 0)
    #expect(room.text("out/a") == "old" && room.names("out") == ["a"])
  }

  /// Files, links and a file that is replaced twice, on file systems with and without an exchange in one step.
  @Test(arguments: [true, false]) func replacing(canExchange: Bool) throws {
    let room = try Room()
    try room.write("out/a", "old")
    try room.link("out/l", to: "nowhere")
    try FileManager.default.createDirectory(atPath: room.path("out/d"), withIntermediateDirectories: true)
    for isUndone in [true, false] {
      let tree = try DestinationTree(room.path("out"), canExchange: canExchange)
      for text in ["first", "second"] {
        let (file, name) = try tree.stageFile()
        try file.write(Array(text.utf8).span)
        #expect(try tree.place(name, at: ["a"], isReplacing: true))
        #expect(room.text("out/a") == text)
      }
      #expect(try tree.placeLink(to: "a", at: ["l"], isReplacing: true))
      #expect(room.text("out/l") == "second")
      #expect(throws: NSError.self) { try tree.placeLink(to: "a", at: ["d"], isReplacing: true) }
      if isUndone {
        #expect(tree.rollBack(after: ArchiveRefusal(.tooLarge)) is ArchiveRefusal)
        #expect(room.text("out/a") == "old")
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: room.path("out/l")) == "nowhere")
      } else {
        tree.finish([])
        #expect(room.text("out/a") == "second" && room.text("out/l") == "second")
      }
      #expect(room.names("out") == ["a", "d", "l"])
    }
  }

  /// Extractions of one archive into one destination do not disturb one another.
  @Test func concurrentExtractions() throws {
    let room = try Room()
    try room.write("out/kept", "kept")
    let entries = (0..<200).flatMap { [Entry("\($0)/d/f", "text"), Entry("\($0)/e/", "", mode: 0o040755)] }
    let path = try room.write("made.zip", ArchiveBytes(entries).data)
    let errors = Mutex<[NSError]>([])
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      if let error = extract(path, in: room) { errors.withLock { $0.append(error) } }
    }
    let found = errors.withLock { $0 }
    #expect(found == [])
    #expect(room.names("out")?.count == 1 + 200 * 4)
    #expect(room.text("out/199/d/f") == "text")
  }
}
