import Foundation
import Glibc
import Testing

/// `httpbin` under gunicorn, from PyPI, in a directory that is deleted when the tests' process exits.
struct HTTPBin: Sendable {
  let port: Int

  private static let packages = ["httpbin==0.10.2", "gunicorn==23.0.0"]

  private struct Running {
    var directory: URL
    var server: ServerProcess
    var port: Int
  }

  /// Installed and started once, by the first test that needs it.
  private static let running: Result<Running, any Error> = Result {
    let running = try start()
    atexit { HTTPBin.end() }
    return running
  }

  private static func end() {
    guard case .success(let running) = running else { return }
    running.server.end(hasChildren: true)
    try? FileManager.default.removeItem(at: running.directory)
  }

  /// Throws in CI if Python or the packages are not available; elsewhere cancels the test with a message.
  init() throws { port = try PythonPackages.require(Self.running, "httpbin").port }

  private static func start() throws -> Running {
    let directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-httpbin-\(UUID().uuidString)")
    do {
      let python = try PythonPackages.install(packages, in: directory)
      // More threads than kept connections, because each connection occupies a thread.
      let server = try ServerProcess(
        python,
        [
          "-m", "gunicorn", "--bind", "127.0.0.1:0", "--worker-class", "gthread", "--threads", "32", "--keep-alive",
          "60", "--graceful-timeout", "1", "--worker-tmp-dir", directory.path, "httpbin:app",
        ], readyText: "Booting worker with pid")
      guard let address = server.greeting.firstMatch(of: /Listening at: http:\/\/127\.0\.0\.1:(\d+)/),
        let port = Int(address.1)
      else {
        server.end(hasChildren: true)
        throw RealServer.Unavailable(description: "gunicorn says \(server.greeting)")
      }
      return Running(directory: directory, server: server, port: port)
    } catch {
      try? FileManager.default.removeItem(at: directory)
      throw error
    }
  }

  func url(_ path: String) throws -> URL { try #require(URL(string: "http://127.0.0.1:\(port)\(path)")) }
}
