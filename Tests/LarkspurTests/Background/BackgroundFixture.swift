import Foundation
import Larkspur
import LarkspurTestServer
import TestKit
import Testing

/// A directory for the state of background sessions, which goes with the fixture.
final class BackgroundFixture: Sendable {
  let server: TestServer
  let folder: URL

  init(tls: TestServer.TLS? = nil) throws {
    server = try TestServer(tls: tls)
    folder = FileManager.default.temporaryDirectory.appending(path: "larkspur-background-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: temporary, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// The directory for temporary files of the programs and of the service.
  private var temporary: URL { folder.appending(path: "tmp") }

  /// The directory of the service's socket.
  var runtimeDirectory: URL { folder.appending(path: "larkspur-transfers") }

  func configuration(_ identifier: String = "transfers") -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
    configuration.transferStateHome = folder.path
    configuration.sharedContainerIdentifier = "tests"
    return configuration
  }

  func session(
    _ delegate: (any URLSessionDelegate)?, _ configuration: URLSessionConfiguration? = nil
  ) -> URLSession {
    URLSession(configuration: configuration ?? self.configuration(), delegate: delegate, delegateQueue: nil)
  }

  func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  func file(_ name: String, _ content: some StringProtocol) throws -> URL {
    let url = folder.appending(path: name)
    try Data(content.utf8).write(to: url)
    return url
  }

  /// Serves content that can be resumed, of `count` bytes.
  func serve(_ path: String, count: Int) {
    server.route("GET", path) { request in
      let fields: TestServer.Fields = ["ETag": "\"\(path)\""]
      return .part(of: count, for: request, fields) ?? TestServer.Response(fields: fields, body: .content(0..<count))
    }
  }

  /// Starts a program that makes the tasks, or finds them.
  ///
  /// - Parameters:
  ///   - environment: The environment that chooses the service, or `nil` for none.
  ///   - isSegmented: Whether downloads are loaded in segments.
  func program(
    _ tasks: [(kind: String, path: String, name: String)], environment: [String: String]? = nil,
    isSegmented: Bool = false
  ) throws -> SiblingProcess {
    let arguments = try tasks.flatMap { [$0.kind, try url($0.path).absoluteString, $0.name] }
    return try SiblingProcess(
      "background-session", [environment == nil ? folder.path : "-", folder.path] + arguments,
      environment: (environment ?? [:]).merging(["TMPDIR": temporary.path, "SEGMENTED": "\(isSegmented)"]) { $1 })
  }

  /// The environment of programs whose tasks a transfer service carries out. Each fixture has its own service.
  func serviceEnvironment() throws -> [String: String] {
    [
      "XDG_STATE_HOME": folder.path, "XDG_RUNTIME_DIR": folder.path,
      "LARKSPUR_TRANSFER_SERVICE": try SiblingProcess.program("larkspur").path,
    ]
  }

  /// - Returns: Whether there was one.
  @discardableResult func stopService() -> Bool {
    guard let service = TransferServiceProcess.find(runtimeDirectory: folder.path) else { return false }
    kill(service, SIGKILL)
    return true
  }

  /// Kills all services and programs, also a process that is not yet the service's program.
  ///
  /// - Returns: Whether there was any.
  func killAll() -> Bool {
    let all = TransferServiceProcess.all(runtimeDirectory: folder.path)
    for process in all { kill(process, SIGKILL) }
    return !all.isEmpty
  }

  /// The ends of the programs' tasks, in their order.
  func ends() throws -> [String] { try lines("ends") }

  /// The events of the programs' tasks, in their order.
  func history() throws -> [String] { try lines("history") }

  private func lines(_ name: String) throws -> [String] {
    try String(contentsOf: folder.appending(path: name), encoding: .utf8).split(separator: "\n").map(String.init)
  }

  /// The paths of the files of sessions, the sockets and the temporary files that are left. The log of the service, and
  /// the file whose lock it holds, stay.
  func leftovers() -> [String] {
    let all = ["larkspur", "larkspur-transfers", "tmp"].flatMap { name in
      FileManager.default.enumerator(atPath: folder.appending(path: name).path)?
        .compactMap { "\(name)/\($0 as? String ?? "")" } ?? []
    }
    return all.filter { path in
      var isDirectory: ObjCBool = false
      let exists = FileManager.default.fileExists(atPath: folder.appending(path: path).path, isDirectory: &isDirectory)
      return exists && !isDirectory.boolValue
        && !["larkspur/service.log", "larkspur-transfers/lock"].contains(path)
    }
  }

  /// Whether the record of a task says that the task has ended with a response.
  func hasEnded(_ task: Int, _ identifier: String = "transfers") -> Bool {
    let path = folder.appending(path: "larkspur/groups/tests/transfers/\(identifier)/\(task).task").path
    return FileManager.default.contents(atPath: path).map { $0.range(of: Data("Content-Length".utf8)) != nil } ?? false
  }

  /// Whether a file of any session has these bytes.
  func stateContains(_ bytes: Data) -> Bool {
    let state = folder.appending(path: "larkspur")
    let names = FileManager.default.enumerator(atPath: state.path)?.compactMap { $0 as? String } ?? []
    return names.contains { FileManager.default.contents(atPath: "\(state.path)/\($0)")?.range(of: bytes) != nil }
  }

  /// The names of the files of a session's tasks.
  func journal(_ identifier: String = "transfers") -> [String] {
    let path = folder.appending(path: "larkspur/groups/tests/transfers/\(identifier)").path
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).filter {
      $0 != "lock" && $0 != "session"
    }
    .sorted()
  }
}
