import Foundation
import Synchronization
import TestKit
import Testing
import ZipArchive

@Suite(.ownThread) struct DelegateTests {
  typealias Entry = ArchiveBytes.Entry

  private final class Recorder: NSObject, SSZipArchiveDelegate {
    var events: [String] = []
    var lastIndex = Int.max

    func zipArchiveWillUnzipArchive(atPath path: String, zipInfo: unz_global_info) {
      events.append("begin \(zipInfo.number_entry)")
    }

    func zipArchiveDidUnzipArchive(atPath path: String, zipInfo: unz_global_info, unzippedPath: String) {
      events.append("end \(URL(filePath: unzippedPath).lastPathComponent)")
    }

    func zipArchiveShouldUnzipFile(
      at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info
    ) -> Bool {
      events.append("should \(fileIndex) of \(totalFiles): \(fileInfo.uncompressed_size)")
      return fileIndex <= lastIndex
    }

    func zipArchiveWillUnzipFile(at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info) {
      events.append("will \(fileIndex)")
    }

    func zipArchiveDidUnzipFile(at fileIndex: Int, totalFiles: Int, archivePath: String, fileInfo: unz_file_info) {
      events.append("did \(fileIndex) \(String(fileInfo.external_fa >> 16, radix: 8)) \(fileInfo.version >> 8)")
    }

    func zipArchiveDidUnzipFile(
      at fileIndex: Int, totalFiles: Int, archivePath: String, unzippedFilePath: String
    ) {
      // The file is in its place.
      let size = FileManager.default.contents(atPath: unzippedFilePath)?.count
      events.append("did \(URL(filePath: unzippedFilePath).lastPathComponent) \(size ?? -1)")
    }

    func zipArchiveProgressEvent(_ loaded: UInt64, total: UInt64) { events.append("progress \(loaded) of \(total)") }
  }

  /// A delegate without any method.
  private final class Silent: NSObject, SSZipArchiveDelegate {}

  private func archive(_ room: Room) throws -> String {
    try room.write("made.zip", ArchiveBytes(Entry("a", "12345"), Entry("b", "678"), Entry("__MACOSX/._a", "x")).data)
  }

  @Test func order() throws {
    let room = try Room()
    let path = try archive(room)
    let size = try Data(contentsOf: room.url.appending(path: "made.zip")).count
    let recorder = Recorder()
    #expect(SSZipArchive.unzipFile(atPath: path, toDestination: room.path("out"), delegate: recorder))
    #expect(
      recorder.events == [
        "begin 3", "progress 0 of \(size)", "should 0 of 3: 5", "will 0", "progress 5 of \(size)", "did 0 100644 3",
        "did a 5", "should 1 of 3: 3", "will 1", "progress 8 of \(size)", "did 1 100644 3", "did b 3",
        "should 2 of 3: 1", "will 2", "progress 9 of \(size)", "end out", "progress \(size) of \(size)",
      ])
    #expect(room.names("out") == ["a", "b"])
    let out = room.path("out")
    #expect(SSZipArchive.unzipFile(atPath: path, toDestination: out, delegate: Silent()))
  }

  @Test func cancellation() throws {
    let room = try Room()
    let path = try archive(room)
    let recorder = Recorder()
    recorder.lastIndex = 0
    var problem: NSError?
    let success = SSZipArchive.unzipFile(
      atPath: path, toDestination: room.path("out"), preserveAttributes: true, overwrite: true, password: nil,
      error: &problem, delegate: recorder)
    #expect(!success)
    #expect((problem as? CocoaError)?.code == .userCancelled)
    #expect(recorder.events.last == "should 1 of 3: 3")
    #expect(room.names("") == ["made.zip"])
  }

  @Test func cancellationOfTheTask() async throws {
    let room = try Room()
    let path = try archive(room)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try SSZipArchive.unzipFile(atPath: path, toDestination: room.path("out"), overwrite: true, password: nil)
    }
    let result = await task.result
    #expect(throws: CocoaError.self) { try result.get() }
    #expect(room.names("") == ["made.zip"])
  }

  /// A cancellation ends the check of the archive's directory: the destination is not touched, and the delegate is not
  /// called.
  @Test func cancellationOfThePlan() async throws {
    let room = try Room()
    let path = try archive(room)
    try room.write("out", "a file in the place of the destination")
    let journal = Mutex<[String]>([])
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      let recorder = Recorder()
      defer { journal.withLock { $0 = recorder.events } }
      try SSZipArchive.unzipFile(
        atPath: path, toDestination: room.path("out"), overwrite: true, password: nil, delegate: recorder)
    }
    let result = await task.result
    let error = #expect(throws: CocoaError.self) { try result.get() }
    #expect(error?.code == .userCancelled)
    #expect(journal.withLock { $0 } == [])
    #expect(room.names("") == ["made.zip", "out"])
  }

  @Test func handlers() throws {
    let room = try Room()
    let path = try archive(room)
    var events: [String] = []
    let success = SSZipArchive.unzipFile(
      atPath: path, toDestination: room.path("out"), overwrite: true, password: nil,
      progressHandler: { entry, info, number, total in
        events.append(
          "\(entry) \(info.crc == CRC.of(entry == "a" ? Array("12345".utf8) : Array("678".utf8))) \(number) \(total)")
      },
      completionHandler: { events.append("\($0 == path) \($1) \($2 == nil)") })
    #expect(success)
    #expect(events == ["a true 0 3", "b true 1 3", "true true true"])
    events = []
    #expect(
      !SSZipArchive.unzipFile(
        atPath: room.path("missing"), toDestination: room.path("out"), progressHandler: nil,
        completionHandler: { _, success, error in
          events.append("\(success) \((error as NSError?)?.archiveCode == .failedOpenZipFile)")
        }))
    #expect(events == ["false true"])
  }

  /// Every form compiles with the spelling of Apple's importer, and works.
  @Test func forms() throws {
    let room = try Room()
    let (path, out) = (try archive(room), room.path("out"))
    var problem: NSError?
    #expect(SSZipArchive.unzipFile(atPath: path, toDestination: out))
    try SSZipArchive.unzipFile(atPath: path, toDestination: out, overwrite: true, password: nil)
    try SSZipArchive.unzipFile(atPath: path, toDestination: out, overwrite: true, password: nil, delegate: nil)
    #expect(
      SSZipArchive.unzipFile(
        atPath: path, toDestination: out, preserveAttributes: true, overwrite: true, password: nil, error: nil,
        delegate: nil))
    #expect(
      SSZipArchive.unzipFile(
        atPath: path, toDestination: out, preserveAttributes: true, overwrite: true, nestedZipLevel: 1, password: nil,
        error: &problem, delegate: nil, progressHandler: nil, completionHandler: nil))
    #expect(
      SSZipArchive.unzipFile(
        atPath: path, toDestination: out, preserveAttributes: true, overwrite: true, nestedZipLevel: 1, password: nil,
        error: nil, delegate: nil, progressHandler: { _, _, _, _ in }, completionHandler: { _, _, _ in }))
    #expect(
      SSZipArchive.unzipFile(
        atPath: path, toDestination: out, preserveAttributes: true, overwrite: true, symlinksValidWithin: nil,
        nestedZipLevel: 1, password: nil, error: nil, delegate: nil, progressHandler: nil, completionHandler: nil))
    #expect(problem == nil)
    #expect(SSZipArchive.payloadSizeForArchive(atPath: path, error: &problem) == 9)
    #expect(SSZipArchive.payloadSizeForArchive(atPath: path, error: nil) == 9)
    #expect(try SSZipArchive.payloadSizeForArchive(atPath: path) == 9)
    #expect(SSZipArchive.payloadSizeForArchive(atPath: room.path("missing"), error: &problem) == 0)
    #expect(problem?.archiveCode == .failedOpenZipFile)
    #expect(SSZipArchive.isPasswordValidForArchive(atPath: path, password: "any", error: nil))
    #expect(!SSZipArchive.isFilePasswordProtected(atPath: path))
  }

  @Test func linksWithin() throws {
    let room = try Room()
    let path = try room.write("made.zip", ArchiveBytes(Entry("l", "../beside", mode: 0o120777)).data)
    func unzip(_ directory: String?) -> NSError? {
      var problem: NSError?
      SSZipArchive.unzipFile(
        atPath: path, toDestination: room.path("out"), preserveAttributes: true, overwrite: true,
        symlinksValidWithin: directory, nestedZipLevel: 0, password: nil, error: &problem, delegate: nil,
        progressHandler: nil, completionHandler: nil)
      return problem
    }
    #expect(unzip(room.path("out"))?.archiveCode == .symlinkEscapesTargetDirectory)
    #expect(unzip(room.path("out/deeper"))?.archiveCode == .symlinkEscapesTargetDirectory)
    #expect(unzip(room.path("")) == nil)
    #expect(unzip(nil) == nil)
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: room.path("out/l")) == "../beside")
  }
}
