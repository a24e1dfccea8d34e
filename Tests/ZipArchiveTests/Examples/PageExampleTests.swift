import AFNetworking
import Dispatch
import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing
import ZipArchive

/// The examples of the page and of the README. Those with paths in the working directory are compiled only.
@Suite(.timeLimit(.minutes(1))) struct PageExampleTests {
  private func both() throws {
    SSZipArchive.createZipFile(atPath: "songs.zip", withContentsOfDirectory: "songs")
    try SSZipArchive.unzipFile(atPath: "songs.zip", toDestination: "copy", overwrite: false, password: nil)
  }

  private func reported() throws {
    final class Report: NSObject, SSZipArchiveDelegate {
      func zipArchiveDidLeaveOutFile(atPath filePath: String, archivePath: String, error: NSError) {
        print(filePath, error.localizedDescription)
      }
    }

    try SSZipArchive.createZipFile(atPath: "home.zip", withContentsOfDirectory: "home", delegate: Report())
  }

  @concurrent
  func unpack(_ url: URL, into directory: String) async throws {
    let (file, _) = try await URLSession.shared.download(from: url)
    defer { try? FileManager.default.removeItem(at: file) }
    try SSZipArchive.unzipFile(atPath: file.path, toDestination: directory, overwrite: false, password: nil)
  }

  private func unpackWithAFNetworking(_ url: URL, into directory: String) {
    let manager = AFURLSessionManager(sessionConfiguration: .default)
    manager.completionQueue = DispatchQueue(label: "unpacking")
    let task = manager.downloadTask(with: URLRequest(url: url), progress: nil) { _, _ in
      FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    } completionHandler: { _, file, error in
      guard let file else { return }
      SSZipArchive.unzipFile(atPath: file.path, toDestination: directory)
    }
    task.resume()
    manager.invalidateSessionCancelingTasks(false, resetSession: false)
  }

  private func served(_ archive: ArchiveBytes) throws -> (server: TestServer, url: URL) {
    let server = try TestServer()
    let bytes = Array(archive.data)
    server.route("GET", "/made.zip") { _ in
      TestServer.Response(fields: ["Content-Type": "application/zip"], body: .bytes(bytes))
    }
    return (server, try #require(URL(string: server.url("/made.zip"))))
  }

  @Test func downloadsAreUnpacked() async throws {
    let room = try Room()
    let (server, url) = try served(ArchiveBytes(ArchiveBytes.Entry("d/a.txt", "text")))
    defer { withExtendedLifetime(server) {} }
    try await unpack(url, into: room.path("first"))
    #expect(room.text("first/d/a.txt") == "text")
    unpackWithAFNetworking(url, into: room.path("second"))
    await Wait.until("the archive is unpacked") { room.names("second") == ["d", "d/a.txt"] }
    #expect(room.text("second/d/a.txt") == "text")
  }

  @Test func aDownloadThatIsNoArchive() async throws {
    let room = try Room()
    let (server, url) = try served(ArchiveBytes(ArchiveBytes.Entry("../slip", "text")))
    defer { withExtendedLifetime(server) {} }
    await #expect(throws: NSError.self) { try await unpack(url, into: room.path("out")) }
    #expect(room.names("") == [])
  }

  /// Every Swift example of the page is in this file.
  @Test func everyExampleIsCompiled() throws {
    func dense(_ text: String) -> String { String(text.filter { !$0.isWhitespace }) }
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    let source = dense(try String(contentsOf: URL(filePath: #filePath), encoding: .utf8))
    let page = try String(
      contentsOf: root.appending(path: "Sources/ZipArchive/ZipArchive.docc/ZipArchive.md"), encoding: .utf8)
    let examples = page.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
    #expect(examples.count == 4)
    for example in examples {
      let lines = example.split(separator: "\n").filter { !$0.hasPrefix("import ") }
      #expect(source.contains(dense(lines.joined())), "\(example)")
    }
  }
}
