import Foundation
import Glibc
import LarkspurTestServer
import TestKit
import Testing

/// Tests `larkspur get --background` and `larkspur transfers deliver`.
@Suite(.timeLimit(.minutes(1))) struct BackgroundDownloadsTests {
  private let server: TestServer
  private let folder: URL

  init() throws {
    server = try TestServer()
    folder = FileManager.default.temporaryDirectory.appending(path: "larkspur-get-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  private func start(_ arguments: [String], service: String) throws -> Command {
    try Command(
      arguments,
      environment: [
        "XDG_STATE_HOME": folder.path, "XDG_RUNTIME_DIR": folder.path, "LARKSPUR_TRANSFER_SERVICE": service,
      ])
  }

  private func larkspur(_ arguments: [String], service: String) async throws -> Command.Result {
    try await start(arguments, service: service).end()
  }

  private func get(_ path: String, service: String = "") async throws -> Command.Result {
    try await larkspur(
      ["get", "--background", "-H", "X-Name: value", "-o", folder.appending(path: "file").path, server.url(path)],
      service: service)
  }

  /// Without a service the command stays until the file is there.
  @Test func withoutAService() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data("old".utf8).write(to: folder.appending(path: "file"))
    server.route("GET", "/file") { .text("\($0.fields["x-name"] ?? "")") }
    let result = try await get("/file")
    #expect(result.status == 0 && result.errors.contains("no transfer service"))
    #expect(try String(contentsOf: folder.appending(path: "file"), encoding: .utf8) == "value")
    // The content of an error replaces no file.
    let failed = try await get("/status/404")
    #expect(failed.status == 113 && failed.errors.contains("404"))
    #expect(try String(contentsOf: folder.appending(path: "file"), encoding: .utf8) == "value")
    let nothing = try await larkspur(["transfers", "deliver"], service: "")
    #expect(nothing.status == 0 && nothing.output.isEmpty)
  }

  /// The permissions and links of the place are as those of a file that the command loads itself.
  @Test func permissionsAndLinks() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    server.route("GET", "/file") { _ in .text("content") }
    let (file, target) = (folder.appending(path: "file"), folder.appending(path: "target"))
    func permissions(_ url: URL) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int
    }
    #expect(try await get("/file").status == 0)
    #expect(try await larkspur(["get", "-o", target.path, server.url("/file")], service: "").status == 0)
    #expect(try permissions(file) == permissions(target))
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file.path)
    #expect(try await get("/file").status == 0)
    #expect(try permissions(file) == 0o640)
    try FileManager.default.removeItem(at: file)
    try FileManager.default.removeItem(at: target)
    try FileManager.default.createSymbolicLink(at: file, withDestinationURL: target)
    #expect(try await get("/file").status == 0)
    #expect(try String(contentsOf: target, encoding: .utf8) == "content")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: file.path) == target.path)
  }

  /// A link that another user makes while the download is under way does not lead the file elsewhere.
  @Test func aLinkAppearsDuringTheDownload() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let (file, target) = (folder.appending(path: "file"), folder.appending(path: "target"))
    try Data("mine".utf8).write(to: target)
    server.route("GET", "/file") { _ in
      try? FileManager.default.createSymbolicLink(at: file, withDestinationURL: target)
      return .text("content")
    }
    let result = try await get("/file")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try String(contentsOf: target, encoding: .utf8) == "mine")
    #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.type] as? FileAttributeType == .typeRegular)
    #expect(try String(contentsOf: file, encoding: .utf8) == "content")
  }

  /// The directory that the command has opened gets the file, whatever has taken its path.
  @Test func theDirectoryIsReplacedDuringTheDownload() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let (own, moved, other) = (
      folder.appending(path: "own"), folder.appending(path: "moved"), folder.appending(path: "other")
    )
    for url in [own, other] {
      try FileManager.default.createDirectory(
        at: url, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    }
    server.route("GET", "/file") { _ in
      try? FileManager.default.moveItem(at: own, to: moved)
      try? FileManager.default.createSymbolicLink(at: own, withDestinationURL: other)
      return .text("content")
    }
    let path = own.appending(path: "file").path
    let result = try await larkspur(["get", "--background", "-o", path, server.url("/file")], service: "")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: moved.path) == ["file"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: other.path).isEmpty)
  }

  /// In such a directory another user can replace the file as well.
  @Test func aDirectoryOfOthers() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    server.route("GET", "/file") { _ in .text("content") }
    let shared = folder.appending(path: "shared")
    try FileManager.default.createDirectory(at: shared, withIntermediateDirectories: false)
    #expect(chmod(shared.path, 0o777) == 0)
    let path = shared.appending(path: "file").path
    let result = try await larkspur(["get", "--background", "-o", path, server.url("/file")], service: "")
    #expect(result.status == 23 && result.errors.contains("other users may write"), "\(result.errors)")
    #expect(server.requests.isEmpty)
    #expect(chmod(shared.path, 0o1777) == 0)
    let sticky = try await larkspur(["get", "--background", "-o", path, server.url("/file")], service: "")
    #expect(sticky.status == 0, "\(sticky.errors)")
  }

  /// Neither a directory nor anything else is replaced by a file.
  @Test func otherThanFiles() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let place = folder.appending(path: "file").path
    #expect(mkfifo(place, 0o600) == 0)
    let pipe = try await get("/file")
    #expect(pipe.status == 23 && pipe.errors.contains("regular files only"), "\(pipe.errors)")
    let directory = try await larkspur(["get", "--background", "-o", folder.path, server.url("/file")], service: "")
    #expect(directory.status == 23 && directory.errors.contains("regular files only"), "\(directory.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["file"])
    #expect(server.requests.isEmpty)
  }

  /// The content of a download that is over has no other copy.
  @Test func aFileWithoutItsPlace() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    // The place is taken while the download is under way.
    let place = folder.appending(path: "file/x")
    server.route("GET", "/file") { _ in
      try? FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      return .text("content")
    }
    let result = try await get("/file")
    #expect(result.status == 113 && result.errors.contains("cannot be written"), "\(result.errors)")
    let kept = folder.appending(path: "larkspur/undelivered")
    let names = try FileManager.default.contentsOfDirectory(atPath: kept.path)
    #expect(names.count == 1)
    let file = kept.appending(path: try #require(names.first))
    #expect(try String(contentsOf: file, encoding: .utf8) == "content" && result.errors.contains(file.path))
    // Nothing is left beside the place.
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["file", "larkspur"])
  }

  /// The place is on another file system, and an earlier process was killed while it copied.
  @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/dev/shm"))) func anotherFileSystem() async throws {
    let place = URL(filePath: "/dev/shm/\(folder.lastPathComponent)")
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    defer { for url in [folder, place] { try? FileManager.default.removeItem(at: url) } }
    let file = place.appending(path: "file")
    try Data("old".utf8).write(to: file)
    try Data("half a file".utf8).write(to: place.appending(path: "file.larkspur-part"))
    server.route("GET", "/file") { _ in .text("content") }
    let result = try await larkspur(["get", "--background", "-o", file.path, server.url("/file")], service: "")
    #expect(result.status == 0, "\(result.errors)")
    #expect(try String(contentsOf: file, encoding: .utf8) == "content")
    #expect(try FileManager.default.contentsOfDirectory(atPath: place.path) == ["file"])
    #expect(FileManager.default.enumerator(atPath: folder.path)?.contains { "\($0)".hasSuffix(".part") } == false)
  }

  /// Commands at the same time have the session one after another.
  @Test func commandsAtOnce() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    server.route("GET", "/file") { _ in .text("content") }
    let service = try Command.path()
    defer { stopService() }
    let paths = (0..<3).map { folder.appending(path: "file\($0)").path }
    let commands = try paths.map {
      try start(["get", "--background", "-o", $0, server.url("/file")], service: service)
    }
    for command in commands { #expect(try await command.end().status == 0) }
    for path in paths {
      await Wait.until("the file is there") { FileManager.default.fileExists(atPath: path) }
    }
  }

  private func stopService() {
    for process in TransferServiceProcess.all(runtimeDirectory: folder.path) { kill(process, SIGKILL) }
  }

  /// With a service the command ends at once. The service has the file moved to its place.
  @Test func withTheService() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let signal = TestServer.Signal()
    server.route("GET", "/file", script: [.wait(signal), .respond(.text("content")), .hang])
    let service = try Command.path()
    let result = try await get("/file", service: service)
    #expect(result.status == 0 && result.text == "in the background: task 1 of larkspur-get\n")
    let list = try await larkspur(["transfers", "list"], service: service)
    #expect(list.text.contains("larkspur-get") && list.text.contains("/file"))
    signal.fire()
    let path = folder.appending(path: "file").path
    await Wait.until("the file is there") { FileManager.default.fileExists(atPath: path) }
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "content")
    // What the service's program cannot do is in the log.
    try FileManager.default.removeItem(atPath: path)
    let gone = TestServer.Signal()
    server.route("GET", "/gone", script: [.wait(gone), .respond(TestServer.Response(status: 404)), .hang])
    #expect(try await get("/gone", service: service).status == 0)
    gone.fire()
    try await Wait.until("the log has the error") {
      try await larkspur(["transfers", "log"], service: service).text.contains("the server answers 404")
    }
    stopService()
  }

  @Test(arguments: [
    (["--background"], "--background needs -o: there has to be a file for the content"),
    (["--background", "-o", "file", "-i"], "--background goes with -o and -H only"),
    (["--background", "-o", "file", "-d", "x"], "--background goes with -o and -H only"),
  ])
  func whatGoesWithIt(arguments: [String], message: String) async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let result = try await larkspur(["get", "http://127.0.0.1/"] + arguments, service: "")
    #expect(result.status == 2 && result.errors.contains(message))
  }
}
