import Foundation
import LarkspurHTTP
import LarkspurIO
import TestKit
import Testing

@testable import Larkspur

@Suite struct DownloadFileTests {
  private let directory: TemporaryDirectory
  private let files: PartialFiles

  init() throws {
    directory = try TemporaryDirectory()
    files = PartialFiles(in: directory.url.path, name: "partial")
  }

  /// The names of all files, without the key.
  private var names: [String] {
    let all = FileManager.default.enumerator(atPath: directory.url.path)?.compactMap { $0 as? String } ?? []
    return all.filter { $0 != "partial" && $0 != "partial/key" }
  }

  private func isThere(_ url: URL?) -> Bool { url.map { FileManager.default.fileExists(atPath: $0.path) } ?? false }

  private func request() throws -> URLRequest { URLRequest(url: try #require(URL(string: "http://localhost/file"))) }

  @Test func aFileThatIsWrittenHasNoName() throws {
    var file: DownloadFile? = try DownloadFile(in: files)
    try file?.write([1, 2].span)
    #expect(file?.url == nil && names.isEmpty)
    try file?.name(stays: false)
    let url = try #require(file?.url)
    #expect(try Data(contentsOf: url) == Data([1, 2]))
    #expect(try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int == 0o600)
    // The name stays, and goes with the object.
    try file?.name(stays: false)
    #expect(file?.url == url)
    file = nil
    #expect(names.isEmpty)
  }

  /// A file that stays has a name in the temporary directory, which no sweep removes.
  @Test(arguments: [true, false]) func aFileThatStays(isNameless: Bool) throws {
    var file: DownloadFile? = try DownloadFile(in: files, isNameless: isNameless)
    try file?.name(stays: true)
    let url = try #require(file?.url)
    file?.giveAway()
    file = nil
    files.sweep(now: Date())
    #expect(names == [url.lastPathComponent])
  }

  /// Where files need names, those of running downloads stay, and those of dead processes go.
  @Test func filesOfDeadProcessesGo() throws {
    let live = try DownloadFile(in: files, isNameless: false)
    let url = try #require(live.url)
    #expect(url.deletingLastPathComponent().path == files.path)
    let dead = files.path + "/0.tmp"
    #expect(FileManager.default.createFile(atPath: dead, contents: nil))
    // The age of a file that is being written does not count.
    let old = Date(timeIntervalSince1970: 0)
    try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: url.path)
    files.sweep(now: Date())
    #expect(isThere(url) && !isThere(URL(filePath: dead)))
    // The delegate's file is removed like one that is written, if the process ends within the call.
    let named = try DownloadFile(in: files)
    try named.name(stays: false)
    #expect(named.url?.deletingLastPathComponent().path == files.path)
    named.file.unlock()
    files.sweep(now: Date())
    #expect(!isThere(named.url))
  }

  /// A file that is continued can be kept again, and only one download has it.
  @Test func aPartialFileIsTaken() throws {
    let point = ResumePoint(validator: "\"one\"", offset: 2, total: 10, coding: nil)
    var bytes = try #require(try files.keep(kept(), of: request(), at: point))
    for _ in 0..<2 {
      let data = try ResumeData.decoded(bytes, key: { files.key(isCreating: false) })
      let (first, second) = (try #require(files.open(data)), try #require(files.open(data)))
      let taken = try #require(files.take(data, first))
      #expect(files.take(data, second) == nil && files.open(data) == nil)
      files.sweep(now: Date())
      bytes = try #require(try files.keep(taken, of: request(), at: point))
    }
  }

  private func kept() throws -> DownloadFile {
    let file = try DownloadFile(in: files)
    try file.write([1, 2].span)
    return file
  }

  @Test func aDirectoryThatCannotBeUsed() throws {
    #expect(FileManager.default.createFile(atPath: files.path, contents: nil))
    for isNameless in [true, false] {
      let file = try DownloadFile(in: files, isNameless: isNameless)
      try file.name(stays: false)
      #expect(isThere(file.url))
    }
    #expect(names.isEmpty)
  }
}
