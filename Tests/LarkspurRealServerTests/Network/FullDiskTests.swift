import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import TestKit
import Testing

/// Downloads to a disk that is full at some moment, and the journal of background downloads. The program has a disk of its
/// own in its own namespace.
@Suite(.serialized, .timeLimit(.minutes(3)), .ownThread, .ownProcess)
struct FullDiskTests {
  let machine: Namespace

  init() throws { machine = try Namespace() }

  /// The content takes five pages; the journal takes one for the record, and one more while the record is replaced.
  private static let size = 20_000

  /// Runs the program to its end in the namespace.
  ///
  /// - Returns: The lines of its output.
  private func run(_ arguments: [String]) throws -> [String] {
    let program = try SiblingProcess.program("TestHelper").path
    return try machine.run {
      let (identifier, output) = try ServerProcess.start(program, arguments, in: nil)
      var text = ""
      while let more = ServerProcess.read(output) { text += more }
      try FileHandle(fileDescriptor: output).close()
      #expect(ServerProcess.reap(identifier) == 0, "\(text)")
      return text.split(separator: "\n").map(String.init)
    }
  }

  /// The task ends once: with the right file, or with an error that names the disk. With room on the disk the next start
  /// of the program finds nothing that is not true.
  @Test(arguments: 1...9) func aDiskOfPages(count: Int) throws {
    let temporary = try TemporaryDirectory()
    let folder = temporary.url
    try FileManager.default.createDirectory(at: folder.appending(path: "disk"), withIntermediateDirectories: true)
    try Data().write(to: folder.appending(path: "ends"))
    let disk = folder.appending(path: "disk").path
    try machine.mountDisk(at: disk, pages: count)
    let server = try machine.run { try TestServer() }
    server.route("GET", "/file") { _ in TestServer.Response(body: .content(0..<Self.size)) }
    let arguments = ["background-session", disk, folder.path, "get", server.url("/file"), "download"]
    let lines = try run(arguments)
    let completed = lines.filter { $0.hasPrefix("completed") }
    #expect(completed.count == 1, "\(lines)")
    #expect(completed == ["completed download 0"] || completed == ["completed download -3003"], "\(lines)")
    if count < 6 { #expect(completed == ["completed download -3003"], "\(lines)") }
    if count > 7 { #expect(completed == ["completed download 0"], "\(lines)") }
    try check(folder, after: completed)
    try machine.mountDisk(at: disk, pages: 100, again: true)
    #expect(try run(arguments) == ["made", "begun"])
    try check(folder, after: completed)
  }

  private func check(_ folder: URL, after completed: [String]) throws {
    let content = try? Data(contentsOf: folder.appending(path: "download"))
    let isThere = completed == ["completed download 0"]
    #expect(content == (isThere ? Data(TestServer.content(count: Self.size)) : nil))
    let ends = try String(contentsOf: folder.appending(path: "ends"), encoding: .utf8)
    #expect(ends == (isThere ? "download 0\n" : "download -3003\n"))
  }

  /// A download in pieces keeps what it has synced on a disk that gets full, and continues when there is room. The file takes
  /// five pages, and the record one, or two while it is replaced.
  @Test(arguments: 1...8) func aDownloadOnADiskOfPages(count: Int) throws {
    let temporary = try TemporaryDirectory()
    let (path, content) = (temporary.path("name"), Array(TestServer.content(count: Self.size)))
    let (pageCount, total) = (5, Self.size)
    try machine.mountDisk(at: temporary.url.path, pages: count)
    let kept = try machine.run {
      let store = try DownloadStore(path: path, urls: ["u"], DownloadHashes(), bytesToLeave: 0)
      if count < pageCount {
        #expect(throws: Errno.noSpace) { try store.reserve(total) }
      } else {
        try store.reserve(total)
      }
      defer { store.close() }
      return try Self.download(content, to: store)
    }
    #expect(kept == nil ? count > pageCount + 1 : count < pageCount + 2)
    guard let kept else { return }
    try machine.mountDisk(at: temporary.url.path, pages: 100, again: true)
    try machine.run {
      let store = try DownloadStore(path: path, urls: ["u"], DownloadHashes(), bytesToLeave: 0)
      #expect(store.record?.kept ?? ByteRanges() == kept)
      for range in kept.ranges {
        #expect(try store.read(at: range.lowerBound, atMost: range.count) == Array(content[range]))
      }
      try store.reserve(total)
      #expect(try Self.download(content, to: store) == nil)
      store.close()
      #expect(try Data(contentsOf: URL(filePath: path)) == Data(content))
    }
  }

  /// Downloads page by page, with a checkpoint after each.
  ///
  /// - Returns: The bytes of the last checkpoint, if the disk is full, or `nil` if the file is complete.
  private static func download(_ content: [UInt8], to store: DownloadStore) throws -> ByteRanges? {
    var kept = store.record?.kept ?? ByteRanges()
    do throws(Errno) {
      for start in stride(from: 0, to: content.count, by: 4096) {
        let page = start..<min(start + 4096, content.count)
        if kept.contains(page) { continue }
        try store.write(content[page].span, at: start)
        var now = kept
        now.insert(page)
        try store.checkpoint(
          DownloadRecord(
            sources: [.init(url: "u", validator: "v")], total: content.count, coding: nil, kept: now,
            inode: store.inode))
        kept = now
      }
      try store.install(total: content.count)
      return nil
    } catch {
      #expect(error == .noSpace)
      return kept
    }
  }
}
